using Kahuna.Server.Primitives;
using Kahuna.Server.State.Dispatch;
using Kahuna.Server.State.KeyValues;
using Kahuna.Server.State.Locks;
using Kahuna.Server.State.Meta;
using Kahuna.Server.State.Rows;
using Kahuna.Server.State.Sequences;
using Kahuna.Server.State.Sessions;
using Kahuna.Server.State.Slots;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Watches;

namespace Kahuna.Server.State;

/// <summary>
/// The data of one partition: applies commands in log order, answers reads. Deterministic: same commands with the same
/// times give the same state, byte for byte, on every node. Owned by one loop; not thread-safe.
/// </summary>
internal sealed class StateMachine
{
    private readonly KeyStore _store;
    private readonly KeyValueTable _keyValues;

    /// <summary>The table of each kind of command, by its byte.</summary>
    private readonly CommandHandler?[] _handlers = new CommandHandler?[byte.MaxValue + 1];
    private readonly CommandAnswer _answer;
    private readonly FeatureGate _features;

    /// <summary>An empty state.</summary>
    public StateMachine(StateLimits limits)
        : this(new KeyStore(limits), time: default, limits)
    {
        if (limits.LeasesBeforeMs > default(ClusterTime))
        {
            Locks.BeginAfter(limits.LeasesBeforeMs);
        }

        Slots.Begin(limits);
    }

    /// <summary>A loaded one (<see cref="StateLoader"/>).</summary>
    public StateMachine(KeyStore store, ClusterTime time, StateLimits limits)
    {
        _store = store;
        Ahead = new Prefetcher(store);
        Sessions = new SessionTable(store, limits);
        _answer = new CommandAnswer(Sessions);
        Sequences = new SequenceTable(store);
        Locks = new LockTable(store, limits);
        Meta = new MetaTable(store, limits);
        Slots = new ReleasedSlots(store);
        _keyValues = new KeyValueTable(store);
        _features = new FeatureGate(store, limits);
        foreach (CommandKind kind in Enum.GetValues<CommandKind>())
        {
            _handlers[(byte)kind] = CommandKinds.Of(kind).Table switch
            {
                CommandTable.KeyValues => _keyValues,
                CommandTable.Locks => Locks,
                CommandTable.Sequences => Sequences,
                CommandTable.Sessions => Sessions,
                CommandTable.Meta => Meta,
                CommandTable.Probe => _features.Probe,
                CommandTable.Slots => Slots,
                _ => null,
            };
        }

        Time = time;
    }

    /// <summary>Cluster time of the last applied entry, in ms; never decreases.</summary>
    public ClusterTime Time { get; private set; }

    /// <inheritdoc cref="FeatureGate.Level"/>
    public FeatureLevel Level
    {
        get => _features.Level;
        set => _features.Level = value;
    }

    /// <summary>Prefetches the rows of upcoming commands.</summary>
    public Prefetcher Ahead { get; }

    /// <summary>What makes a command that comes twice take effect once.</summary>
    public SessionTable Sessions { get; }

    /// <summary>The keys.</summary>
    public KeyValueTable KeyValues => _keyValues;

    public SequenceTable Sequences { get; }

    public LockTable Locks { get; }

    /// <summary>The records of the meta group; only that one has any.</summary>
    public MetaTable Meta { get; }

    /// <summary>The slots that the group has given away.</summary>
    public ReleasedSlots Slots { get; }

    public StateCounts Counts => _store.Counts with { Bytes = _store.Counts.Bytes + Locks.IndexBytes };

    /// <summary>Bytes that the state takes up, without memory that is kept for what comes next.</summary>
    public long BytesInUse => _store.BytesInUse + Locks.IndexBytes;

    /// <summary>Bytes of them in which nothing lies: what comes next may take their place.</summary>
    public long FreeBytes => _store.FreeBytes;

    /// <inheritdoc cref="KeyStore.Accounts"/>
    public AccountUsage Accounts => _store.Accounts;

