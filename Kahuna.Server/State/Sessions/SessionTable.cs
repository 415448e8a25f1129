using System.Buffers.Binary;
using System.Numerics;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Outcomes;
using Kahuna.Client.Wire.Routing;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.State.Sessions;

/// <summary>
/// The memory behind "at most once": for each client session the outcomes of its latest mutations, until the client confirms them. Part of the state: every node has the same, and it is
/// stored and sent with the keys. Sessions are rows named <c>0xFF S u64</c>, values that outcomes carry are rows named <c>0xFF V u64 session u64 number</c>. Nothing is forgotten by
/// itself: a leader proposes it (<see cref="Sweep"/>), because only it knows whether it has stood still for longer than commands live. Owned by one <see cref="StateMachine"/>; not thread-safe.
/// </summary>
internal sealed class SessionTable
{
    /// <summary>Length of the name of a session's row.</summary>
    public const int NameBytes = 10;

    private const byte Reserved = 0xFF;
    private const byte Session = (byte)'S';
    private const byte KeptValue = (byte)'V';
    private const int ValueNameBytes = 18;

    /// <summary>A session's row, its place among the others and its share of the hash table.</summary>
    private const int RowBytes = 48 + 16 + 6;

    private readonly KeyStore _store;
    private readonly StateLimits _limits;
    private ulong _id;
    private int _row;
    private ulong _number;
    private uint _check;

    public SessionTable(KeyStore store, StateLimits limits)
    {
        _store = store;
        _limits = limits;
        for (int row = 1; row <= store.Keys.Count; row++)
        {
            ref readonly KeyEntry entry = ref store.Keys[row];
            if (entry.IsSession)
            {
                Count++;
                Bytes += RowBytes + SizeClasses.BytesOf(SizeClasses.Of(entry.BlockLength));
            }
            else if ((entry.Flags & KeyEntryFlags.System) != 0 && entry.KeyLength == ValueNameBytes && store.Keys.Key(in entry)[1] == KeptValue)
            {
                Bytes += RowBytes + SizeClasses.BytesOf(SizeClasses.Of(entry.BlockLength));
            }
        }
    }

    /// <summary>Sessions that are remembered.</summary>
    public int Count { get; private set; }

    /// <summary>Bytes that they take up.</summary>
    public long Bytes { get; private set; }

    /// <summary>Commands that came again and were answered from memory, since this state began on this node.</summary>
    public long Repeats { get; private set; }

    /// <summary>Commands that were refused for want of room, since this state began on this node.</summary>
    public long Refusals { get; private set; }

    /// <summary>Sessions that were forgotten, since this state began on this node.</summary>
    public long Forgotten { get; private set; }

    /// <summary>All of these at once.</summary>
    public SessionFigures Figures => new(Count, Bytes, Repeats, Refusals, Forgotten);

    /// <summary>No further session is taken.</summary>
    public bool IsFull => Count >= _limits.SessionsMax || Bytes >= _limits.SessionBytesMax;

    /// <summary>Room runs out: idle sessions are to go earlier than usual.</summary>
    public bool IsCrowded => Count >= _limits.SessionsMax / 4 * 3 || Bytes >= _limits.SessionBytesMax / 4 * 3;

    /// <summary>The session whose row has this name.</summary>
    public static ulong IdOf(ReadOnlySpan<byte> name) => BinaryPrimitives.ReadUInt64LittleEndian(name[2..]);

    /// <summary>True for the row of an idempotency key, whose outcome stays as long as the session.</summary>
    public static bool IsKey(ReadOnlySpan<byte> name) => IdempotencyKey.IsKey(IdOf(name));

    /// <summary>A command that carries a session comes up. With <see cref="SessionStanding.New"/> its outcome is told to <see cref="Remember"/> before anything else happens here; with others <see cref="Answer"/> is what is left to do.</summary>
    public SessionStanding Begin(scoped in Command command, uint keyHash, long timeMs)
    {
        _number = command.Sequence;
        _check = CheckOf(in command, keyHash);
        if (command.SessionId != _id || _row == 0)
        {
            _id = command.SessionId;
            _row = Find(_id);
        }

        bool isNew = _row == 0;
        if (isNew && !command.Has(CommandFlags.Opening))
        {
            return SessionStanding.Unknown;
        }

        ulong low = command.Sequence - command.Lag;
        if (!isNew)
        {
            Touch(timeMs);
        }
        else if (!IsFull)
        {
            Open(low, timeMs);
        }

        SessionStanding standing = _row == 0 ? SessionStanding.Full : Admit(low, command.Has(CommandFlags.ReturnPrevious));
        Refusals += standing == SessionStanding.Full ? 1 : 0;
        return standing;
    }

