using System.Text;
using Kahuna.Client;
using Kahuna.Client.Locks;
using Kahuna.Client.Outcomes;
using Kahuna.Server.Hosting;

namespace Kahuna.Tests.Client;

/// <summary>Holders and waiters while the leader of their lock goes away.</summary>
public sealed class LockFailoverTests
{
    private static readonly TimeSpan s_lease = TimeSpan.FromMinutes(5);

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public async Task A_lock_and_its_queue_survive_the_leader(Durability durability)
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(3).WaitAsync(2 * Wait.Longest);
        await using KahunaClient client = KahunaClient.Connect(
            cluster.Endpoints, static options => options.Insecure = true);
        LockOptions options = new() { Durability = durability };
        await using LockHandle held = await Wait.ForAsync(
            client.Locks.AcquireAsync("a/lock", s_lease, s_lease, options));
        CancellationToken lost = held.LostToken;
        List<Task<LockHandle>> waiting = [];
        for (int i = 1; i <= 3; i++)
        {
            waiting.Add(client.Locks.AcquireAsync("a/lock", s_lease, 4 * s_lease, options).AsTask());
            await Wait.UntilAsync(async () => (await client.Locks.GetAsync("a/lock", durability))!.WaiterCount == i);
        }

        ClusterDescription described = await client.DescribeAsync();
        int partition = InitialPartition.Of(Encoding.UTF8.GetBytes("a/lock"), described.Partitions.Count);
        int slot = partition + (durability == Durability.Ephemeral ? described.Partitions.Count : 0);
        int leader = cluster.Nodes[0].View.Status(slot).Leader.Value;
        await cluster.Nodes[leader - 1].DisposeAsync().AsTask().WaitAsync(Wait.Longest);

        Assert.False(lost.IsCancellationRequested);
        Assert.True(await Wait.ForAsync(held.ExtendAsync()));
        LockDescription found = (await Wait.ForAsync(client.Locks.GetAsync("a/lock", durability)))!;
        Assert.Equal((held.Token, 3), (found.Holders[0].Token, found.WaiterCount));
        long token = held.Token.Value;
        Assert.True(await Wait.ForAsync(held.ReleaseAsync()));
        foreach (Task<LockHandle> waiter in waiting)
        {
            LockHandle next = await waiter.WaitAsync(Wait.Longest);
            Assert.True(next.Token.Value > token);
            Assert.InRange(next.Remaining, TimeSpan.FromSeconds(1), s_lease);
            token = next.Token.Value;
            await next.DisposeAsync();
        }
    }
}
