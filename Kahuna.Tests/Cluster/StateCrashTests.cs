using Kahuna.Client;
using Xunit.Abstractions;

namespace Kahuna.Tests.Cluster;

/// <summary>
/// kill -9 aimed at storing a state, cutting the log, sending and taking in a snapshot, by watching the nodes' files
/// and logs, under load. Nothing acknowledged is lost, all nodes come to the same state, and no unfinished file stays.
/// <c>KAHUNA_CRASH_ROUNDS</c> says how often each.
/// </summary>
[Collection(ClusterCollection.Name)]
public sealed class StateCrashTests(ITestOutputHelper output)
{
    private const int BulkKeys = 1_500;
    private const int BulkValueBytes = 8_000;

    private static readonly TimeSpan s_within = LastNet.Span;
    private static readonly TimeSpan s_backWithin = LastNet.Span;

    [Theory]
    [InlineData("rocksdb")]
    [InlineData("files")]
    public Task Killed_while_a_state_is_stored(string store) =>
        KilledWhenAsync(store, "a state was being stored", async node =>
    {
        string state = Path.Combine(node.DataDirectory, "state");
        await SeenAsync("unfinished files of a state", () => Unfinished(state).Length > 0);
    });

    [Fact]
    public Task Killed_while_the_log_is_cut() => KilledWhenAsync("rocksdb", "the log was being cut", async node =>
    {
        string oldest = Segments(node)[0];
        await SeenAsync("a cut log", () => Segments(node)[0] != oldest);
    });

