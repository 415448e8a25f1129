using System.Numerics;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Dispatch;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.State.Sessions;

/// <summary>
/// The memory behind "at most once": for each client session the outcomes of its latest mutations, until the client
/// confirms them. Part of the state: every node has the same, and it is stored and sent with the keys. Sessions are
/// rows named <c>0xFF S u64</c>, values that outcomes carry are rows named <c>0xFF V u64 session u64 number</c>.
/// Nothing is forgotten by itself: a leader proposes it (<see cref="Sweep(ClusterTime, long, int)"/>), because only it
/// knows whether it has stood still for longer than commands live. Owned by one <see cref="StateMachine"/>; not
/// thread-safe.
/// </summary>
internal sealed class SessionTable : CommandHandler, IOutcomeMemory
{
    /// <summary>
    /// Outcomes and sessions that one sweep forgets: bounded work per command, about as much as 32 sets.
    /// </summary>
    private const int StepsPerSweep = 64;

    /// <summary>
    /// Values of confirmed outcomes that one command frees, of its own session: far more than it can add.
    /// </summary>
    private const int ValuesPerCommand = 16;

    /// <summary>
    /// Places of a window that every session may have: more calls than one caller has under way. Larger windows share
    /// what the reserve leaves.
    /// </summary>
    private const int SmallRoom = 64;

    private readonly KeyStore _store;
    private readonly StateLimits _limits;
    private readonly SessionRows _rows;
    private readonly ExpiryHeap _liveSessions;
    private readonly ExpiryHeap _idleSessions;
    private readonly ExpiryHeap _idempotencyKeys;
    private readonly SessionQuota _sessions;
    private readonly SessionQuota _keys;
    private readonly List<Row> _passed = [];
    private ulong _id;
    private Row _row;
    private ulong _number;
    private uint _check;

    public SessionTable(KeyStore store, StateLimits limits)
    {
        _store = store;
        _limits = limits;
        _rows = new SessionRows(store);
        _liveSessions = store.Heaps[RowHeap.LiveSessions];
        _idleSessions = store.Heaps[RowHeap.IdleSessions];
        _idempotencyKeys = store.Heaps[RowHeap.IdempotencyKeys];
        _sessions = new SessionQuota(limits.SessionsMax, limits.SessionBytesMax);
        _keys = new SessionQuota(limits.IdempotencyKeysMax, limits.IdempotencyKeyBytesMax);
        for (Row row = Row.First; row.Value <= store.Keys.Count; row = row.Next)
        {
            if (_rows.IsAny(row))
            {
                ref readonly KeyEntry entry = ref store.Keys[row];
                SessionQuota quota = QuotaOf(SystemRowKind.SessionIn(store.Keys.Key(in entry)));
                quota.Count += entry.IsSession ? 1 : 0;
                quota.Bytes += _rows.BytesOf(row);
            }
        }
    }

    /// <summary>Sessions that are remembered, idempotency keys included.</summary>
    public int Count => _sessions.Count + _keys.Count;

    /// <summary>Bytes that they take up.</summary>
    public long Bytes => _sessions.Bytes + _keys.Bytes;

    /// <summary>Commands that came again and were answered from memory, since this state began on this node.</summary>
    public long Repeats { get; private set; }

    /// <summary>Commands that were refused for want of room, since this state began on this node.</summary>
    public long Refusals { get; private set; }

    /// <summary>Sessions that were forgotten, since this state began on this node.</summary>
    public long Forgotten { get; private set; }

    /// <summary>All of these at once.</summary>
    public SessionMetrics Metrics => new(Count, Bytes, Repeats, Refusals, Forgotten);

    /// <summary>Room for sessions runs out: idle ones are to go earlier than usual.</summary>
    public bool IsCrowded => _sessions.IsCrowded;

    /// <summary>Room for idempotency keys runs out: idle ones are to go earlier than usual.</summary>
    public bool IsCrowdedWithKeys => _keys.IsCrowded;