    /// <summary>
    /// True when <see cref="Accounts"/> says what a count of the keys gives. Linear in the state's size.
    /// </summary>
    public bool AccountsMatch => _store.AccountsMatch;

    /// <inheritdoc cref="KeyStore.IsFull"/>
    public bool IsFull => _store.IsFull;

    /// <inheritdoc cref="KeyStore.IsCrowded"/>
    public bool IsCrowded => _store.IsCrowded;

    /// <summary>Bytes that go when keys do; 0 when none may.</summary>
    public long EvictableBytes => _store.HasEvictable ? Math.Max(1, BytesInUse - FreeBytes) : 0;

    /// <summary>Begins to note which keys are used, so that others can go when there is no room.</summary>
    public void TrackUses() => _store.TrackUses();

    /// <inheritdoc cref="KeyValueTable.TryChooseVictims"/>
    public bool TryChooseVictims(ByteBuffer names, int namesBytesMax, ref long bytes) =>
        _keyValues.TryChooseVictims(names, namesBytesMax, ref bytes);

    /// <summary>Keys that changed since the last view, so that the owner can tell when the next one is due.</summary>
    public int ChangedKeys => _store.Changed;

    /// <summary>A view of the whole state as it is now.</summary>
    public StateView ViewAll() => new(_store, _store.TakeChanged(andOthers: true), Time);

    /// <summary>
    /// A view of the keys that changed since the last view, as they are now. What it hands out must reach the store, or
    /// a view of all must.
    /// </summary>
    public StateView ViewChanges() => new(_store, _store.TakeChanged(andOthers: false), Time);

    /// <summary>
    /// From the next entry on every change of a key is told to a sink; null: to nobody. A state that is loaded tells
    /// nothing of what it begins with.
    /// </summary>
    /// <param name="sink">Hears of the changes.</param>
    /// <param name="group">The group that this is the state of.</param>
    /// <param name="epoch">Of an ephemeral group: the epoch that this is the state of.</param>
    public void TellChanges(IChangeSink? sink, GroupId group, Epoch epoch) => _store.Changes.Attach(sink, group, epoch);

    /// <summary>
    /// Begins an entry whose commands apply at <paramref name="time"/>; a time below <see cref="Time"/> counts as
    /// Time.
    /// </summary>
    /// <remarks>
    /// A change of what a command does is gated by <paramref name="level"/>, the level under which the entry was
    /// proposed: <c>if (Level >= X) { new way } else { old way }</c>. The old way stays as long as builds support a
    /// level below X. Nothing else may decide: what this build supports, or what the cluster has by now, differs
    /// between the nodes that apply the entry (docs/adr/0032-feature-levels.md).
    /// </remarks>
    /// <param name="index">The entry.</param>
    /// <param name="time">Cluster time.</param>
    /// <param name="level">The entry's feature level.</param>
    public void BeginEntry(LogIndex index, ClusterTime time, FeatureLevel level = default)
    {
        Level = level;
        Time = ClusterTime.Max(Time, time);
        _store.Changes.BeginEntry(index);
    }

    /// <summary>
    /// Applies one mutation. With <paramref name="outcome"/> the encoded outcome (Wire/Outcomes/Outcome) is appended
    /// there; without (followers, restart) the effect is the same and nothing is encoded.
    /// </summary>
    /// <param name="command">A command that passed the door.</param>
    /// <param name="outcome">Takes the encoded outcome; null: nobody asks for it.</param>
    /// <param name="known">The hash of the command's key, where it is known.</param>
    public void Apply(scoped in Command command, ByteBuffer? outcome, KnownHash known = default)
    {
        _store.DropOld(Time);
        _store.Account = command.Account;
        _answer.Begin(outcome);
        if (_features.Admits(command.Kind, _answer)
            && (!command.Has(CommandFlags.Session) || IsNew(in command, outcome))
            && IsOwn(in command)
            && !_keyValues.Refuses(in command, _answer)
            && (!command.Has(CommandFlags.Fenced) || Locks.PassesFence(in command, _answer)))
        {
            HandlerOf(command.Kind).Apply(in command, Time, known, _answer);
        }
    }

