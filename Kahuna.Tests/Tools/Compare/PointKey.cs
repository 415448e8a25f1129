namespace Kahuna.Tests.Tools.Compare;

/// <summary>What was measured of which system. Immutable.</summary>
internal readonly record struct PointKey(string Workload, int Workers, string System)
{
    private static readonly string[] s_workloads = ["set", "get", "mixed", "sequence", "lock", "handover"];
    private static readonly string[] s_systems =
        ["kahuna", "kahuna_ephemeral", "kahuna_standalone", "etcd", "redis", "redis_pipelined"];

    /// <summary>The order in a table.</summary>
    public (int Workload, int Workers, int System) Order =>
        (Array.IndexOf(s_workloads, Workload), Workers, Array.IndexOf(s_systems, System));
}