    /// <summary>
    /// A command that carries a session comes up. With <see cref="SessionAdmission.New"/> its outcome is told to
    /// <see cref="Remember"/> before anything else happens here; with others <see cref="Answer"/> is what is left to
    /// do.
    /// </summary>
    public SessionAdmission Begin(scoped in Command command, ulong session, ClusterTime time)
    {
        _number = command.Sequence;
        _check = CommandDigest.Of(in command);
        if (session != _id || _row.IsNone)
        {
            _id = session;
            _row = _rows.Find(_id);
        }

        bool isNew = _row.IsNone;
        if (isNew && !command.Has(CommandFlags.Opening))
        {
            return SessionAdmission.Unknown;
        }

        ulong low = command.Sequence - command.Lag;
        if (!isNew)
        {
            Touch(time);
        }
        else if (!QuotaOf(_id).IsFull)
        {
            Open(low, time);
        }

        SessionAdmission admission = _row.IsNone
            ? SessionAdmission.Full
            : Admit(low, command.ReturnsValue);
        Refusals += admission == SessionAdmission.Full ? 1 : 0;
        return admission;
    }

    /// <summary>
    /// True when the command's number is new, and its outcome is to be remembered. Another one is answered here.
    /// </summary>
    public bool IsNew(
        scoped in Command command, ulong session, ClusterTime time, CommandAnswer answer, ByteBuffer? outcome)
    {
        SessionAdmission admission = Begin(in command, session, time);
        if (admission != SessionAdmission.New)
        {
            Answer(admission, outcome);
            return false;
        }

        answer.RememberNumber();
        return true;
    }

    /// <summary>The session of an idempotency key that holds for one incarnation of a sequence.</summary>
    public static ulong KeyOf(ulong session, ulong incarnation) =>
        IdempotencyKey.AsKey(StateDigest.Mix(session ^ StateDigest.Mix(incarnation)));

    /// <inheritdoc cref="SessionReader.List"/>
    public SessionPage List(Row from, int countMax, ClusterTime now) =>
        SessionReader.List(_store, _limits, from, countMax, now);

    /// <summary>True while the session is remembered.</summary>
    public bool Knows(ulong session) => !_rows.Find(session).IsNone;

    /// <summary>True for a number that was carried out: a command that has it changes nothing.</summary>
    public bool HasCarriedOut(ulong session, ulong number)
    {
        Row row = _rows.Find(session);
        if (row.IsNone)
        {
            return false;
        }

        SessionWindow window = new(_store.Keys.Writable(in _store.Keys[row]));
        return number < window.Low || (number - window.Low < (uint)window.Room && window.IsTaken(number));
    }

    /// <summary>Keeps the outcome of the command that has begun.</summary>
    public void Remember(scoped in Outcome outcome)
    {
        if (outcome.HasValue)
        {
            long bytes = _rows.BytesOf(_rows.CreateValue(_id, _number, outcome.Value));
            AddBytes(_id, bytes);
            AddKept(bytes);
        }

        SessionWindow window = new(_store.System.BeginChange(_row));
        ulong before = window.HeaderDigest(_id);
        if (window.TryTakeLeftAt(_number, out ulong left))
        {
            uint freed = ForgetValue(left);
            InvariantException.Require(window.KeptBytes >= freed, "the bytes of values are counted");
            window.KeptBytes -= freed;
        }

        window.Write(_number, _check, in outcome);
        window.High = Math.Max(window.High, _number);
        _store.System.EndChange(_row, unchecked(window.HeaderDigest(_id) - before + window.PlaceDigest(_id, _number)));
    }

