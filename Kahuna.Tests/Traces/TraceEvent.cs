namespace Kahuna.Tests.Traces;

/// <summary>One line of a trace; which properties count depends on the kind. Immutable.</summary>
internal sealed record TraceEvent
{
    public required TracePlace Place { get; init; }

    public required TraceEventKind Kind { get; init; }

    public required long TimeNs { get; init; }

    public required int Node { get; init; }

    public required string Run { get; init; }

    /// <summary>0 only for a start.</summary>
    public uint Group { get; init; }

    // ---- Start
    public int Voters { get; init; }

    public string Directory { get; init; } = string.Empty;

    // ---- Where the log stands
    public ulong LogStart { get; init; }

    public ulong LogStartTerm { get; init; }

    public ulong Last { get; init; }

    /// <summary>First index and term of each run of entries of one term.</summary>
    public IReadOnlyList<(ulong First, ulong Term)> Runs { get; init; } = [];

    public ulong Commit { get; init; }

    // ---- What it is about

    /// <summary>The entry; of what is persisted the last one.</summary>
    public ulong Index { get; init; }

    /// <summary>Of what is persisted the term of the entry.</summary>
    public ulong IndexTerm { get; init; }

    /// <summary>The entry's term, or that of the node where the event is about a node.</summary>
    public ulong Term { get; init; }

    /// <summary>The candidate that has the node's vote, 0 for none.</summary>
    public int Vote { get; init; }

    public ulong Batch { get; init; }

    public ulong First { get; init; }

    public IReadOnlyList<TracedEntry> Entries { get; init; } = [];

    public IReadOnlyList<ulong> Digests { get; init; } = [];

    public long Writes { get; init; }
}
