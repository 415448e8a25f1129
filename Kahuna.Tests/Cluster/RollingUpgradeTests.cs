using Kahuna.Client;
using Kahuna.Wire.Commands;
using Xunit.Abstractions;

namespace Kahuna.Tests.Cluster;

/// <summary>
/// Real processes are upgraded one by one under load: the feature level rises when the last one supports it, and a node
/// of the earlier version ends with one sentence from then on.
/// </summary>
[Collection(ClusterCollection.Name)]
public sealed class RollingUpgradeTests(ITestOutputHelper output)
{
    private static readonly TimeSpan s_within = LastNet.Span;

    [Fact]
    public async Task The_level_rises_with_the_last_node_and_an_earlier_version_refuses_to_run()
    {
        await using ProcessCluster cluster = new(output, 3, "--cluster-id", "test-upgrade");
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(LastNet.Call);
            await using RecordedLoad load = new(client);
            await load.MakeProgressAsync(RecordedLoad.Now, s_within);
            foreach (NodeProcess node in cluster.Nodes)
            {
                Assert.All(await LevelsAsync(cluster), static level => Assert.Equal(1, level));
                Assert.Equal(0, node.Stop());
                node.IsRaised = true;
                node.Start();
                await cluster.WaitReadyAsync();
                await load.MakeProgressAsync(RecordedLoad.Now, s_within);
            }

            int raised = FeatureLevels.Test.Value;
            await Eventually.TrueAsync(
                s_within,
                "all nodes know the raised level",
                async () => (await LevelsAsync(cluster)).All(level => level == raised));
            Assert.All(
                cluster.Nodes,
                node => Assert.Contains(
                    $"The cluster's feature level is {raised}.", node.Log(), StringComparison.Ordinal));
            await load.MakeProgressAsync(RecordedLoad.Now, s_within);

            // The earlier version finds the level in its own data.
            NodeProcess last = cluster.Nodes[2];
            Assert.Equal(0, last.Stop());
            await RefusesAsync(last, raised);

            // And on an empty directory it hears of it from the others.
            Directory.Delete(last.DataDirectory, recursive: true);
            await RefusesAsync(last, raised, "--rebuild", "--yes");
            await load.MakeProgressAsync(RecordedLoad.Now, s_within);

            last.IsRaised = true;
            last.Start();
            await cluster.WaitReadyAsync();
            await load.MakeProgressAsync(RecordedLoad.Now, s_within);
            await load.StopAsync();
            output.WriteLine(await load.CheckAsync());
            Assert.DoesNotContain(load.Failures, failure => failure.Error.Outcome == OperationOutcome.Unknown);
            await cluster.DigestAsync(s_within);
        });
    }

    private static async Task RefusesAsync(NodeProcess node, int level, params string[] options)
    {
        node.IsRaised = false;
        int before = node.Log().Length;
        node.Start(options);
        await Eventually.TrueAsync(s_within, "the earlier version ends", () => Task.FromResult(!node.IsRunning));
        Assert.Equal(1, node.ExitCode);
        string line = node.Log()[before..].Split('\n')
            .Last(static line => line.StartsWith("kahuna-server: ", StringComparison.Ordinal));
        Assert.Contains($"The cluster has feature level {level} (", line, StringComparison.Ordinal);
        Assert.Contains(
            "and this version supports level 1 only. Start this node with a version that supports it", line,
            StringComparison.Ordinal);
    }

    private static async Task<int[]> LevelsAsync(ProcessCluster cluster)
    {
        NodeStatus?[] statuses = await Task.WhenAll(cluster.Nodes.Select(cluster.StatusAsync));
        return [.. statuses.Select(static status => status?.FeatureLevel ?? 0)];
    }
}
