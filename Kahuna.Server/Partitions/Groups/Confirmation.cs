using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// A group that is told when a batch is on stable storage: its log up to an entry, or, without an entry, a hard state.
/// Owned by a <see cref="LogBatch"/>.
/// </summary>
internal struct Confirmation(Group group, LogIndex index, Term term)
{
    /// <summary>The batch; 0 until it is submitted.</summary>
    public ulong Batch;

    public readonly Group Group = group;
    public readonly LogIndex Index = index;
    public readonly Term Term = term;

    /// <summary>No entry is named: a hard state that stands alone was stored.</summary>
    public readonly bool IsHardState => Term.Value == 0;
}
