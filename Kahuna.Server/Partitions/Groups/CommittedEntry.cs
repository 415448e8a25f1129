using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>One committed entry. Valid as long as the bytes it was read from.</summary>
internal readonly ref struct CommittedEntry(LogIndex index, EntryKind kind, ReadOnlySpan<byte> payload)
{
    /// <summary>Its place in the log.</summary>
    public LogIndex Index { get; } = index;

    /// <summary>What its payload is.</summary>
    public EntryKind Kind { get; } = kind;

    /// <summary>
    /// Commands (<see cref="Requests.CommandEntry"/>), or a check (<see cref="Snapshots.CheckEntry"/>).
    /// </summary>
    public ReadOnlySpan<byte> Payload { get; } = payload;
}