    /// <summary>Answers the command that has begun and is not carried out.</summary>
    public void Answer(SessionAdmission admission, ByteBuffer? outcome)
    {
        Repeats += admission == SessionAdmission.Repeated ? 1 : 0;
        if (outcome is null)
        {
            return;
        }

        if (admission != SessionAdmission.Repeated)
        {
            new Outcome(admission switch
            {
                SessionAdmission.Forgotten => OutcomeStatus.NumberForgotten,
                SessionAdmission.Reused => OutcomeStatus.NumberReused,
                SessionAdmission.Unknown => OutcomeStatus.SessionUnknown,
                _ => OutcomeStatus.SessionsFull,
            }).Write(outcome);
            return;
        }

        Outcome remembered = new SessionWindow(_store.Keys.Writable(in _store.Keys[_row])).Read(_number);
        if (remembered.HasValue)
        {
            remembered.Value = _store.Keys.Value(in _store.Keys[_rows.FindValue(_id, _number)]);
        }

        remembered.Write(outcome);
    }

    /// <summary>True when a <see cref="Sweep(ClusterTime, long, int)"/> at this time has something to do.</summary>
    public bool HasForgettable(ClusterTime now, long idleMs) =>
        _liveSessions.AnyPassed(now - _limits.CommandLifeMs) || _idleSessions.AnyPassed(now - idleMs);

    /// <summary>True when a <see cref="SweepKeys"/> at this time has something to do.</summary>
    public bool HasForgettableKeys(ClusterTime now, long idleMs) => _idempotencyKeys.AnyPassed(now - idleMs);

    /// <summary>
    /// How many commands of a <see cref="Sweep(ClusterTime, long, int)"/> have something to do at this time, up to a
    /// maximum. An estimate: at least one where there is anything, and linear in the steps of those commands.
    /// </summary>
    public int CountSweeps(ClusterTime now, long idleMs, int countMax)
    {
        int stepsMax = countMax * StepsPerSweep;
        int steps = CountSteps(_liveSessions, now - _limits.CommandLifeMs, stepsMax);
        return SweepsOf(steps + CountSteps(_idleSessions, now - idleMs, stepsMax - steps));
    }

    /// <summary>As <see cref="CountSweeps"/>, of <see cref="SweepKeys"/>.</summary>
    public int CountSweepsOfKeys(ClusterTime now, long idleMs, int countMax) =>
        SweepsOf(CountSteps(_idempotencyKeys, now - idleMs, countMax * StepsPerSweep));

    /// <summary>Carries out a leader's sweep: of idempotency keys with their flag, else of sessions.</summary>
    public override void Apply(scoped in Command command, ClusterTime time, KnownHash known, CommandAnswer answer)
    {
        Sweep sweep = new(in command);
        if (sweep.IsOfIdempotencyKeys)
        {
            SweepKeys(time, sweep.IdleMs, StepsPerSweep);
        }
        else
        {
            Sweep(time, sweep.IdleMs, StepsPerSweep);
        }
    }

    /// <summary>
    /// Forgets, the longest idle first: all outcomes of sessions that were idle for longer than a command lives, and
    /// those sessions themselves that were idle for <paramref name="idleMs"/>, which is no less than that. Ends when it
    /// has done this many steps: a step is one outcome or one session. The number of sessions that are gone.
    /// </summary>
    public int Sweep(ClusterTime time, long idleMs, int stepsMax)
    {
        int steps = 0;
        Row row;
        _row = Row.None;
        while (steps < stepsMax && _liveSessions.AnyPassed(time - _limits.CommandLifeMs))
        {
            steps += ForgetOutcomes(_liveSessions.First, stepsMax - steps);
        }

        int gone = 0;
        for (;
            steps < stepsMax
                && (row = _idleSessions.First) is { IsNone: false }
                && _idleSessions.AnyPassed(time - Math.Max(idleMs, _limits.CommandLifeMs));
            steps++)
        {
            Free(row);
            gone++;
        }

        Forgotten += gone;
        return gone;
    }