    /// <summary>Keeps the outcome of the command that has begun.</summary>
    public void Remember(scoped in Outcome outcome)
    {
        if (outcome.HasValue)
        {
            Span<byte> name = stackalloc byte[ValueNameBytes];
            WriteValueName(name, _number);
            int row = _store.System.Create(name, outcome.Value, KeyEntryFlags.None);
            Bytes += RowBytes + SizeClasses.BytesOf(SizeClasses.Of(_store.Keys[row].BlockLength));
        }

        SessionWindow window = new(_store.System.BeginChange(_row));
        ulong before = window.HeaderDigest(_id);
        window.Write(_number, _check, in outcome);
        window.High = Math.Max(window.High, _number);
        _store.System.EndChange(_row, unchecked(window.HeaderDigest(_id) - before + window.PlaceDigest(_id, _number)));
    }

    /// <summary>Answers the command that has begun and is not carried out.</summary>
    public void Answer(SessionStanding standing, ByteBuffer? outcome)
    {
        Repeats += standing == SessionStanding.Repeated ? 1 : 0;
        if (outcome is null)
        {
            return;
        }

        if (standing != SessionStanding.Repeated)
        {
            new Outcome(standing switch
            {
                SessionStanding.Forgotten => OutcomeStatus.NumberForgotten,
                SessionStanding.Reused => OutcomeStatus.NumberReused,
                SessionStanding.Unknown => OutcomeStatus.SessionUnknown,
                _ => OutcomeStatus.SessionsFull,
            }).Write(outcome);
            return;
        }

        Outcome remembered = new SessionWindow(_store.Keys.Writable(in _store.Keys[_row])).Read(_number);
        if (remembered.HasValue)
        {
            remembered.Value = _store.Keys.Value(in _store.Keys[FindValue(_number)]);
        }

        remembered.Write(outcome);
    }

    /// <summary>True when a <see cref="Sweep"/> at this time has something to do.</summary>
    public bool HasForgettable(long nowMs, long idleMs)
    {
        int live = _store.LiveSessions.First;
        int idle = _store.IdleSessions.First;
        return (live != 0 && _store.LiveSessions.HasPassed(in _store.Keys[live], nowMs - _limits.CommandLifeMs))
            || (idle != 0 && _store.IdleSessions.HasPassed(in _store.Keys[idle], nowMs - idleMs));
    }

    /// <summary>
    /// Forgets, the longest idle first and at most so many sessions: all outcomes of sessions that were idle for longer than a command lives, and those sessions themselves, idempotency keys with their outcomes, that
    /// were idle for <paramref name="idleMs"/>, which is no less than that. The number of sessions that are gone.
    /// </summary>
    public int Sweep(long timeMs, long idleMs, int countMax)
    {
        int gone = 0;
        int steps = 0;
        int row;
        _row = 0;
        while (steps < countMax && (row = _store.LiveSessions.First) != 0 && _store.LiveSessions.HasPassed(in _store.Keys[row], timeMs - _limits.CommandLifeMs))
        {
            ForgetOutcomes(row);
            steps++;
        }

        while (steps < countMax && (row = _store.IdleSessions.First) != 0 && _store.IdleSessions.HasPassed(in _store.Keys[row], timeMs - Math.Max(idleMs, _limits.CommandLifeMs)))
        {
            if (_store.Keys[row].ValueLength > SessionWindow.HeaderBytes)
            {
                ForgetOutcomes(row);
            }

            Bytes -= RowBytes + SizeClasses.BytesOf(SizeClasses.Of(_store.Keys[row].BlockLength));
            Count--;
            _store.System.Free(row);
            steps++;
            gone++;
        }

        Forgotten += gone;
        return gone;
    }

    /// <summary>What tells a command apart from others that wrongly carry its number: every field that says what is to be done, each at a place of its own.</summary>
    private static uint CheckOf(scoped in Command command, uint keyHash)
    {
        const ulong Odd = 0x9E3779B185EBCA87;
        ulong fields = ((ulong)(command.Flags & ~CommandFlags.Opening) << 40) | ((ulong)command.Kind << 32) | keyHash;
        fields = unchecked((fields * Odd) + (ulong)command.Number);
        fields = unchecked((fields * Odd) + (ulong)command.TtlMs);
        fields = unchecked((fields * Odd) + (ulong)command.ComparedRevision);
        ulong check = XxHash64.Hash(command.Value, fields);
        check = command.Has(CommandFlags.IfValue) ? XxHash64.Hash(command.ComparedValue, check) : check;
        check = command.Has(CommandFlags.Fenced) ? XxHash64.Hash(command.FenceName, unchecked(check + ((ulong)command.FenceToken * Odd))) : check;
        return (uint)(check >> 32);
    }

    /// <summary>Moves the low mark, makes room, and looks whether the number is there.</summary>
    private SessionStanding Admit(ulong low, bool needsRoomForValue)
    {
        SessionWindow window = new(_store.Keys.Writable(in _store.Keys[_row]));
        if (low > window.Low)
        {
            Confirm(low);
            window = new SessionWindow(_store.Keys.Writable(in _store.Keys[_row]));
        }

        if (_number < window.Low)
        {
            return SessionStanding.Forgotten;
        }

        ulong ahead = _number - window.Low;
        if (ahead < (uint)window.Room && window.IsTaken(_number))
        {
            return window.Check(_number) == _check ? SessionStanding.Repeated : SessionStanding.Reused;
        }

        InvariantException.Require(ahead < Client.Wire.Limits.SessionWindow, "a session's window has a bound");
        bool isTooSmall = ahead >= (uint)window.Room;
        if ((isTooSmall || needsRoomForValue) && Bytes >= _limits.SessionBytesMax)
        {
            return SessionStanding.Full;
        }

        if (isTooSmall)
        {
            Grow(_row, (int)BitOperations.RoundUpToPowerOf2((uint)ahead + 1));
        }

        return SessionStanding.New;
    }

