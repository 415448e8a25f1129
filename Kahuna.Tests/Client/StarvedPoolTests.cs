using Kahuna.Client;
using Kahuna.Client.Locks;

namespace Kahuna.Tests.Client;

/// <summary>
/// Holders are told of a lost lease, and leases are renewed, while every thread of the pool is blocked. The tests
/// themselves keep to their own thread.
/// </summary>
[Collection(StarvedPoolCollection.Name)]
public sealed class StarvedPoolTests
{
    private static readonly TimeSpan s_lease = TimeSpan.FromMilliseconds(600);

    [Fact]
    public void A_lost_lease_is_told_and_what_waits_for_it_runs()
    {
        InstantNode node = new();
        KahunaClient client = Client(node);
        try
        {
            // Blocked before the lease begins, so that nobody can be told earlier.
            using StarvedPool pool = new();
            LockHandle handle = Acquire(client, new LockOptions { AutoRenew = false });
            using CancellationTokenSource linked = CancellationTokenSource.CreateLinkedTokenSource(handle.LostToken);
            Assert.True(linked.Token.WaitHandle.WaitOne(Wait.Longest));
            Assert.True(pool.IsStarved);
            Assert.Equal(TimeSpan.Zero, handle.Remaining);
        }
        finally
        {
            Dispose(client);
        }
    }

    [Fact]
    public void Registered_code_that_blocks_keeps_nobody_from_being_told()
    {
        InstantNode node = new();
        KahunaClient client = Client(node);
        using ManualResetEventSlim end = new();
        try
        {
            using StarvedPool pool = new();
            LockHandle blocking = Acquire(client, new LockOptions { AutoRenew = false });
            ManualResetEventSlim begun = new();

            // On a thread of its own: what is registered after the loss runs where it is registered.
            Thread registering = new(() => blocking.LostToken.Register(() =>
            {
                begun.Set();
                end.Wait(Wait.Longest * 4);
            }));
            registering.Start();
            LockHandle other = Acquire(client, new LockOptions { AutoRenew = false });
            using CancellationTokenSource linked = CancellationTokenSource.CreateLinkedTokenSource(other.LostToken);
            Assert.True(begun.Wait(Wait.Longest));
            Assert.True(linked.Token.WaitHandle.WaitOne(Wait.Longest));
            Assert.True(pool.IsStarved);
            end.Set();
            registering.Join();
        }
        finally
        {
            end.Set();
            Dispose(client);
        }
    }

    [Fact]
    public void Leases_are_renewed()
    {
        // A busy machine may come too late to a short lease; without renewal the longest is lost, too.
        Assert.True(AreRenewed(s_lease) || AreRenewed(10 * s_lease) || AreRenewed(100 * s_lease));
    }

    /// <summary>Whether two leases are renewed ten times between them before either is lost.</summary>
    private static bool AreRenewed(TimeSpan lease)
    {
        InstantNode node = new();
        KahunaClient client = Client(node);
        try
        {
            using StarvedPool pool = new();
            LockHandle handle = Acquire(client, null, lease);
            LockHandle other = Acquire(client, null, lease);
            int before = Volatile.Read(ref node.Requests);
            bool lost = false;
            while (!lost && Volatile.Read(ref node.Requests) < before + 10)
            {
                Thread.Yield();
                lost = handle.Remaining == TimeSpan.Zero || other.Remaining == TimeSpan.Zero;
            }

            Assert.True(pool.IsStarved);
            return !lost;
        }
        finally
        {
            Dispose(client);
        }
    }

    /// <summary>A client that is connected, over a node that answers within the client's write.</summary>
    private static KahunaClient Client(InstantNode node)
    {
        KahunaClient client = AllocationTests.Client(node);
        Assert.True(Task.Run(() => AllocationTests.SettleAsync(client, node)).Wait(Wait.Longest));
        return client;
    }

    private static void Dispose(KahunaClient client) => Assert.True(client.DisposeAsync().AsTask().Wait(Wait.Longest));

    private static LockHandle Acquire(KahunaClient client, LockOptions? options, TimeSpan? lease = null)
    {
        Task<LockHandle> acquiring = client.Locks.AcquireAsync("a/b", lease ?? s_lease, Wait.Longest, options).AsTask();
        Assert.True(acquiring.Wait(Wait.Longest));
        return acquiring.Result;
    }
}
