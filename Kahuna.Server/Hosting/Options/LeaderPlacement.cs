namespace Kahuna.Server.Hosting.Options;

/// <summary>Where the leaders of the partitions belong.</summary>
internal enum LeaderPlacement
{
    /// <summary>All on one node: the largest batches. The default.</summary>
    Together,

    /// <summary>Distributed over the nodes: more machines at work.</summary>
    Spread,
}
