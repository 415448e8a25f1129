using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>Port: the node's log for all groups. Opened and recovered before the loops start.</summary>
internal interface ILogStore : IAsyncDisposable
{
    /// <summary>What recovery found for a group; the default for a group that has no records.</summary>
    RecoveredGroup Recovered(GroupId group);

    /// <summary>
    /// Reads entries [first, last] of a group for recovery, in order, in EntryCodec chunks of bounded size:
    /// <paramref name="visit"/> gets the index of a chunk's first entry and the chunk, valid during the call. Before
    /// the loops start only.
    /// </summary>
    void Replay(GroupId group, LogIndex first, LogIndex last, Action<LogIndex, ReadOnlyMemory<byte>> visit);

    /// <summary>One writer per loop; completions go to <paramref name="sink"/>, from any thread.</summary>
    ILogWriter OpenWriter(ILogSink sink);

    /// <summary>
    /// The group needs no entry up to <paramref name="index"/> any longer, because they are in its stored state. The
    /// log drops them when all groups have released what lies beside them and it is large enough. Never goes back;
    /// forgotten at the end of the process. Any thread.
    /// </summary>
    void Release(GroupId group, LogIndex index);

    /// <summary>
    /// The group has stopped, so that it will never release anything. Its entries are kept as evidence while the log is
    /// below half of its limit, and dropped above. Forgotten at the end of the process. Any thread.
    /// </summary>
    void Abandon(GroupId group);

    /// <summary>The index before the first entry that the log still holds for the group. Any thread, cheap.</summary>
    LogIndex StartOf(GroupId group);

    /// <summary>
    /// Bytes of the whole log (all groups) from the entry after <paramref name="index"/> to the log's end, rather too
    /// many than too few: 0 when the group has no such entry, all when the log no longer holds it. Any thread,
    /// cheap.
    /// </summary>
    long BytesSince(GroupId group, LogIndex index);

    /// <summary>
    /// Bytes of the log that may be kept for followers beside what this node needs itself: a follower that is further
    /// behind is let go, so that it never makes the log reach its limit.
    /// </summary>
    long HeldBytesMax { get; }

    /// <summary>
    /// Why new writes should be refused (log limit reached, disk nearly full), or null. Cheap; any thread.
    /// </summary>
    string? RefuseWrites { get; }
}

/// <summary>What recovery found for one group.</summary>
/// <param name="HardState">Its hard state.</param>
/// <param name="Terms">
/// The runs of the entries above <paramref name="Start"/>; the first run begins at <paramref name="Start"/> + 1.
/// </param>
/// <param name="LastIndex">The last entry; <paramref name="Start"/> when the log holds none.</param>
/// <param name="Start">The index before the first entry that the log holds; 0 when it holds all.</param>
/// <param name="StartTerm">
/// The term of the entry at <paramref name="Start"/>; the default when it is not known, and for index 0.
/// </param>
internal readonly record struct RecoveredGroup(HardState HardState, IReadOnlyList<TermRun> Terms, LogIndex LastIndex,
    LogIndex Start, Term StartTerm);

/// <summary>
/// Port: one loop's access to the log. Called by the owning loop only; what it is given is copied during the call.
/// </summary>
internal interface ILogWriter
{
    /// <summary>
    /// Begins to add entries from <paramref name="first"/> on to the open batch; what the group had at or above it is
    /// dropped with the same batch. Returns the room for them, which the caller fills with exactly
    /// <paramref name="count"/> entries (EntryCodec) before it calls <see cref="EndAppend"/>: so entries are copied
    /// once, from where they lie to where the log writes from. What is not ended before the next call is dropped.
    /// </summary>
    Span<byte> BeginAppend(GroupId group, LogIndex first, int count, int bytes);

    /// <summary>The room that <see cref="BeginAppend"/> returned is filled.</summary>
    void EndAppend();

    /// <summary>Adds a group's hard state to the open batch.</summary>
    void Save(GroupId group, in HardState state);

    /// <summary>
    /// Adds to the open batch: the group's log begins anew after this entry; all entries that it had are dropped. The
    /// next entry has <paramref name="index"/> + 1.
    /// </summary>
    void Restart(GroupId group, LogIndex index, Term term);

    /// <summary>
    /// Hands the open batch to the log thread and returns its number (ascending from 1), or 0 when the batch is empty.
    /// When it and all before it are on stable storage, <see cref="ILogSink.Persisted"/> is called with the number.
    /// </summary>
    ulong Submit();

    /// <summary>
    /// Batches submitted and not yet persisted; the loop keeps it small so that batches grow instead.
    /// </summary>
    int Pending { get; }

    /// <summary>
    /// Reads entries of a group from <paramref name="first"/> on, about <paramref name="bytesMax"/> bytes (at least one
    /// entry), off the loop; the answer goes to <see cref="ILogSink.Fetched"/>.
    /// </summary>
    void Fetch(GroupId group, NodeId follower, LogIndex first, int bytesMax);
}

/// <summary>Port: where a loop hears from the log. Called from any thread; must not block.</summary>
internal interface ILogSink
{
    /// <summary>Batch <paramref name="batch"/> and all before it are on stable storage.</summary>
    void Persisted(ulong batch);

    /// <summary>
    /// Entries for a follower; empty when they could not be read, or the log no longer holds the first one. The
    /// receiver returns the buffer.
    /// </summary>
    void Fetched(GroupId group, NodeId follower, LogIndex first, ByteBuffer entries);

    /// <summary>A write or sync failed. Nothing is persisted from then on; the node must stop.</summary>
    void Failed(Exception error);
}
