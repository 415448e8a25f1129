using Kahuna.Client;
using Xunit.Abstractions;

namespace Kahuna.Tests.Cluster;

/// <summary>
/// Kill, pause and restart of real processes under load: nothing acknowledged is lost, and service comes back.
/// </summary>
[Collection(ClusterCollection.Name)]
public sealed class CrashTests(ITestOutputHelper output)
{
    /// <summary>A tolerant bound: the machine that runs the tests may be busy. What was measured is printed.</summary>
    private static readonly TimeSpan s_backWithin = LastNet.Span;

    private static readonly TimeSpan s_requestTimeout = TimeSpan.FromSeconds(3);

    [Fact]
    public async Task Killed_nodes_lose_nothing_acknowledged()
    {
        await using ProcessCluster cluster = new(output);
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(s_requestTimeout);
            await using RecordedLoad load = new(client);
            List<TimeSpan> errorsStopped = [];
            Repeats rounds = NewRounds();
            while (rounds.Next())
            {
                await load.MakeProgressAsync(RecordedLoad.Now, s_backWithin);
                NodeProcess victim = await VictimAsync(cluster, rounds.Done - 1);
                TimeSpan moment = RecordedLoad.Now;
                victim.Kill();
                await load.MakeProgressAsync(moment, s_backWithin);

                // Stragglers of the first moments after recovery belong to this kill.
                await Task.Delay(1000);
                errorsStopped.Add(load.LastFailureAfter(moment) ?? TimeSpan.Zero);
                victim.Start();
                await cluster.WaitReadyAsync();
            }

            await FinishAsync(
                load,
                $"{rounds} times kill -9, errors stopped after "
                    + $"{string.Join(" ", errorsStopped.Select(span => $"{span.TotalSeconds:0.0}"))} s");
            Assert.All(errorsStopped, span => Assert.InRange(span, TimeSpan.Zero, s_backWithin));
        });
    }

    [Fact]
    public async Task Paused_nodes_lose_nothing_acknowledged()
    {
        await using ProcessCluster cluster = new(output);
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(s_requestTimeout);
            await using RecordedLoad load = new(client);
            Repeats rounds = NewRounds();
            while (rounds.Next())
            {
                await load.MakeProgressAsync(RecordedLoad.Now, s_backWithin);
                NodeProcess victim = await VictimAsync(cluster, rounds.Done - 1);
                TimeSpan moment = RecordedLoad.Now;
                victim.Pause();
                await load.MakeProgressAsync(moment, s_backWithin);

                // Longer than any election timeout: the node wakes up in another term.
                await Task.Delay(TimeSpan.FromSeconds(2));
                victim.Resume();
                await cluster.WaitReadyAsync();
            }

            await FinishAsync(load, $"{rounds} times paused");
        });
    }

    [Fact]
    public async Task Restarted_nodes_lose_nothing_acknowledged()
    {
        await using ProcessCluster cluster = new(output);
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(s_requestTimeout);
            await using RecordedLoad load = new(client);
            Repeats rounds = NewRounds();
            while (rounds.Next())
            {
                await load.MakeProgressAsync(RecordedLoad.Now, s_backWithin);
                NodeProcess victim = await VictimAsync(cluster, rounds.Done - 1);
                Assert.Equal(0, victim.Stop());
                TimeSpan moment = RecordedLoad.Now;
                victim.Start();
                await cluster.WaitReadyAsync();
                await load.MakeProgressAsync(moment, s_backWithin);
            }

            await FinishAsync(load, $"{rounds} times stopped and started");
        });
    }

    [Fact]
    public async Task All_nodes_killed_at_once_lose_nothing_acknowledged()
    {
        await using ProcessCluster cluster = new(output);
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(s_requestTimeout);
            await using RecordedLoad load = new(client);
            Repeats rounds = new(3, 1, share: 30);
            while (rounds.Next())
            {
                await load.MakeProgressAsync(RecordedLoad.Now, s_backWithin);
                await Task.Delay(TimeSpan.FromSeconds(1));
                foreach (NodeProcess node in cluster.Nodes)
                {
                    node.SendKill();
                }

                foreach (NodeProcess node in cluster.Nodes)
                {
                    node.WaitForExit(s_backWithin);
                }

                await cluster.StartAsync();
            }

            await FinishAsync(load, $"{rounds} times all three nodes killed at once");
        });
    }

    /// <summary>Two in any case: the leader and another node.</summary>
    private static Repeats NewRounds() => new(6, 2, share: 40);

    /// <summary>
    /// The leader in every even round, any node in the others; after some load, at no particular moment.
    /// </summary>
    private static async Task<NodeProcess> VictimAsync(ProcessCluster cluster, int round)
    {
        await Task.Delay(Random.Shared.Next(300, 900));
        return round % 2 == 0 ? await cluster.LeaderAsync() : cluster.Nodes[round / 2 % cluster.Nodes.Count];
    }

    private async Task FinishAsync(RecordedLoad load, string what)
    {
        await load.MakeProgressAsync(RecordedLoad.Now, s_backWithin);
        await load.StopAsync();
        output.WriteLine($"Checked: {what}: {await load.CheckAsync()}");
    }
}