    /// <summary>
    /// Forgets idempotency keys with their outcomes, the longest idle first, that were idle for
    /// <paramref name="idleMs"/>, which is no less than a command's life. Steps as for
    /// <see cref="Sweep(ClusterTime, long, int)"/>.
    /// </summary>
    public int SweepKeys(ClusterTime time, long idleMs, int stepsMax)
    {
        int steps = 0;
        int gone = 0;
        Row row;
        _row = Row.None;
        while (steps < stepsMax
            && (row = _idempotencyKeys.First) is { IsNone: false }
            && _idempotencyKeys.AnyPassed(time - Math.Max(idleMs, _limits.CommandLifeMs)))
        {
            if (_store.Keys[row].ValueLength > SessionWindow.HeaderBytes)
            {
                steps += ForgetOutcomes(row, stepsMax - steps);
            }
            else
            {
                Free(row);
                gone++;
                steps++;
            }
        }

        Forgotten += gone;
        return gone;
    }

    private static int SweepsOf(int steps) => (steps + StepsPerSweep - 1) / StepsPerSweep;

    /// <summary>Steps that it takes to forget what was idle since this time, up to a maximum.</summary>
    private int CountSteps(ExpiryHeap heap, ClusterTime time, int stepsMax)
    {
        if (stepsMax <= 0 || !heap.AnyPassed(time))
        {
            return 0;
        }

        _passed.Clear();
        heap.CollectPassed(time, stepsMax, _passed);
        long steps = 0;
        foreach (Row row in _passed)
        {
            SessionWindow window = new(_store.Keys.Writable(in _store.Keys[row]));
            steps += 1 + window.Left + (window.High >= window.Low ? (long)(window.High - window.Low) + 1 : 0);
        }

        return (int)Math.Min(steps, stepsMax);
    }

    /// <summary>Moves the low mark, makes room, and looks whether the number is there.</summary>
    private SessionAdmission Admit(ulong low, bool needsRoomForValue)
    {
        SessionWindow window = new(_store.Keys.Writable(in _store.Keys[_row]));
        if (low > window.Low || window.Left > 0)
        {
            Confirm(Math.Max(low, window.Low), ValuesPerCommand);
            window = new SessionWindow(_store.Keys.Writable(in _store.Keys[_row]));
        }

        if (_number < window.Low)
        {
            return SessionAdmission.Forgotten;
        }

        ulong ahead = _number - window.Low;
        if (ahead < (uint)window.Room && window.IsTaken(_number))
        {
            return window.Check(_number) == _check ? SessionAdmission.Repeated : SessionAdmission.Reused;
        }

        InvariantException.Require(ahead < Wire.Limits.SessionWindow, "a session's window has a bound");
        bool isTooSmall = ahead >= (uint)window.Room;
        if ((isTooSmall && !MayGrow(ahead)) || (needsRoomForValue && window.KeptBytes >= QuotaOf(_id).OutcomeBytesLeft))
        {
            return SessionAdmission.Full;
        }

        if (isTooSmall)
        {
            Grow(_row, (int)BitOperations.RoundUpToPowerOf2((uint)ahead + 1));
        }

        return SessionAdmission.New;
    }

    /// <summary>
    /// A window may have the place that a number needs. Small ones may grow as long as sessions are taken at all, so
    /// that nobody's outcomes keep others out.
    /// </summary>
    private bool MayGrow(ulong ahead) => ahead < SmallRoom ? QuotaOf(_id).HasBytes : QuotaOf(_id).OutcomeBytesLeft > 0;

    private SessionQuota QuotaOf(ulong id) => IdempotencyKey.IsKey(id) ? _keys : _sessions;

    private void AddBytes(ulong id, long bytes) => QuotaOf(id).Bytes += bytes;

    /// <summary>The values of the session take up this many more bytes.</summary>
    private void AddKept(long bytes)
    {
        SessionWindow window = new(_store.System.BeginChange(_row));
        ulong before = window.HeaderDigest(_id);
        window.KeptBytes += (uint)bytes;
        _store.System.EndChange(_row, unchecked(window.HeaderDigest(_id) - before));
    }

    private void Free(Row row)
    {
        ulong id = SystemRowKind.SessionIn(_store.Keys.Key(in _store.Keys[row]));
        AddBytes(id, -_rows.BytesOf(row));
        QuotaOf(id).Count--;
        InvariantException.Require(QuotaOf(id) is { Count: >= 0, Bytes: >= 0 }, "sessions and their bytes are counted");
        _store.System.Free(row);
    }