    /// <summary>Every number below <paramref name="low"/> is confirmed: their outcomes go.</summary>
    private void Confirm(ulong low)
    {
        SessionWindow window = new(_store.System.BeginChange(_row));
        ulong difference = unchecked(0 - window.HeaderDigest(_id));
        ulong end = Math.Min(low, window.Low + (uint)window.Room);
        for (ulong number = window.Low; number < end; number++)
        {
            if (window.IsTaken(number))
            {
                difference = unchecked(difference - window.PlaceDigest(_id, number));
                if (window.HasValue(number))
                {
                    ForgetValue(number);
                }

                window.Clear(number);
            }
        }

        window.Low = low;
        _store.System.EndChange(_row, unchecked(difference + window.HeaderDigest(_id)));
    }

    private void Open(ulong low, long timeMs)
    {
        Span<byte> name = stackalloc byte[NameBytes];
        WriteName(name, _id);
        Span<byte> value = stackalloc byte[SessionWindow.HeaderBytes];
        value.Clear();
        new SessionWindow(value).Low = low;
        _row = _store.System.Create(name, value, KeyEntryFlags.Session);
        _store.System.PlaceSession(_row, null, timeMs);
        Count++;
        Bytes += RowBytes + SizeClasses.BytesOf(SizeClasses.Of(_store.Keys[_row].BlockLength));
    }

    /// <summary>The session is in use. To the second is enough: times that are counted from it are minutes.</summary>
    private void Touch(long timeMs)
    {
        ref readonly KeyEntry entry = ref _store.Keys[_row];
        if (timeMs - _store.DeadlineOf(in entry) >= _limits.SessionTouchMs)
        {
            _store.System.BeginChange(_row);
            _store.System.PlaceSession(_row, _store.HeapOf(in entry), timeMs);
        }
    }

    private void Grow(int row, int room)
    {
        ref KeyEntry entry = ref _store.Keys[row];
        _store.System.BeginChange(row);
        byte[] copy = _store.Keys.Value(in entry).ToArray();
        Resize(row, SessionWindow.BytesOf(room));
        Span<byte> value = _store.Keys.Writable(in entry);
        value.Clear();
        new SessionWindow(copy).MoveTo(new SessionWindow(value));
    }

    private void ForgetOutcomes(int row)
    {
        _id = IdOf(_store.Keys.Key(in _store.Keys[row]));
        _row = row;
        SessionWindow window = new(_store.Keys.Writable(in _store.Keys[row]));
        Confirm(Math.Max(window.Low, window.High + 1));
        Resize(row, SessionWindow.HeaderBytes);
        _row = 0;
    }

    /// <summary>Gives the window another size, and the session its place among those with outcomes or without.</summary>
    private void Resize(int row, int bytes)
    {
        ref KeyEntry entry = ref _store.Keys[row];
        ExpiryHeap from = _store.HeapOf(in entry);
        long timeMs = from.DeadlineOf(in entry);
        Bytes -= SizeClasses.BytesOf(SizeClasses.Of(entry.BlockLength));
        _store.Keys.Resize(row, bytes);
        Bytes += SizeClasses.BytesOf(SizeClasses.Of(entry.BlockLength));
        _store.System.PlaceSession(row, from, timeMs);
    }

    private void ForgetValue(ulong number)
    {
        int row = FindValue(number);
        Bytes -= RowBytes + SizeClasses.BytesOf(SizeClasses.Of(_store.Keys[row].BlockLength));
        _store.System.Free(row);
    }

    private int Find(ulong id)
    {
        Span<byte> name = stackalloc byte[NameBytes];
        WriteName(name, id);
        return _store.Keys.Find(name, KeyTable.HashOf(name));
    }

    private int FindValue(ulong number)
    {
        Span<byte> name = stackalloc byte[ValueNameBytes];
        WriteValueName(name, number);
        int row = _store.Keys.Find(name, KeyTable.HashOf(name));
        InvariantException.Require(row != 0, "a remembered value is there");
        return row;
    }

    private static void WriteName(Span<byte> name, ulong id)
    {
        name[0] = Reserved;
        name[1] = Session;
        BinaryPrimitives.WriteUInt64LittleEndian(name[2..], id);
    }

    private void WriteValueName(Span<byte> name, ulong number)
    {
        name[0] = Reserved;
        name[1] = KeptValue;
        BinaryPrimitives.WriteUInt64LittleEndian(name[2..], _id);
        BinaryPrimitives.WriteUInt64LittleEndian(name[10..], number);
    }
}