    [Theory]
    [InlineData("rocksdb", true)]
    [InlineData("rocksdb", false)]
    [InlineData("files", false)]
    public async Task Killed_during_a_snapshot(string store, bool killSender)
    {
        await using ProcessCluster cluster = NewCluster(store);
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(TimeSpan.FromSeconds(3));
            await using RecordedLoad load = new(client, writers: 4);
            Repeats rounds = new(1, 1, share: 0, "KAHUNA_CRASH_ROUNDS");
            await using (new BulkLoad(client, BulkKeys, BulkValueBytes))
            {
                while (rounds.Next())
                {
                    NodeProcess leader = await cluster.LeaderAsync();
                    NodeProcess follower = cluster.Nodes.First(node => node != leader);
                    follower.Kill();
                    ulong? had = null;
                    await Eventually.TrueAsync(s_within, "the leader answers", async () =>
                        (had = (await cluster.StatusAsync(leader))?.Partitions[0].CommitIndex) is not null);
                    await Eventually.TrueAsync(s_within, "the log is cut above what the follower has", async () =>
                        (await cluster.StatusAsync(leader))?.Partitions[0].LogStart > had);
                    int lines = Lines(follower).Length;
                    follower.Start();
                    await SeenAsync("a snapshot that begins", () =>
                        Lines(follower).Skip(lines).Any(
                            line => line.Contains("receives the state", StringComparison.Ordinal)));
                    await Task.Delay(Random.Shared.Next(0, 600));
                    NodeProcess victim = killSender ? leader : follower;
                    TimeSpan moment = RecordedLoad.Now;
                    victim.Kill();
                    await load.MakeProgressAsync(moment, s_backWithin);
                    victim.Start();
                    await cluster.WaitReadyAsync();
                }
            }

            await FinishAsync(
                cluster,
                load,
                $"{rounds} x kill -9 of the {(killSender ? "sender" : "receiver")} of a snapshot ({store})");
        });
    }

    [Theory]
    [InlineData("", "knows another data directory of this node")]
    [InlineData("log", "(is a disk not mounted?)")]
    public async Task Wiped_node_is_refused_and_rebuilt_from_the_others(string lost, string words)
    {
        await using ProcessCluster cluster = NewCluster("rocksdb");
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(TimeSpan.FromSeconds(3));
            await using RecordedLoad load = new(client);
            await load.MakeProgressAsync(RecordedLoad.Now, s_backWithin);
            NodeProcess first = await cluster.LeaderAsync();
            NodeProcess wiped = cluster.Nodes.First(node => node != first);
            wiped.Kill();
            Directory.Delete(Path.Combine(wiped.DataDirectory, lost), recursive: true);
            wiped.Start();
            wiped.WaitForExit(s_within);
            Assert.Equal(1, wiped.ExitCode);
            Assert.Contains(Lines(wiped), line =>
                line.Contains(words, StringComparison.Ordinal)
                    && line.Contains("start this node with --rebuild", StringComparison.Ordinal));
            wiped.Start("--rebuild", "--yes");
            await Eventually.TrueAsync(s_within, "the rebuilt node votes", async () =>
                (await cluster.StatusAsync(wiped))?.Partitions[0].MayVote == true);

            // With it, any other node can be lost.
            NodeProcess leader = await cluster.LeaderAsync();
            TimeSpan moment = RecordedLoad.Now;
            leader.Kill();
            await load.MakeProgressAsync(moment, s_backWithin);
            leader.Start();
            await cluster.WaitReadyAsync();
            await FinishAsync(
                cluster,
                load,
                $"a node that lost its '{lost}' was refused, rebuilt, and was the majority's other half");
        });
    }

    private ProcessCluster NewCluster(string store) =>
        new(output, 3, "--state-store", store, "--log-keep", "16MB", "--background-rate", "16MB");

    /// <summary>Kills one node after the other at a moment that something is seen of it.</summary>
    private async Task KilledWhenAsync(string store, string what, Func<NodeProcess, Task> seen)
    {
        await using ProcessCluster cluster = NewCluster(store);
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(TimeSpan.FromSeconds(3));
            await using RecordedLoad load = new(client, writers: 4);
            Repeats rounds = new(1, 1, share: 0, "KAHUNA_CRASH_ROUNDS");
            await using (new BulkLoad(client, BulkKeys, BulkValueBytes))
            {
                while (rounds.Next())
                {
                    NodeProcess victim = cluster.Nodes[(rounds.Done - 1) % cluster.Nodes.Count];
                    await seen(victim);
                    await Task.Delay(Random.Shared.Next(0, 30));
                    TimeSpan moment = RecordedLoad.Now;
                    victim.Kill();
                    await load.MakeProgressAsync(moment, s_backWithin);
                    victim.Start();
                    await cluster.WaitReadyAsync();
                }
            }

            await FinishAsync(cluster, load, $"{rounds} x kill -9 while {what} ({store})");
        });
    }

    private async Task FinishAsync(ProcessCluster cluster, RecordedLoad load, string what)
    {
        await load.MakeProgressAsync(RecordedLoad.Now, s_backWithin);
        await load.StopAsync();
        string checkedKeys = await load.CheckAsync();
        string digest = await cluster.DigestAsync(s_within);
        foreach (NodeProcess node in cluster.Nodes)
        {
            await Eventually.TrueAsync(s_within, "nothing unfinished lies about", () =>
                Task.FromResult(Unfinished(Path.Combine(node.DataDirectory, "state")).Length == 0));
        }

        output.WriteLine($"Checked: {what}: {checkedKeys}; digest {digest} on all nodes");
    }

    private static async Task SeenAsync(string what, Func<bool> condition)
    {
        DateTime end = DateTime.UtcNow + s_within;
        while (!condition())
        {
            Assert.True(DateTime.UtcNow < end, $"{what}: not seen within {s_within.TotalSeconds} s");
            await Task.Delay(1);
        }
    }

    private static string[] Segments(NodeProcess node) =>
        [.. Directory.GetFiles(Path.Combine(node.DataDirectory, "log"), "*.seg").Order(StringComparer.Ordinal)];

    /// <summary>What a write to the store that did not end leaves until the next start.</summary>
    private static string[] Unfinished(string state)
    {
        try
        {
            return
            [
                .. Directory.GetFiles(state, "*.new", SearchOption.AllDirectories),
                .. Directory.Exists(Path.Combine(state, "staging"))
                    ? Directory.GetFiles(Path.Combine(state, "staging"))
                    : [],
            ];
        }
        catch (DirectoryNotFoundException)
        {
            return [];
        }
    }

    private static string[] Lines(NodeProcess node) => node.Log().Split('\n');
}
