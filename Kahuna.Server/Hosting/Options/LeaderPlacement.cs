namespace Kahuna.Server.Hosting.Options;

/// <summary>Where the leaders of the partitions should be.</summary>
internal enum LeaderPlacement
{
    /// <summary>All on one node, for the largest batches. The default.</summary>
    Together,

    /// <summary>Distributed over the nodes, to use more machines.</summary>
    Spread,
}
