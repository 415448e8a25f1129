using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Outcomes;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Locks;
using Kahuna.Server.State.Meta;
using Kahuna.Server.State.Sequences;
using Kahuna.Server.State.Sessions;

namespace Kahuna.Server.State;

/// <summary>
/// The data of one partition: applies commands in log order, answers reads. Deterministic: same commands with the same
/// times give the same state, byte for byte, on every node. Owned by one loop; not thread-safe.
/// </summary>
internal sealed class StateMachine
{
    private readonly KeyStore _store;

    /// <summary>The command that is being carried out has a number, under which its outcome is to be remembered.</summary>
    private bool _isNumbered;

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
        Sessions = new SessionTable(store, limits);
        Ahead = new Prefetcher(store);
        Sequences = new SequenceTable(store);
        Locks = new LockTable(store, limits);
        Meta = new MetaTable(store, limits);
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

    public StateCounts Counts => _store.Counts;

    /// <summary>Bytes that the state takes up, without memory that is kept for what comes next.</summary>
    public long BytesInUse => _store.BytesInUse;

    /// <summary>Bytes of them in which nothing lies: what comes next may take their place.</summary>
    public long FreeBytes => _store.FreeBytes;

    /// <inheritdoc cref="KeyStore.IsFull"/>
    public bool IsFull => _store.IsFull;

    /// <inheritdoc cref="KeyStore.IsCrowded"/>
    public bool IsCrowded => _store.IsCrowded;

    /// <inheritdoc cref="KeyStore.EvictableBytes"/>
    public long EvictableBytes => _store.EvictableBytes;

    /// <summary>Begins to note which keys are used, so that others can go when there is no room.</summary>
    public void TrackUses() => _store.TrackUses();

    /// <inheritdoc cref="Eviction.TryChoose"/>
    public bool TryChooseVictims(ByteBuffer names, int namesBytesMax, ref long bytes) => Eviction.TryChoose(_store, names, namesBytesMax, ref bytes);

    /// <summary>Keys that changed since the last view, so that the owner can tell when the next one is due.</summary>
    public int ChangedKeys => _store.Changed;

    /// <summary>A view of the whole state as it is now.</summary>
    public StateView ViewAll() => _store.BeginView(changesOnly: false, TimeMs);

    /// <summary>A view of the keys that changed since the last view, as they are now. What it hands out must reach the store, or a view of all must.</summary>
    public StateView ViewChanges() => _store.BeginView(changesOnly: true, TimeMs);

    /// <summary>Begins an entry whose commands apply at <paramref name="timeMs"/>; a time below <see cref="TimeMs"/> counts as TimeMs.</summary>
    public void BeginEntry(long timeMs) => TimeMs = Math.Max(TimeMs, timeMs);

    /// <summary>
    /// Applies one mutation. With <paramref name="outcome"/> the encoded outcome (Wire/Outcomes/Outcome) is appended there;
    /// without (followers, restart) the effect is the same and nothing is encoded.
    /// </summary>
    /// <param name="command">A command that passed the door.</param>
    /// <param name="outcome">Takes the encoded outcome; null: nobody asks for it.</param>
    /// <param name="known">The hash of the command's key, where it is known.</param>
    public void Apply(scoped in Command command, ByteBuffer? outcome, KnownHash known = default)
    {
        _store.DropOld(TimeMs);
        if (IsOfLeader(command.Kind))
        {
            ApplyOfLeader(in command, outcome);
            return;
        }

        uint hash = _store.Keys.HashOf(command.Key, known);
        if (!BeginNumber(in command, outcome))
        {
            return;
        }

        if (SequenceCheck.IsSequence(command.Kind))
        {
            Outcome taken = Sequences.Apply(in command);

            // A key that got nothing may ask again.
            _isNumbered &= taken.Status == OutcomeStatus.Applied || !command.Has(CommandFlags.Keyed);
            Answer(outcome, in taken);
            return;
        }

        if (Locks.TryApply(in command, TimeMs, out Outcome answer))
        {
            Answer(outcome, in answer);
            return;
        }

        int key = _store.Keys.Find(command.Key, hash);
        if (key != 0)
        {
            _store.Expire(key, TimeMs);
        }

        switch (command.Kind)
        {
            case CommandKind.Set:
                Set(in command, key, hash, outcome);
                break;
            case CommandKind.Delete:
                Delete(in command, key, outcome);
                break;
            case CommandKind.Extend:
                Extend(in command, key, outcome);
                break;
            case CommandKind.Increment:
                Increment(in command, key, hash, outcome);
                break;
            default:
                throw new InvariantException($"Invariant broken: the log holds only commands that this version applies; kind {(byte)command.Kind} is none.");
        }
    }