    /// <summary>
    /// True for a command that was carried out here before: applied again, it changes nothing and gets the outcome that
    /// is remembered. Not for idempotency keys.
    /// </summary>
    public bool IsRepetition(scoped in Command command) =>
        command.Has(CommandFlags.Session)
            && !command.Has(CommandFlags.Keyed)
            && Sessions.HasCarriedOut(command.SessionId, command.Sequence);

    /// <inheritdoc cref="CommandHandler.Read"/>
    public bool Read(scoped in Command command, ClusterTime now, ByteBuffer outcome, KnownHash known = default)
    {
        if (Slots.Refuses(in command))
        {
            Slots.Refusal(in command).Write(outcome);
            return true;
        }

        return HandlerOf(command.Kind).Read(in command, Time, now, known, outcome);
    }

    /// <summary>
    /// True when some key's time to live has passed at <paramref name="now"/> and it is still there: the leader then
    /// proposes an ExpireSweep.
    /// </summary>
    public bool HasExpired(ClusterTime now) => _store.Expiry.AnyPassed(now);

    /// <inheritdoc cref="KeyValueTable.CountDue"/>
    public int CountDue(ClusterTime now, int countMax) => _keyValues.CountDue(now, countMax);

    /// <summary>
    /// 64-bit digest of keys, values, revisions, times to live and history; equal on nodes that applied the same
    /// entries.
    /// </summary>
    public ulong Digest => _store.Digest;

    /// <summary>
    /// The digest computed anew from every byte; differs from <see cref="Digest"/> when something is damaged. Linear in
    /// the state's size.
    /// </summary>
    public ulong RecomputeDigest() => _store.RecomputeDigest();

    private CommandHandler HandlerOf(CommandKind kind)
    {
        CommandHandler? handler = _handlers[(byte)kind];
        InvariantException.Require(handler is not null, "the log holds only commands that this version applies");
        return handler;
    }

    /// <summary>
    /// True for a command without a number, or with a new one. Another one is not carried out, and is answered here.
    /// </summary>
    private bool IsNew(scoped in Command command, ByteBuffer? outcome)
    {
        if (!command.Has(CommandFlags.Session))
        {
            return true;
        }

        ulong session = command.SessionId;
        if (command.Has(CommandFlags.Keyed))
        {
            ulong incarnation = Sequences.IncarnationOf(command.Key);
            if (incarnation == 0)
            {
                return true;
            }

            session = SessionTable.KeyOf(session, incarnation);
        }

        // In a slot that was given away, an unknown session was not carried out here, and begins nothing: the slot's
        // new group has the session, or opens it.
        return (Slots.Refuses(in command) && !Sessions.Knows(session))
            || Sessions.IsNew(in command, session, Time, _answer, outcome);
    }

    /// <summary>
    /// True for a command whose slot this group has not given away. Another one is refused here, and its number may
    /// come again. It is asked only after the number: what was carried out before the slot was given away keeps its
    /// outcome.
    /// </summary>
    private bool IsOwn(scoped in Command command)
    {
        if (!Slots.Refuses(in command))
        {
            return true;
        }

        _answer.ForgetNumber();
        _answer.Give(Slots.Refusal(in command));
        return false;
    }
}

