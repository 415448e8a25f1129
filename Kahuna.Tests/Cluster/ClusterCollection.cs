namespace Kahuna.Tests.Cluster;

/// <summary>
/// Tests that start real server processes: one after the other, and not beside the other tests, which would take their
/// processor time away.
/// </summary>
[CollectionDefinition(Name, DisableParallelization = true)]
public sealed class ClusterCollection
{
    public const string Name = "Real processes";
}