    private static bool IsOfLeader(CommandKind kind) => (byte)kind is >= 0x40 and < 0x80;

    /// <summary>What leaders propose and clients do not.</summary>
    private void ApplyOfLeader(scoped in Command command, ByteBuffer? outcome)
    {
        switch (command.Kind)
        {
            case CommandKind.ExpireSweep:
                Answer(outcome, new Outcome(OutcomeStatus.Applied, 0, ExpirySweep.Apply(_store, TimeMs, command.Number)));
                break;
            case CommandKind.SessionSweep:
                Sessions.Sweep(in command, TimeMs);
                break;
            case CommandKind.LockSweep:
                Locks.Sweep(TimeMs, command.Number, command.Value);
                break;
            case CommandKind.Evict:
                Eviction.Apply(_store, in command);
                break;
            default:
                Meta.Apply(in command, TimeMs);
                break;
        }
    }

    /// <inheritdoc cref="StateReads.Read"/>
    public bool Read(scoped in Command command, long nowMs, ByteBuffer outcome, KnownHash known = default) => StateReads.Read(_store, this, in command, nowMs, outcome, known);

    /// <summary>True when some key's time to live has passed at <paramref name="nowMs"/> and it is still there: the leader then proposes an ExpireSweep.</summary>
    public bool HasExpired(long nowMs) => _store.Expiry.AnyPassed(nowMs);

    /// <inheritdoc cref="ExpirySweep.CountDue"/>
    public int CountDue(long nowMs, int countMax) => ExpirySweep.CountDue(_store, nowMs, countMax);

    /// <summary>64-bit digest of keys, values, revisions, times to live and history; equal on nodes that applied the same entries.</summary>
    public ulong Digest => _store.Digest;

    /// <summary>The digest computed anew from every byte; differs from <see cref="Digest"/> when something is damaged. Linear in the state's size.</summary>
    public ulong RecomputeDigest() => StateDigest.Recompute(_store);

    /// <summary>A command that has a number is carried out if the number is new. False when it is not, and answered.</summary>
    private bool BeginNumber(scoped in Command command, ByteBuffer? outcome)
    {
        if (!command.Has(CommandFlags.Session))
        {
            return true;
        }

        Command numbered = command;
        if (command.Has(CommandFlags.Keyed))
        {
            ulong incarnation = Sequences.IncarnationOf(command.Key);
            if (incarnation == 0)
            {
                return true;
            }

            numbered.SessionId = IdempotencyKey.AsKey(StateDigest.Mix(command.SessionId ^ StateDigest.Mix(incarnation)));
        }

        SessionStanding standing = Sessions.Begin(in numbered, TimeMs);
        _isNumbered = standing == SessionStanding.New;
        if (!_isNumbered)
        {
            Sessions.Answer(standing, outcome);
        }

        return _isNumbered;
    }

    private void Set(scoped in Command command, int key, uint hash, ByteBuffer? outcome)
    {
        if (!ConditionsHold(in command, key))
        {
            ConditionFailed(in command, key, outcome);
            return;
        }

        bool isNull = command.Has(CommandFlags.NullValue);
        Written(in command, key, outcome);
        if (key == 0)
        {
            key = _store.Create(command.Key, hash, command.Value, isNull);
        }
        else
        {
            _store.Write(key, command.Value, isNull, HistoryOf(in command));
        }

        if (command.Has(CommandFlags.Ttl))
        {
            _store.SetDeadline(key, DeadlineAfter(command.TtlMs));
        }
        else
        {
            _store.ClearDeadline(key);
        }
    }

    private void Delete(scoped in Command command, int key, ByteBuffer? outcome)
    {
        if (!_store.Exists(key))
        {
            NotFound(outcome);
        }
        else if (!ConditionsHold(in command, key))
        {
            ConditionFailed(in command, key, outcome);
        }
        else
        {
            Written(in command, key, outcome);
            _store.Delete(key, HistoryOf(in command));
        }
    }

