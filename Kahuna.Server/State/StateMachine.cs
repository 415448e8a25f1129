using Kahuna.Server.Primitives;
using Kahuna.Server.State.Dispatch;
using Kahuna.Server.State.KeyValues;
using Kahuna.Server.State.Locks;
using Kahuna.Server.State.Meta;
using Kahuna.Server.State.Rows;
using Kahuna.Server.State.Sequences;
using Kahuna.Server.State.Sessions;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.State;

/// <summary>
/// The data of one partition: applies commands in log order, answers reads. Deterministic: same commands with the same
/// times give the same state, byte for byte, on every node. Owned by one loop; not thread-safe.
/// </summary>
internal sealed class StateMachine
{
    private readonly KeyStore _store;

    /// <summary>The table of each kind of command, by its byte.</summary>
    private readonly CommandHandler?[] _handlers = new CommandHandler?[byte.MaxValue + 1];
    private readonly CommandAnswer _answer;

    /// <summary>An empty state.</summary>
    public StateMachine(StateLimits limits)
        : this(new KeyStore(limits), timeMs: 0, limits)
    {
        if (limits.LeasesBeforeMs > 0)
        {
            Locks.BeginAfter(limits.LeasesBeforeMs);
        }
    }

    /// <summary>A loaded one (<see cref="StateLoader"/>).</summary>
    public StateMachine(KeyStore store, long timeMs, StateLimits limits)
    {
        _store = store;
        Ahead = new Prefetcher(store);
        Sessions = new SessionTable(store, limits);
        _answer = new CommandAnswer(Sessions);
        Sequences = new SequenceTable(store);
        Locks = new LockTable(store, limits);
        Meta = new MetaTable(store, limits);
        KeyValueTable keyValues = new(store);
        foreach (CommandKind kind in Enum.GetValues<CommandKind>())
        {
            _handlers[(byte)kind] = CommandKinds.Of(kind).Table switch
            {
                CommandTable.KeyValues => keyValues,
                CommandTable.Locks => Locks,
                CommandTable.Sequences => Sequences,
                CommandTable.Sessions => Sessions,
                CommandTable.Meta => Meta,
                _ => null,
            };
        }

        TimeMs = timeMs;
    }

    /// <summary>Cluster time of the last applied entry, in ms; never decreases.</summary>
    public long TimeMs { get; private set; }

    /// <summary>For whoever has many commands at hand.</summary>
    public Prefetcher Ahead { get; }

    /// <summary>What makes a command that comes twice take effect once.</summary>
    public SessionTable Sessions { get; }

    public SequenceTable Sequences { get; }

    public LockTable Locks { get; }

    /// <summary>The records of the meta group; only that one has any.</summary>
    public MetaTable Meta { get; }

    public StateCounts Counts => _store.Counts with { Bytes = _store.Counts.Bytes + Locks.IndexBytes };

    /// <summary>Bytes that the state takes up, without memory that is kept for what comes next.</summary>
    public long BytesInUse => _store.BytesInUse + Locks.IndexBytes;

    /// <summary>Bytes of them in which nothing lies: what comes next may take their place.</summary>
    public long FreeBytes => _store.FreeBytes;

    /// <inheritdoc cref="KeyStore.IsFull"/>
    public bool IsFull => _store.IsFull;

    /// <inheritdoc cref="KeyStore.IsCrowded"/>
    public bool IsCrowded => _store.IsCrowded;

    /// <summary>Bytes that go when keys do; 0 when none may.</summary>
    public long EvictableBytes => _store.HasEvictable ? Math.Max(1, BytesInUse - FreeBytes) : 0;

    /// <summary>Begins to note which keys are used, so that others can go when there is no room.</summary>
    public void TrackUses() => _store.TrackUses();

    /// <inheritdoc cref="Eviction.TryChoose"/>
    public bool TryChooseVictims(ByteBuffer names, int namesBytesMax, ref long bytes) =>
        Eviction.TryChoose(_store, names, namesBytesMax, ref bytes);

