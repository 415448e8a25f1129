using Kahuna.Server.Primitives;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// The one place through which changes of keys are told: those that commands ask for, and those that nobody asks for
/// (ADR 28). Costs a comparison per change while nobody listens. Owned by one <see cref="KeyStore"/>; not thread-safe.
/// </summary>
internal sealed class ChangeFeed
{
    private IChangeSink? _sink;
    private ChangePosition _next;

    /// <summary>The number of the transaction's first change + 1; 0 outside of transactions.</summary>
    private int _transaction;

    /// <summary>Somebody listens.</summary>
    public bool IsOn => _sink is not null;

    /// <summary>From the next entry on changes are told to a sink; null: to nobody.</summary>
    public void Attach(IChangeSink? sink, GroupId group, Epoch epoch)
    {
        _sink = sink;
        _next = new ChangePosition(group, epoch, default, 0);
    }

    /// <summary>The changes that follow are those of this entry.</summary>
    public void BeginEntry(LogIndex index) => _next = _next with { Index = index, N = 0 };

    /// <summary>The changes from here to <see cref="EndTransaction"/> belong together.</summary>
    public void BeginTransaction() => _transaction = _next.N + 1;

    /// <summary>The changes that follow stand alone again.</summary>
    public void EndTransaction() => _transaction = 0;

    /// <summary>Tells one change. Only while <see cref="IsOn"/>.</summary>
    public void Tell(scoped in Change change)
    {
        if (SystemRowKind.Of(change.Key) is null)
        {
            _sink!.Changed(in _next, change with { Transaction = _transaction });
            _next = _next with { N = _next.N + 1 };
        }
    }
}

/// <summary>
/// One change of a key, as <see cref="IChangeSink"/> is told of it. Its bytes are valid during the call only.
/// </summary>
internal readonly ref struct Change
{
    /// <summary>What happened.</summary>
    public ChangeKind Kind { get; init; }

    /// <summary>The key.</summary>
    public ReadOnlySpan<byte> Key { get; init; }

    /// <summary>
    /// The key's revision since this change. Of <see cref="ChangeKind.HistoryCut"/>: the newest one that can no longer
    /// be read. Of <see cref="ChangeKind.Evicted"/> and <see cref="ChangeKind.Forgotten"/>: the last one it had.
    /// </summary>
    public Revision Revision { get; init; }

    /// <summary>The value that was written; empty for other kinds.</summary>
    public ReadOnlySpan<byte> Value { get; init; }

    /// <summary>The value that was written is null, not empty.</summary>
    public bool IsNull { get; init; }

    /// <summary>The revision before this one can still be read.</summary>
    public bool IsPreviousKept { get; init; }

    /// <summary>
    /// Names the transaction that made the change: the number of its first change + 1; 0 of a change that stands alone.
    /// </summary>
    public int Transaction { get; init; }
}

/// <summary>What happened to a key. Values are not stored.</summary>
internal enum ChangeKind : byte
{
    /// <summary>A command wrote a value: the key has a new revision.</summary>
    Written,

    /// <summary>A command deleted the key: its last revision is the deletion.</summary>
    Deleted,

    /// <summary>
    /// The key's time to live had passed: its last revision is the deletion. No command asked for it.
    /// </summary>
    Expired,

    /// <summary>
    /// There was no room: nothing of the key is left, no revision either. No command of a client asked for it.
    /// </summary>
    Evicted,

    /// <summary>A deleted key's last trace is gone: nothing of it is left. No command asked for it.</summary>
    Forgotten,

    /// <summary>
    /// The key's history was cut: its replaced revisions up to the named one can no longer be read. No command asked
    /// for it.
    /// </summary>
    HistoryCut,
}

/// <summary>
/// Where a change stands among all changes of a group: the same on every member, also after a restart. Positions of one
/// group ascend in the order in which changes are told. A value.
/// </summary>
/// <param name="Group">The Raft group.</param>
/// <param name="Epoch">Of an ephemeral group: its epoch; none of others.</param>
/// <param name="Index">The log entry whose commands made the change.</param>
/// <param name="N">The number of the change among those of the entry, from 0 on.</param>
internal readonly record struct ChangePosition(GroupId Group, Epoch Epoch, LogIndex Index, int N);

/// <summary>
/// Hears of every change of a partition's keys, in the order of the log. Called by the owner of the state while a
/// command is applied: it copies what it needs, and neither reads nor changes the state.
/// </summary>
internal interface IChangeSink
{
    /// <summary>A key has changed.</summary>
    void Changed(in ChangePosition position, scoped in Change change);
}

/// <summary>
/// Keeps the changes that led to a group's state, for readers of other threads. Called by the owner of the state.
/// </summary>
internal interface IChangeLog : IChangeSink
{
    /// <summary>The group.</summary>
    GroupId Group { get; }

    /// <summary>
    /// The state was loaded or begins empty: nothing that led to it is kept. Changes behind <paramref name="applied"/>
    /// follow.
    /// </summary>
    void Restart(Epoch epoch, LogIndex applied);

    /// <summary>The entry is applied as a whole: its changes can be read.</summary>
    void Publish(LogIndex applied);

    /// <summary>
    /// This node had everything then that its leader had committed. The time is the node's own.
    /// </summary>
    void CaughtUp(NodeTime at);

    /// <summary>A turn is over: who waits for news is told.</summary>
    void Announce();
}
