namespace Kahuna.Tests.Tools.Compare;

/// <summary>What was measured of which system. Immutable.</summary>
internal readonly record struct PointKey(string Workload, int Workers, string System)
{
    /// <summary>The workload <c>transaction</c> over two partitions.</summary>
    public const string OfTwoPartitions = "transaction_2";

    /// <summary>Not a load: how late a watch delivers, and what watches cost.</summary>
    public const string Watch = "watch";

    /// <summary>The sets whose changes are delivered, at half of the greatest rate.</summary>
    public const string PacedSet = "paced_set";

    /// <summary>Sets without watches.</summary>
    public const string Unwatched = "set_unwatched";

    /// <summary>Sets beside watches.</summary>
    public const string Watched = "set_watched";

    private static readonly string[] s_workloads =
    [
        "set", "get", "mixed", "sequence", "lock", "handover", "batch", "transaction", OfTwoPartitions, "interactive",
        "script", PacedSet, Watch, Unwatched, Watched,
    ];

    private static readonly string[] s_systems =
        ["kahuna", "kahuna_split", "kahuna_ephemeral", "kahuna_standalone", "etcd", "redis", "redis_pipelined"];

    /// <summary>The workload consists of more than single keys, locks and sequences.</summary>
    public static bool IsOfApplications(string workload) =>
        Array.IndexOf(s_workloads, workload) >= Array.IndexOf(s_workloads, "batch");

    /// <summary>The order in a table.</summary>
    public (int Workload, int Workers, int System) Order =>
        (Array.IndexOf(s_workloads, Workload), Workers, Array.IndexOf(s_systems, System));
}