    /// <summary>Keys that changed since the last view, so that the owner can tell when the next one is due.</summary>
    public int ChangedKeys => _store.Changed;

    /// <summary>A view of the whole state as it is now.</summary>
    public StateView ViewAll() => new(_store, _store.TakeChanged(andOthers: true), TimeMs);

    /// <summary>
    /// A view of the keys that changed since the last view, as they are now. What it hands out must reach the store, or
    /// a view of all must.
    /// </summary>
    public StateView ViewChanges() => new(_store, _store.TakeChanged(andOthers: false), TimeMs);

    /// <summary>
    /// From the next entry on every change of a key is told to a sink; null: to nobody. A state that is loaded tells
    /// nothing of what it begins with.
    /// </summary>
    /// <param name="sink">Hears of the changes.</param>
    /// <param name="group">The group that this is the state of.</param>
    /// <param name="epoch">Of an ephemeral group: the epoch that this is the state of.</param>
    public void TellChanges(IChangeSink? sink, GroupId group, Epoch epoch) => _store.Changes.Attach(sink, group, epoch);

    /// <summary>
    /// Begins an entry whose commands apply at <paramref name="timeMs"/>; a time below <see cref="TimeMs"/> counts as
    /// TimeMs.
    /// </summary>
    public void BeginEntry(LogIndex index, long timeMs)
    {
        TimeMs = Math.Max(TimeMs, timeMs);
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
        _store.DropOld(TimeMs);
        _answer.Begin(outcome);
        if (!command.Has(CommandFlags.Session | CommandFlags.Fenced)
            || (IsNew(in command, outcome) && PassesFence(in command)))
        {
            HandlerOf(command.Kind).Apply(in command, TimeMs, known, _answer);
        }
    }

    /// <inheritdoc cref="CommandHandler.Read"/>
    public bool Read(scoped in Command command, long nowMs, ByteBuffer outcome, KnownHash known = default) =>
        HandlerOf(command.Kind).Read(in command, TimeMs, nowMs, known, outcome);

    /// <summary>
    /// True when some key's time to live has passed at <paramref name="nowMs"/> and it is still there: the leader then
    /// proposes an ExpireSweep.
    /// </summary>
    public bool HasExpired(long nowMs) => _store.Expiry.AnyPassed(nowMs);

    /// <inheritdoc cref="ExpirySweep.CountDue"/>
    public int CountDue(long nowMs, int countMax) => ExpirySweep.CountDue(_store, nowMs, countMax);

    /// <summary>
    /// 64-bit digest of keys, values, revisions, times to live and history; equal on nodes that applied the same
    /// entries.
    /// </summary>
    public ulong Digest => _store.Digest;

    /// <summary>
    /// The digest computed anew from every byte; differs from <see cref="Digest"/> when something is damaged. Linear in
    /// the state's size.
    /// </summary>
    public ulong RecomputeDigest() => StateDigest.Recompute(_store);

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

            session = IdempotencyKey.AsKey(StateDigest.Mix(command.SessionId ^ StateDigest.Mix(incarnation)));
        }

        SessionAdmission admission = Sessions.Begin(in command, session, TimeMs);
        if (admission != SessionAdmission.New)
        {
            Sessions.Answer(admission, outcome);
            return false;
        }

        _answer.RememberNumber();
        return true;
    }

    /// <summary>
    /// True for a command without a fence, or with a token that has its lock. Another one is refused here.
    /// </summary>
    private bool PassesFence(scoped in Command command)
    {
        if (!command.Has(CommandFlags.Fenced)
            || Locks.IsCurrent(command.FenceName, new FencingToken(command.FenceToken)))
        {
            return true;
        }

        _answer.Give(LockOutcome.FenceFailed(Locks.CurrentToken(command.FenceName)));
        return false;
    }
}
