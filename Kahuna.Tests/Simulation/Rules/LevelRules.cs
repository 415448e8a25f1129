using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Loops;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Simulation.Rules;

/// <summary>
/// The cluster's feature level over all nodes and all their lives: it never falls, it rises only when every node has
/// run a build that supports it, and no node holds an entry of a level that its build does not support. Looks only in
/// runs with an upgrade. Owned by one run.
/// </summary>
internal sealed class LevelRules(SimConfig config, IReadOnlyList<SimNode> nodes, Action<string, string> breaks)
{
    private readonly FeatureLevel[] _known = new FeatureLevel[nodes.Count + 1];

    /// <summary>The highest level that a node has known the cluster to have.</summary>
    public FeatureLevel Newest { get; private set; }

    /// <summary>A node's process has ended.</summary>
    public void Ended(SimNode node) => _known[node.Id] = default;

    /// <summary>After code of a node has run.</summary>
    public void Look(SimNode node, LoopSet loops)
    {
        if (config.Upgrade.Count == 0)
        {
            return;
        }

        FeatureLevel level = loops.FeatureLevel;
        if (level < _known[node.Id])
        {
            breaks("a feature level never falls", $"node {node.Id} knows level {level} after {_known[node.Id]}");
        }

        _known[node.Id] = level;
        if (level > Newest)
        {
            Newest = level;
            if (nodes.FirstOrDefault(static other => !other.WasRaised) is { } other)
            {
                breaks(
                    "a feature level rises when every node supports it",
                    $"node {node.Id} knows level {level}, and node {other.Id} has never run a build that supports it");
            }
        }
    }

    /// <summary>After code of a node has run, for each of its groups.</summary>
    public void Look(SimNode node, Group group)
    {
        if (group.Core.Level > node.Features.Max)
        {
            breaks(
                "no node holds an entry above its feature level",
                $"node {node.Id} supports {node.Features}, and {group.Id.Name} has level {group.Core.Level} there");
        }
    }
}
