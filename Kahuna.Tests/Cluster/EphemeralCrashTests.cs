using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Xunit.Abstractions;

namespace Kahuna.Tests.Cluster;

/// <summary>
/// Ephemeral keys in real processes: a minority may be killed at any moment, and when all are, everything is gone and
/// numbers go on.
/// </summary>
[Collection(ClusterCollection.Name)]
public sealed class EphemeralCrashTests(ITestOutputHelper output)
{
    private static readonly TimeSpan s_backWithin = LastNet.Span;

    private static readonly TimeSpan s_requestTimeout = TimeSpan.FromSeconds(3);

    [Fact]
    public async Task Killed_leaders_lose_no_acknowledged_ephemeral_write()
    {
        await using ProcessCluster cluster = new(output);
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(s_requestTimeout, Durability.Ephemeral);
            await using RecordedLoad load = new(client);
            Repeats kills = new(20, 2, share: 50, "KAHUNA_KILLS");
            while (kills.Next())
            {
                await load.MakeProgressAsync(RecordedLoad.Now, s_backWithin);
                await Task.Delay(Random.Shared.Next(100, 500));
                NodeProcess leader = await cluster.LeaderAsync(ephemeral: true);
                TimeSpan moment = RecordedLoad.Now;
                leader.Kill();
                await load.MakeProgressAsync(moment, s_backWithin);
                leader.Start();
                await cluster.WaitReadyAsync();
            }

            await load.MakeProgressAsync(RecordedLoad.Now, s_backWithin);
            await load.StopAsync();
            output.WriteLine(
                $"Checked: {kills} times kill -9 of the leader of the ephemeral keys: {await load.CheckAsync()}");
        });
    }

    [Fact]
    public async Task When_all_nodes_are_killed_ephemeral_keys_are_gone_and_revisions_go_on_above()
    {
        await using ProcessCluster cluster = new(output);
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(LastNet.Call);
            SetOptions ephemeral = new() { Durability = Durability.Ephemeral };
            long before = 0;
            for (int i = 0; i < 3; i++)
            {
                before = (await client.KeyValues.SetAsync("both", "memory", ephemeral)).Revision.Value;
            }

            Assert.Equal(3, before);
            await client.KeyValues.SetAsync("both", "disk");
            foreach (NodeProcess node in cluster.Nodes)
            {
                node.SendKill();
            }

            foreach (NodeProcess node in cluster.Nodes)
            {
                node.WaitForExit(s_backWithin);
            }

            await cluster.StartAsync();
            Assert.Equal("disk", (await client.KeyValues.GetAsync("both")).Value.AsString());
            Assert.False(
                (await client.KeyValues.GetAsync("both", new ReadOptions { Durability = Durability.Ephemeral })).Found);
            SetResult after = await client.KeyValues.SetAsync("both", "again", ephemeral);
            Assert.Equal((1L << 44) + 1, after.Revision.Value);
        });
    }

    [Fact]
    public async Task A_standalone_node_begins_a_new_epoch_at_once()
    {
        await using ProcessCluster cluster = new(output, nodes: 1);
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(LastNet.Call, Durability.Ephemeral);
            Assert.Equal(1, (await client.KeyValues.SetAsync("k", "v")).Revision.Value);
            cluster.Nodes[0].Kill();
            await cluster.StartAsync();
            GetResult gone = await client.KeyValues.GetAsync("k");
            Assert.False(gone.Found);
            Assert.Equal((1L << 44) + 1, (await client.KeyValues.SetAsync("k", "v")).Revision.Value);
        });
    }
}
