namespace Kahuna.Tests.Cluster;

/// <summary>The body of GET /status, as far as the tests read it. Immutable.</summary>
internal sealed record NodeStatus(int NodeId, bool Ready, IReadOnlyList<PartitionRow> Partitions)
{
    public IReadOnlyList<PartitionRow> EphemeralPartitions { get; init; } = [];

    public int ProcessId { get; init; }

    public int FeatureLevel { get; init; }

    public StorageRow Storage { get; init; }

    public long PersistentBytes { get; init; }

    public long EphemeralBytes { get; init; }

    public CollectorRow Gc { get; init; } = new(0, 0, 0, 0, [], []);

    /// <summary>Leads every partition.</summary>
    public bool LeadsAll => Partitions.Count > 0 && Partitions.All(partition => partition.Role == "leader");

    /// <summary>Leads the ephemeral keys of every partition.</summary>
    public bool LeadsAllEphemeral =>
        EphemeralPartitions.Count > 0 && EphemeralPartitions.All(partition => partition.Role == "leader");

    public ulong Term => Partitions.Count == 0 ? 0 : Partitions.Max(partition => partition.Term);
}

/// <summary>One partition as the answering node sees it. Immutable.</summary>
internal sealed record PartitionRow(int Partition, string Role, ulong Term, int Leader, ulong CommitIndex)
{
    public ulong AppliedIndex { get; init; }

    public string Digest { get; init; } = "";

    public long Keys { get; init; }

    public ulong StoredIndex { get; init; }

    public ulong LogStart { get; init; }

    public bool MayVote { get; init; }

    public ulong Epoch { get; init; }

    public long Evicted { get; init; }

    public SessionRow Sessions { get; init; }

    public LockFigureRow Locks { get; init; }
}

/// <summary>The garbage collector and the process's memory.</summary>
internal sealed record CollectorRow(
    long HeapBytes,
    long CommittedBytes,
    long WorkingSetBytes,
    double LongestPauseMs,
    IReadOnlyList<double> LatestPausesMs,
    IReadOnlyList<GenerationRow> Generations)
{
    public int Pauses { get; init; }
}

/// <summary>What holds a node's states, and the size of its log.</summary>
internal readonly record struct StorageRow(string StateStore, long LogBytes);

/// <summary>A generation of the heap, as the latest collection left it.</summary>
internal sealed record GenerationRow(string Name, long Bytes, long FreeBytes);

/// <summary>What a partition remembers of clients.</summary>
internal readonly record struct SessionRow(int Count, long Bytes, long Repeats, long Refusals, long Forgotten);

/// <summary>Claims for locks.</summary>
internal readonly record struct LockFigureRow(int Held, int Waiting, long Expired);
