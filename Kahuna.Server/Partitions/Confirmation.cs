using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions;

/// <summary>When a batch is durable, a partition's log is up to an entry. Owned by a <see cref="TurnOutput"/>.</summary>
internal struct Confirmation(ulong batch, Partition partition, LogIndex index, Term term)
{
    public ulong Batch = batch;
    public readonly Partition Partition = partition;
    public readonly LogIndex Index = index;
    public readonly Term Term = term;
}