    private void Extend(scoped in Command command, int key, ByteBuffer? outcome)
    {
        if (!_store.Exists(key))
        {
            NotFound(outcome);
            return;
        }

        if (!ConditionsHold(in command, key))
        {
            ConditionFailed(in command, key, outcome);
            return;
        }

        if (command.TtlMs == 0)
        {
            _store.ClearDeadline(key);
        }
        else
        {
            _store.SetDeadline(key, DeadlineAfter(command.TtlMs));
        }

        Answer(outcome, new Outcome(OutcomeStatus.Applied, _store.Keys[key].Revision));
    }

    private void Increment(scoped in Command command, int key, uint hash, ByteBuffer? outcome)
    {
        if (!ConditionsHold(in command, key))
        {
            ConditionFailed(in command, key, outcome);
            return;
        }

        bool exists = _store.Exists(key);
        long revision = RevisionBefore(key);
        long before = 0;
        if (exists && (_store.Keys[key].IsNull || !DecimalText.TryRead(_store.Keys.Value(in _store.Keys[key]), out before)))
        {
            Answer(outcome, new Outcome(OutcomeStatus.NotAnInteger, revision));
            return;
        }

        long after = unchecked(before + command.Number);
        if (((before ^ after) & (command.Number ^ after)) < 0)
        {
            Answer(outcome, new Outcome(OutcomeStatus.Overflow, revision, before));
            return;
        }

        Span<byte> scratch = stackalloc byte[DecimalText.BytesMax];
        ReadOnlySpan<byte> text = DecimalText.Write(after, scratch);
        if (key == 0)
        {
            _store.Create(command.Key, hash, text, isNull: false);
        }
        else
        {
            _store.Write(key, text, isNull: false, HistoryOf(in command));
        }

        Answer(outcome, new Outcome(OutcomeStatus.Applied, revision + 1, after));
    }

    private bool ConditionsHold(scoped in Command command, int key) => KeyConditions.Hold(_store, in command, key);

    private HistoryChoice HistoryOf(scoped in Command command) => new(!command.Has(CommandFlags.WithoutHistory), TimeMs);

    private long DeadlineAfter(long ttlMs) => TimeMs > long.MaxValue - ttlMs ? long.MaxValue : TimeMs + ttlMs;

    /// <summary>The revision that the next write of a key follows.</summary>
    private long RevisionBefore(int key) => key == 0 ? _store.Forgotten.FirstRevision - 1 : _store.Keys[key].Revision;

    /// <summary>Encodes the outcome of a set or delete that is about to take effect, while the previous value is still there.</summary>
    private void Written(scoped in Command command, int key, ByteBuffer? outcome)
    {
        if (outcome is not null || _isNumbered)
        {
            WithPrevious(in command, key, new Outcome(OutcomeStatus.Applied, RevisionBefore(key) + 1), outcome);
        }
    }

    private void ConditionFailed(scoped in Command command, int key, ByteBuffer? outcome)
    {
        if (outcome is not null || _isNumbered)
        {
            WithPrevious(in command, key, new Outcome(OutcomeStatus.ConditionFailed, _store.Exists(key) ? _store.Keys[key].Revision : 0), outcome);
        }
    }

    private void WithPrevious(scoped in Command command, int key, Outcome answer, ByteBuffer? outcome)
    {
        if (_store.Exists(key))
        {
            ref KeyEntry entry = ref _store.Keys[key];
            answer.Number = entry.Revision;
            if (command.Has(CommandFlags.ReturnPrevious))
            {
                answer.HasValue = true;
                answer.ValueIsNull = entry.IsNull;
                answer.Value = _store.Keys.Value(in entry);
            }
        }

        Answer(outcome, in answer);
    }

    private void NotFound(ByteBuffer? outcome) => Answer(outcome, new Outcome(OutcomeStatus.NotFound));

    /// <summary>The one place where a command's outcome is known: it is remembered under the command's number, and encoded for whoever waits for it.</summary>
    private void Answer(ByteBuffer? outcome, scoped in Outcome answer)
    {
        if (_isNumbered)
        {
            _isNumbered = false;
            Sessions.Remember(in answer);
        }

        if (outcome is not null)
        {
            answer.Write(outcome);
        }
    }
}
