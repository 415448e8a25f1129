using Kahuna.Server.Partitions.Ports;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Simulation.Faults;

/// <summary>
/// Restarts the nodes of a run one by one with a build that supports one feature level more, among all other faults. In
/// some runs a node comes back with the earlier build meanwhile, or after the level was raised: then it must refuse to
/// serve, and the others go on. Owned by one run.
/// </summary>
internal sealed class RollingUpgrade(SimCluster cluster, Nemesis nemesis)
{
    private const long SecondNs = 1_000_000_000;

    /// <summary>One of the nodes gets another build. Immutable.</summary>
    /// <param name="AtNs">When.</param>
    /// <param name="Node">Which.</param>
    /// <param name="IsRaised">The build supports the higher level.</param>
    /// <param name="DownNs">How long the node is down meanwhile.</param>
    internal sealed record Step(long AtNs, int Node, bool IsRaised, long DownNs);

    /// <summary>Draws the steps of a run: none for most.</summary>
    public static IReadOnlyList<Step> Draw(SimConfig config, SimRandom random)
    {
        bool isPossible = config is { HasEphemeral: true, EphemeralBytesMax: long.MaxValue, Hostile.Count: 0 };
        if (!random.Chance(0.4) || !isPossible)
        {
            return [];
        }

        List<Step> steps = [];
        int[] order = [.. Enumerable.Range(1, config.Nodes)];
        random.Shuffle(order);
        double at = config.Seconds * (0.05 + (0.2 * random.NextDouble()));
        double pause = config.Seconds * 0.3 * random.NextDouble() / config.Nodes;
        foreach (int node in order)
        {
            steps.Add(new Step((long)(at * SecondNs), node, IsRaised: true, random.Between(0L, 2 * SecondNs)));
            at += pause;
        }

        if (random.Chance(0.6))
        {
            // One comes back with the earlier build: before the last one was upgraded, just then, or much later.
            double back = at + (pause * random.Pick([-2.0, -1.0, -0.9, 0.1, 3.0])) + (3 * random.NextDouble());
            int node = random.Pick(order);
            steps.Add(new Step((long)(back * SecondNs), node, IsRaised: false, random.Between(0L, SecondNs)));
            back += config.Seconds * 0.2 * random.NextDouble();
            steps.Add(new Step((long)(back * SecondNs), node, IsRaised: true, random.Between(0L, SecondNs)));
        }

        return steps;
    }

    public void Begin()
    {
        foreach (Step step in cluster.Config.Upgrade)
        {
            cluster.Scheduler.At(step.AtNs, () => Take(step));
        }
    }

    /// <summary>The run ends: every node has the new build.</summary>
    public void End()
    {
        if (cluster.Config.Upgrade.Count > 0)
        {
            foreach (SimNode node in cluster.Nodes.Where(static node => !node.IsRaised))
            {
                Change(node, isRaised: true, downNs: 0);
            }
        }
    }

    /// <summary>
    /// A build refuses to run because of the cluster's feature level, which is right when it has not got that level and
    /// the cluster has, or may have: the node can be the first to hear of it.
    /// </summary>
    public bool Explains(SimNode node, Exception? error) =>
        error is FeatureLevelException
            && !node.IsRaised
            && (cluster.Rules.Levels.Newest > node.Features.Max
                || cluster.Nodes.All(static other => other.WasRaised));

    private void Take(Step step)
    {
        if (!cluster.LoadEnds)
        {
            Change(cluster.Nodes[step.Node - 1], step.IsRaised, step.DownNs);
        }
    }

    private void Change(SimNode node, bool isRaised, long downNs)
    {
        cluster.Scheduler.Note(
            SimEvent.Build,
            node.Id,
            (node.IsRaised ? FeatureLevels.Test : FeatureLevels.Newest).Value,
            (isRaised ? FeatureLevels.Test : FeatureLevels.Newest).Value);
        node.IsRaised = isRaised;
        node.Crash(power: false);
        nemesis.StartLater(node, downNs);
    }
}
