using System.Diagnostics;
using Kahuna.Client;
using Kahuna.Client.Locks;

namespace Kahuna.Tests.Client;

/// <summary>Holders are told of a lost lease, and leases are renewed, while every thread of the pool is blocked. The tests themselves keep to their own thread.</summary>
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
            LockHandle handle = Acquire(client, new LockOptions { AutoRenew = false });
            using CancellationTokenSource linked = CancellationTokenSource.CreateLinkedTokenSource(handle.LostToken);
            using StarvedPool pool = new();
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
            LockHandle blocking = Acquire(client, new LockOptions { AutoRenew = false });
            using ManualResetEventSlim begun = new();
            using CancellationTokenRegistration blocks = blocking.LostToken.Register(() =>
            {
                begun.Set();
                end.Wait(Wait.Longest * 4);
            });
            LockHandle other = Acquire(client, new LockOptions { AutoRenew = false });
            using CancellationTokenSource linked = CancellationTokenSource.CreateLinkedTokenSource(other.LostToken);
            using StarvedPool pool = new();
            Assert.True(begun.Wait(Wait.Longest));
            Assert.True(linked.Token.WaitHandle.WaitOne(Wait.Longest));
            Assert.True(pool.IsStarved);
            end.Set();
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
        InstantNode node = new();
        KahunaClient client = Client(node);
        try
        {
            LockHandle handle = Acquire(client, null);
            LockHandle other = Acquire(client, null);
            using StarvedPool pool = new();
            int before = node.Requests;
            long begun = Stopwatch.GetTimestamp();
            while (node.Requests < before + 10 && Stopwatch.GetElapsedTime(begun) < Wait.Longest)
            {
                Thread.Yield();
            }

            Assert.InRange(node.Requests, before + 10, int.MaxValue);
            Assert.True(pool.IsStarved);
            Assert.False(handle.LostToken.IsCancellationRequested || other.LostToken.IsCancellationRequested);
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

    private static LockHandle Acquire(KahunaClient client, LockOptions? options)
    {
        Task<LockHandle> acquiring = client.Locks.AcquireAsync("a/b", s_lease, s_lease, options).AsTask();
        Assert.True(acquiring.Wait(Wait.Longest));
        return acquiring.Result;
    }
}
