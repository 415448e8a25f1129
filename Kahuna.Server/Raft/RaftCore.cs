using Kahuna.Client.Wire.Buffers;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// Raft for one group: it computes and never waits. Inputs are <see cref="Step"/>, <see cref="Tick"/>,
/// <see cref="TryPropose"/>, <see cref="TryRead"/>, <see cref="Persisted"/>; after any number of them the owner carries
/// out the <i>Ready</i> (the properties below) and calls <see cref="Advance"/>. Owned by one loop; not thread-safe.
/// </summary>
internal sealed class RaftCore
{
    public RaftCore(RaftConfig config, RaftStart start) => throw new NotSupportedException();

    // ---- Where it stands
    public RaftRole Role => throw new NotSupportedException();

    public Term Term => throw new NotSupportedException();

    /// <summary>The leader of the current term as far as known.</summary>
    public NodeId Leader => throw new NotSupportedException();

    public LogIndex CommitIndex => throw new NotSupportedException();

    public LogIndex LastIndex => throw new NotSupportedException();

    /// <summary>Last index that is on this node's stable storage.</summary>
    public LogIndex DurableIndex => throw new NotSupportedException();

    // ---- Inputs

    /// <summary>Start only: hands over the recovered entries above the applied index, first index given, in EntryCodec; they count as durable.</summary>
    public void Restore(LogIndex first, ReadOnlySpan<byte> entries) => throw new NotSupportedException();

    /// <summary>One tick of the owner's clock has passed.</summary>
    public void Tick() => throw new NotSupportedException();

    /// <summary>A message has arrived; <paramref name="entries"/> (EntryCodec) only with an append. Both are read during the call only.</summary>
    public void Step(in RaftMessage message, ReadOnlySpan<byte> entries) => throw new NotSupportedException();

    /// <summary>Leader: appends one entry (the payload is copied). False when not leader or leadership is being transferred; nothing was done then.</summary>
    public bool TryPropose(EntryKind kind, ReadOnlySpan<byte> payload, out LogIndex index) => throw new NotSupportedException();

    /// <summary>
    /// Leader: registers a linearizable read. Reads registered before the next Ready share a ticket; a ticket is confirmed
    /// by a later <see cref="ReadStates"/> or, when leadership is lost, never. False when not leader.
    /// </summary>
    public bool TryRead(out ulong ticket) => throw new NotSupportedException();

    /// <summary>Leader: hands leadership to a caught-up voter; gives up after an election timeout. False when not leader or the target is no other voter.</summary>
    public bool TryTransfer(NodeId target) => throw new NotSupportedException();

    /// <summary>Any role: campaign now (single node start, tests).</summary>
    public void Campaign() => throw new NotSupportedException();

    /// <summary>
    /// Entries up to <paramref name="index"/>, whose last has term <paramref name="term"/>, and every hard state handed out
    /// with or before them, are on this node's stable storage.
    /// </summary>
    public void Persisted(LogIndex index, Term term) => throw new NotSupportedException();

    /// <summary>A frame to this follower was lost on the way out (queue full, link down): probe instead of pipelining.</summary>
    public void ReportUnreachable(NodeId follower) => throw new NotSupportedException();

    /// <summary>
    /// The answer to a <see cref="LogFetch"/>: encoded entries from <paramref name="first"/> on (empty: could not be read; it is
    /// asked again later). True with the append to send, whose entries are those given and not in the core's memory.
    /// </summary>
    public bool CompleteFetch(NodeId follower, LogIndex first, ReadOnlySpan<byte> entries, out RaftMessage append) => throw new NotSupportedException();

    // ---- The Ready: valid until Advance

    public bool HasReady => throw new NotSupportedException();

    /// <summary>The hard state must be persisted with this Ready's entries (term or vote changed, or entries are persisted and commit moved).</summary>
    public bool HardStateChanged => throw new NotSupportedException();

    public HardState HardState => throw new NotSupportedException();

    /// <summary>Entries to append to storage, [first, last]; empty when first is greater than last. Storage drops what it has at or above first.</summary>
    public (LogIndex First, LogIndex Last) Unpersisted => throw new NotSupportedException();

    public ReadOnlySpan<OutgoingMessage> Messages => throw new NotSupportedException();

    /// <summary>Entries to apply, [first, last]; empty when first is greater than last. A leader's committed entry may not yet be durable here: a majority of others has it.</summary>
    public (LogIndex First, LogIndex Last) Committed => throw new NotSupportedException();

    public ReadOnlySpan<ReadState> ReadStates => throw new NotSupportedException();

    public ReadOnlySpan<LogFetch> Fetches => throw new NotSupportedException();

    /// <summary>The Ready has been carried out: persisted means handed to storage, sent means handed to the transport, committed means applied.</summary>
    public void Advance() => throw new NotSupportedException();

    // ---- Entries in memory

    /// <summary>An entry that memory holds: anything above the applied or above the durable index, and some cache below.</summary>
    public ReadOnlySpan<byte> Payload(LogIndex index, out Term term, out EntryKind kind) => throw new NotSupportedException();

    /// <summary>Appends entries [first, first + count) in EntryCodec.</summary>
    public void CopyEntries(LogIndex first, int count, ByteBuffer target) => throw new NotSupportedException();

    /// <summary>Leader: the highest index known to be on this member's log; 0 when unknown.</summary>
    public LogIndex MatchIndex(NodeId member) => throw new NotSupportedException();

    /// <summary>Leader: this member answered within the last election timeout.</summary>
    public bool IsActive(NodeId member) => throw new NotSupportedException();
}
