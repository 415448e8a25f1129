using Kahuna.Client;
using Kahuna.Tests.Traces;
using Xunit.Abstractions;

namespace Kahuna.Tests.Cluster;

/// <summary>
/// The traces of real processes, of which the leader is killed under load, show every rule kept; and the checker would
/// see it if not.
/// </summary>
[Collection(ClusterCollection.Name)]
public sealed class TraceTests(ITestOutputHelper output)
{
    private static readonly TimeSpan s_within = LastNet.Span;

    [Fact]
    public async Task Traces_of_a_killed_leader_are_clean()
    {
        await using ProcessCluster cluster = new(output, nodes: 3, "--partitions", "2");
        string[] traces = [.. cluster.Nodes.Select(node => cluster.ScratchFile($"node{node.Id}.jsonl"))];
        await cluster.RunAsync(async () =>
        {
            foreach (NodeProcess node in cluster.Nodes)
            {
                node.Start("--trace", traces[node.Id - 1]);
            }

            await cluster.WaitReadyAsync();
            await using (KahunaClient client = cluster.Connect(TimeSpan.FromSeconds(3)))
            {
                await using RecordedLoad load = new(client);
                await load.MakeProgressAsync(RecordedLoad.Now, s_within);
                NodeProcess leader = await cluster.LeaderAsync();
                leader.Kill();
                await load.MakeProgressAsync(RecordedLoad.Now, s_within);
                leader.Start("--trace", traces[leader.Id - 1]);
                await cluster.WaitReadyAsync();
                await load.MakeProgressAsync(RecordedLoad.Now, s_within);
                await load.StopAsync();
                await load.CheckAsync();
            }

            Assert.All(cluster.Nodes, node => Assert.Equal(0, node.Stop()));
            (int code, string said) = Check(traces);
            Assert.True(code == 0, said);
            Assert.Matches("^clean: 3 nodes, 4 runs, 2 groups, ", said);
            output.WriteLine($"Checked: traces of a killed leader: {said}");

            // A disk that says nothing is no disk: then what was committed was on one disk only.
            foreach (string trace in traces[..2])
            {
                File.WriteAllLines(
                    trace,
                    File.ReadAllLines(trace).Where(
                        line => !line.Contains("\"event\":\"persisted\",\"group\":1,", StringComparison.Ordinal)));
            }

            Assert.Equal(1, Check(traces).Code);
        });
    }

    private static (int Code, string Said) Check(string[] traces)
    {
        using StringWriter said = new();
        return (CheckTracesCommand.Run(traces, said, said), said.ToString().TrimEnd());
    }
}