/// <summary>
/// A group's state in memory together with the last log entry that is in it. Owned by one group; not thread-safe.
/// </summary>
/// <param name="state">The state to begin with.</param>
/// <param name="index">The last entry in it; 0 for an empty state.</param>
/// <param name="term">The term of that entry.</param>
/// <param name="level">The feature level of that entry.</param>
/// <param name="changes">Keeps the changes of keys; null: they are not kept.</param>
internal sealed class AppliedState(
    StateMachine state, LogIndex index = default, Term term = default, FeatureLevel level = default,
    IChangeLog? changes = null)
{
    private Epoch _epoch;

    /// <summary>The state.</summary>
    public StateMachine State { get; private set; } = Heard(AtLevel(state, level), changes, default, index);

    /// <summary>The changes of keys that led to the state; null: they are not kept.</summary>
    public IChangeLog? Changes => changes;

    /// <summary>The last entry in the state.</summary>
    public LogIndex Index { get; private set; } = index;

    /// <summary>The term of the last entry in the state.</summary>
    public Term Term { get; private set; } = term;

    /// <summary>The feature level of the last entry in the state.</summary>
    public FeatureLevel Level { get; private set; } = level;

    /// <summary>Cluster time of the last applied entry.</summary>
    public ClusterTime Time => State.Time;

    /// <summary>
    /// Something in the state ends by itself: a key, a lease, a wait, or what is remembered of a client.
    /// </summary>
    public bool HasDeadlines =>
        State.HasExpired(ClusterTime.Never) || State.Locks.HasWork(ClusterTime.Never)
        || State.Locks.Metrics.Waiting > 0 || State.Sessions.Count > 0;

    /// <summary>Behind all changes that led to the state.</summary>
    public ChangePoint PointOf(GroupId group) => ChangePoint.After(group.Value, _epoch.Value, Index.Value);

    /// <summary>The entry was carried out. Entries are applied once and in order.</summary>
    public void Advance(LogIndex to, Term term, FeatureLevel level)
    {
        InvariantException.Require(to == Index.Next(), "entries are applied once and in order");
        InvariantException.Require(term >= Term, "the terms of applied entries never decrease");
        InvariantException.Require(level >= Level, "the feature levels of applied entries never decrease");
        Index = to;
        Term = term;
        Level = level;
        AtLevel(State, level);
        changes?.Publish(to);
    }

    /// <summary>Another state takes the place of this one.</summary>
    public void Replace(StateMachine state, LogIndex index, Term term, FeatureLevel level)
    {
        State = State == state ? AtLevel(state, level) : Heard(AtLevel(state, level), changes, _epoch, index);
        Index = index;
        Term = term;
        Level = level;
    }

    /// <summary>
    /// Everything that was is void: goes on with an empty state in a new epoch. A level never falls.
    /// </summary>
    public void BeginAnew(StateMachine empty, Epoch epoch)
    {
        _epoch = epoch;
        Replace(empty, default, default, Level);
    }

    /// <summary>The state is superseded: its memory is given up before another one takes its place.</summary>
    public void Drop(StateMachine empty) => State = empty;

    private static StateMachine Heard(StateMachine state, IChangeLog? changes, Epoch epoch, LogIndex index)
    {
        if (changes is not null)
        {
            changes.Restart(epoch, index);
            state.TellChanges(changes, changes.Group, epoch);
        }

        return state;
    }

    private static StateMachine AtLevel(StateMachine state, FeatureLevel level)
    {
        state.Level = level;
        return state;
    }
}

/// <summary>
/// Brings what the next commands touch into the processor's caches, for many at a time. Among a million keys each
/// command waits for memory several times, for one place after the other; asked for in groups, the places of all its
/// commands arrive together. Changes no state. Owned by one <see cref="StateMachine"/>; not thread-safe.
/// </summary>
internal sealed class Prefetcher(KeyStore store)
{
    /// <summary>Commands of one group: their lines fit the first cache many times over.</summary>
    public const int CommandsMax = 32;

    /// <summary>Keys of items of the group's commands.</summary>
    private const int ItemsMax = 96;

    /// <summary>Lines of a key and its value; what follows in longer ones, the processor foresees by itself.</summary>
    private const int BlockLinesMax = 4;

    private readonly uint[] _hashes = new uint[CommandsMax];
    private readonly Row[] _rows = new Row[CommandsMax];
    private readonly uint[] _itemHashes = new uint[ItemsMax];
    private readonly Row[] _itemRows = new Row[ItemsMax];
    private int _count;
    private int _items;
    private int _known;

