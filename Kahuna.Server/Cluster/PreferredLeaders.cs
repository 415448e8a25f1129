using Kahuna.Server.Primitives;

namespace Kahuna.Server.Cluster;

/// <summary>Chooses the preferred leader of each partition. Stateless.</summary>
internal static class PreferredLeaders
{
    /// <summary>Together: the first node leads all partitions. Spread: partition p prefers node p modulo n.</summary>
    public static Func<int, NodeId> For(bool together, IReadOnlyList<NodeId> nodes)
    {
        NodeId[] ordered = [.. nodes.Order()];
        return together ? _ => ordered[0] : partition => ordered[partition % ordered.Length];
    }
}
