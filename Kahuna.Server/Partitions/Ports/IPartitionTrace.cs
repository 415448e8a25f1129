using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// Port: hears what the partitions of a node do, for a checker that sees the traces of all nodes (docs/simulation.md).
/// Called by the owner of a partition, from any thread; keeps what it is told in order, and does not throw.
/// </summary>
internal interface IPartitionTrace
{
    /// <summary>
    /// What a start found in the log, before it is replayed, and how far that is known to be committed.
    /// </summary>
    void Recovered(GroupId group, in RecoveredGroup found, LogIndex commit);

    /// <summary>Entries (EntryCodec) that a start has read back from the log.</summary>
    void Replayed(GroupId group, LogIndex first, ReadOnlySpan<byte> entries);

    /// <summary>
    /// The state in memory is the one after this entry: after a start, or because a snapshot was installed.
    /// </summary>
    void StateLoaded(GroupId group, LogIndex index, Term term, ulong digest);

    void BecameLeader(GroupId group, Term term, LogIndex last, LogIndex commit);

    /// <summary>Entries up to this one are committed, as this node knows it; the last has this term.</summary>
    void Committed(GroupId group, LogIndex index, Term term);

    /// <summary>Entries from <paramref name="first"/> on are applied; the state's digest after each of them.</summary>
    void Applied(GroupId group, LogIndex first, ReadOnlySpan<ulong> digests);

    /// <summary>The callers of this entry's writes are about to be answered.</summary>
    void Acknowledged(GroupId group, LogIndex index, Term term, int writes);

    /// <summary>
    /// What was told so far must outlive the process: something that rests on it leaves the node next.
    /// </summary>
    void Flush();
}