    /// <summary>One more key of the group.</summary>
    public void Add(ReadOnlySpan<byte> key)
    {
        uint hash = store.Keys.HashOf(key);
        store.Keys.PrefetchBucket(hash);
        _hashes[_count++] = hash;
    }

    /// <summary>A key that a command of the group names besides its own; left out when there are many.</summary>
    public void AddItem(ReadOnlySpan<byte> key)
    {
        if (_items < ItemsMax)
        {
            uint hash = store.Keys.HashOf(key);
            store.Keys.PrefetchBucket(hash);
            _itemHashes[_items++] = hash;
        }
    }

    /// <summary>Asks for all that reads of the group's keys touch, and begins a new group.</summary>
    public void PrefetchReads()
    {
        PrefetchRows();
        for (int i = 0; i < _count; i++)
        {
            store.Keys.PrefetchBlock(_rows[i], BlockLinesMax);
        }

        (_known, _count) = (_count, 0);
    }

    /// <summary>
    /// Asks for all that writes of the group's keys touch, replaced revisions that they will push out included, and
    /// begins a new group.
    /// </summary>
    public void PrefetchWrites()
    {
        PrefetchRows();
        for (int i = 0; i < _count; i++)
        {
            // Of a value that goes to history, only the key is read, in the block's first line.
            store.Keys.PrefetchBlock(_rows[i], 1);
            store.History.PrefetchNewest(_rows[i]);
        }

        for (int i = 0; i < _items; i++)
        {
            store.Keys.PrefetchBlock(_itemRows[i], BlockLinesMax);
            store.History.PrefetchNewest(_itemRows[i]);
        }

        store.History.PrefetchEarliest(_count + _items, BlockLinesMax);
        (_known, _count, _items) = (_count, 0, 0);
    }

    /// <summary>
    /// The hash of the group's i-th key, counted from 0, so that it is computed once: hashing with a secret takes a
    /// seventh of a read whose lines are here. Unknown past the group's end.
    /// </summary>
    public KnownHash HashOf(int i) => (uint)i < (uint)_known ? new KnownHash(_hashes[i]) : default;

    /// <summary>There is no group: what is applied next was not looked at.</summary>
    public void Forget() => _known = 0;

    private void PrefetchRows()
    {
        for (int i = 0; i < _count; i++)
        {
            _rows[i] = store.Keys.PrefetchRow(_hashes[i]);
        }

        for (int i = 0; i < _items; i++)
        {
            _itemRows[i] = store.Keys.PrefetchRow(_itemHashes[i]);
        }
    }
}

/// <summary>
/// Decides by the feature level of an entry which of its commands are carried out. Owned by one
/// <see cref="StateMachine"/>; not thread-safe.
/// </summary>
internal sealed class FeatureGate(KeyStore store, StateLimits limits)
{
    /// <summary>Null but in a test's build with a raised feature level.</summary>
    private readonly FeatureProbe? _probe =
        limits.Features.Contains(FeatureLevels.Test) ? new FeatureProbe(store) : null;

    /// <inheritdoc cref="KeyStore.Level"/>
    public FeatureLevel Level
    {
        get => store.Level;
        set => store.Level = value;
    }

    /// <summary>Carries out the commands of a test's build; null in others.</summary>
    public CommandHandler? Probe => _probe;

    /// <summary>
    /// False for a command above the entry's level, which is answered here. On every node alike: what the build
    /// supports does not count.
    /// </summary>
    public bool Admits(CommandKind kind, CommandAnswer answer)
    {
        if (_probe is not null && Level >= FeatureLevels.Test)
        {
            _probe.Count();
        }

        if (CommandKinds.Of(kind).Since <= Level)
        {
            return true;
        }

        answer.Give(new Outcome(OutcomeStatus.Unimplemented));
        return false;
    }
}