    /// <summary>
    /// Every number below <paramref name="low"/> is confirmed: their outcomes go, and this many of their values. Those
    /// that are left go with the session's next commands, or with a sweep.
    /// </summary>
    private void Confirm(ulong low, int valuesMax)
    {
        SessionWindow window = new(_store.System.BeginChange(_row));
        ulong before = window.HeaderDigest(_id);
        ulong gone = window.Forget(_id, Math.Min(low, window.Low + (uint)window.Room));
        window.Low = low;
        while (valuesMax-- > 0 && window.TryTakeLeft(out ulong number))
        {
            uint freed = ForgetValue(number);
            InvariantException.Require(window.KeptBytes >= freed, "the bytes of values are counted");
            window.KeptBytes -= freed;
        }

        _store.System.EndChange(_row, unchecked(window.HeaderDigest(_id) - before - gone));
    }

    private void Open(ulong low, ClusterTime time)
    {
        _row = _rows.Create(_id, low);
        _store.System.PlaceSession(_row, null, time);
        QuotaOf(_id).Count++;
        AddBytes(_id, _rows.BytesOf(_row));
    }

    /// <summary>The session is in use. To the second is enough: times that are counted from it are minutes.</summary>
    private void Touch(ClusterTime time)
    {
        ref readonly KeyEntry entry = ref _store.Keys[_row];
        if (time - _store.DeadlineOf(in entry) >= _limits.SessionTouchMs)
        {
            _store.System.BeginChange(_row);
            _store.System.PlaceSession(_row, _store.HeapOf(in entry), time);
        }
    }

    private void Grow(Row row, int room)
    {
        ref KeyEntry entry = ref _store.Keys[row];
        _store.System.BeginChange(row);
        byte[] copy = _store.Keys.Value(in entry).ToArray();
        Resize(row, SessionWindow.BytesOf(room));
        Span<byte> value = _store.Keys.Writable(in entry);
        value.Clear();
        new SessionWindow(copy).MoveTo(new SessionWindow(value));
    }

    /// <summary>
    /// Forgets the oldest outcomes of a session that has a window, and the window with the last of them. How many
    /// places it looked at and values it freed.
    /// </summary>
    private int ForgetOutcomes(Row row, int placesMax)
    {
        _id = SystemRowKind.SessionIn(_store.Keys.Key(in _store.Keys[row]));
        _row = row;
        SessionWindow window = new(_store.Keys.Writable(in _store.Keys[row]));
        int values = Math.Min(placesMax, window.Left);
        ulong places = Math.Min(
            (ulong)(placesMax - values), window.High + 1 > window.Low ? window.High + 1 - window.Low : 0);
        Confirm(window.Low + places, placesMax);
        window = new SessionWindow(_store.Keys.Writable(in _store.Keys[row]));
        if (window.Low > window.High && window.Left == 0)
        {
            Resize(row, SessionWindow.HeaderBytes);
        }

        _row = Row.None;
        return Math.Max(1, values + (int)places);
    }

    /// <summary>
    /// Gives the window another size, and the session its place among those with outcomes or without.
    /// </summary>
    private void Resize(Row row, int bytes)
    {
        ref KeyEntry entry = ref _store.Keys[row];
        ExpiryHeap from = _store.HeapOf(in entry);
        ClusterTime time = from.DeadlineOf(in entry);
        AddBytes(_id, -_rows.BytesOf(row));
        _store.Keys.Resize(row, bytes);
        AddBytes(_id, _rows.BytesOf(row));
        _store.System.PlaceSession(row, from, time);
    }

    /// <summary>Frees the value of a number's outcome; how many bytes it took up.</summary>
    private uint ForgetValue(ulong number)
    {
        Row row = _rows.FindValue(_id, number);
        long bytes = _rows.BytesOf(row);
        AddBytes(_id, -bytes);
        _store.System.Free(row);
        return (uint)bytes;
    }
}
