using System.Text;
using Kahuna.Client.Connection.Sessions;
using Kahuna.Client.Results;
using Kahuna.Client.Wire;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Client.Connection;

/// <summary>One call of a caller from its arguments to its end: the request as it can be encoded any number of times, the state of its way, and the reply. Pooled. Owned by the caller from rent to <see cref="ClusterConnection.Run{TResult}"/>, then by whoever holds it (a stream's slot or queue, the list of those that wait to be sent again), until one holder wins <see cref="TryEnd"/> and ends it; then by the caller again, whose await returns it to the pool.</summary>
internal abstract class Operation
{
    private const int Held = 1;
    private const int Ended = 2;
    private const int States = 4;

    private NameBuffer _key;
    private NameBuffer _fenceName;
    private ReadOnlyMemory<byte> _value;
    private ReadOnlyMemory<byte> _compared;
    private ByteBuffer? _text;
    private CommandKind _kind;
    private CommandDurability _durability;
    private CommandFlags _flags;
    private long _comparedRevision, _ttlMs, _atRevision, _number;
    private ushort _lag;

    // Four times the generation, plus the state: a holder of an older generation can therefore never end a newer one.
    private int _tag = Ended;

    /// <summary>What the arguments themselves rule out, found while they were encoded; the operation ends with it unsent.</summary>
    public KahunaException? Refusal { get; private set; }

    /// <summary>True for kinds that change nothing and may be repeated at will.</summary>
    public bool IsRead => (byte)_kind >= 0x80;

    public CommandDurability Durability => _durability;

    /// <summary>The key's bytes.</summary>
    public ReadOnlySpan<byte> Key => _key.Bytes;

    /// <summary>The moment, on the time provider's timestamp scale, at which it fails.</summary>
    public long Deadline { get; set; }

    /// <summary>With <see cref="HoldMs"/>: the moment until which the answer may be held back.</summary>
    public long HoldUntil { get; set; }

    /// <summary>How often it was sent or looked for a way; decides the pause before the next attempt.</summary>
    public int Attempts { get; set; }

    /// <summary>While it waits outside of a stream: the moment at which it is tried again.</summary>
    public long NotBefore { get; set; }

    /// <summary>The node that a refusal named as leader; 0: none. For the next attempt only.</summary>
    public int HintedNodeId { get; set; }

    /// <summary>The next attempt goes to a node that does not lead, which is to bring it to the leader.</summary>
    public bool IsForwarded { get; set; }

    /// <summary>How the last attempt was refused; <see cref="OutcomeStatus.Unset"/> when none was.</summary>
    public OutcomeStatus LastRefusal { get; set; }

    /// <summary>The partition and level that it is for; -1 while nothing is known of the cluster.</summary>
    public int Route { get; set; } = -1;

    /// <summary>The newest term of that partition that was heard of when the last attempt was sent.</summary>
    public ulong Term { get; set; }

    /// <summary>The partition that a read is about which is not about a name; null for others.</summary>
    public int? FixedPartition { get; set; }

    /// <summary>The number that the call carries.</summary>
    public long Number => _number;

    /// <summary>How long it may take if that is less than the request timeout; null: that.</summary>
    public TimeSpan? Patience { get; set; }

    /// <summary>The code behind its await is the client's own, and runs where its answer is received.</summary>
    public bool EndsInline { get; set; }

    /// <summary>For so many ms the leader may hold the answer back, because there is nothing to say yet; 0 for most operations.</summary>
    public int HoldMs => _kind is CommandKind.LockAwait or CommandKind.LockObserve ? (int)Math.Clamp(_number, 0, Limits.LockHoldMsMax) : 0;

    /// <summary>The lock without which the write does not count; empty when it carries no token.</summary>
    public ReadOnlySpan<byte> FenceName => _fenceName.Bytes;

    /// <summary>The token that it carries.</summary>
    public long FenceToken { get; private set; }

    /// <summary>The epoch that the next attempt is for: an attempt that is late is not to be carried out in another one. 0 for persistent keys.</summary>
    public ulong Epoch { get; set; }

    /// <summary>The epoch that it came with, from a client whose attempt this is; 0: it goes on in whichever epoch is open.</summary>
    public ushort GivenEpoch { get; set; }

    /// <summary>The session that has numbered it; null before the first attempt, and when the number came with the call.</summary>
    public ClientSession? Session { get; set; }

    public ulong SessionId { get; set; }

    /// <summary>Its number within the session; 0: none yet.</summary>
    public ulong Sequence { get; set; }

    /// <summary>An attempt of this mutation ended without an answer: it may have been carried out.</summary>
    public bool MayHaveHappened { get; set; }

    /// <summary>It has an idempotency key. A key that got nothing stays free, so an attempt that is still under way may be carried out after the answer to another one.</summary>
    public bool IsKeyed => (_flags & CommandFlags.Keyed) != 0;

    /// <summary>The node that was lost with that attempt and why, for whoever reads the failure; null when that was not the reason.</summary>
    public string? LostWith { get; set; }

    /// <summary>It waits for a node or a leader rather than for an overloaded one to recover.</summary>
    public bool WaitsForRoute => LastRefusal is OutcomeStatus.Unset or OutcomeStatus.NotLeader or OutcomeStatus.Unavailable or OutcomeStatus.Unknown;

    /// <summary>The last stream that took it; null before the first. Written under a hold and the stream's lock; a cancellation reads it after it has ended the operation, and so sees the newest.</summary>
    public NodeStream? Stream { get; set; }

    /// <summary>Its number within <see cref="Stream"/>; 0 while it is queued there without one, and after it was refused. Guarded by the stream's lock.</summary>
    public uint RequestNumber { get; set; }

    /// <summary>A caller's token can end it at any moment.</summary>
    public bool IsCancelable { get; protected set; }

    public OutcomeStatus ReplyStatus { get; private set; }

    public long ReplyRevision { get; private set; }

    public long ReplyNumber { get; private set; }

    /// <summary>The value that the reply carries: null when it carries none, which is not the null value.</summary>
    public KahunaValue? ReplyValue { get; private set; }

    /// <summary>The remaining time to live of a read's reply.</summary>
    public TimeSpan? ReplyTtl => ReplyStatus == OutcomeStatus.Found && ReplyNumber >= 0 ? TimeSpan.FromMilliseconds(ReplyNumber) : null;

    /// <summary>This operation in its present generation.</summary>
    public OperationRef Reference => new(this, Volatile.Read(ref _tag) / States, IsCancelable);

    public bool IsPending(int generation) => Volatile.Read(ref _tag) - (generation * States) is 0 or Held;

    public bool TryEnd(int generation)
    {
        int pending = generation * States;
        SpinWait spin = default;
        while (true)
        {
            int seen = Interlocked.CompareExchange(ref _tag, pending | Ended, pending);
            if (seen != (pending | Held))
            {
                return seen == pending;
            }

            spin.SpinOnce();
        }
    }

    public bool TryHold(int generation)
    {
        int pending = generation * States;
        return Interlocked.CompareExchange(ref _tag, pending | Held, pending) == pending;
    }

    public void Release(int generation) => Volatile.Write(ref _tag, generation * States);

    /// <summary>Fills in what every request has. First call after the rent.</summary>
    public void Begin(CommandKind kind, CommandDurability durability, string key)
    {
        _kind = kind;
        _durability = durability;
        Refusal = _key.Set(key, "key");
    }

    /// <summary>The value's bytes, which stay the caller's and must not change until the end.</summary>
    public void SetValue(ReadOnlyMemory<byte> value)
    {
        if (value.Length > Limits.ValueBytesCeiling)
        {
            Refusal ??= Failures.ValueTooLong("value", value.Length);
            return;
        }

        _value = value;
    }

    /// <summary>The value as text; null is the null value.</summary>
    public void SetValue(string? text)
    {
        if (text is null)
        {
            AddFlag(CommandFlags.NullValue, true);
            return;
        }

        // A string is at most 2^30 characters, so that its longest encoding exceeds an array; the count is exact instead.
        try
        {
            int bytes = Utf8Text.Strict.GetByteCount(text);
            if (bytes > Limits.ValueBytesCeiling)
            {
                Refusal ??= Failures.ValueTooLong("value", bytes);
                return;
            }

            _text = ByteBuffer.Rent(bytes);
            Utf8Text.Strict.GetBytes(text, _text.Take(bytes));
            _value = _text.WrittenMemory;
        }
        catch (EncoderFallbackException)
        {
            Refusal ??= Failures.NoUtf8("value");
        }
    }

    public void AddFlag(CommandFlags flag, bool isSet)
    {
        if (isSet)
        {
            _flags |= flag;
        }
    }

    /// <summary>The compare conditions that are not null.</summary>
    public void AddComparison(KahunaValue? value, long? revision)
    {
        if (value is { } compared)
        {
            _flags |= CommandFlags.IfValue;
            AddFlag(CommandFlags.NullCompared, compared.IsNull);
            if (compared.Memory.Length > Limits.ValueBytesCeiling)
            {
                Refusal ??= Failures.ValueTooLong("if_value", compared.Memory.Length);
                return;
            }

            _compared = compared.Memory;
        }

        if (revision is { } comparedRevision)
        {
            _flags |= CommandFlags.IfRevision;
            _comparedRevision = comparedRevision;
        }
    }

    /// <summary>A time to live, rounded away from zero to whole milliseconds: a lease never ends early, and what is negative stays so.</summary>
    public void AddTtl(TimeSpan ttl)
    {
        _flags |= CommandFlags.Ttl;
        _ttlMs = ConnectionClock.WholeMs(ttl);
    }

    /// <summary>The write counts only while the token's holder has the lock.</summary>
    public void AddFence(string resource, long token)
    {
        _flags |= CommandFlags.Fenced;
        FenceToken = token;
        Refusal ??= _fenceName.Set(resource, "fence resource");
    }

    public void AddReadRevision(long? revision)
    {
        if (revision is { } atRevision)
        {
            _flags |= CommandFlags.AtRevision;
            _atRevision = atRevision;
        }
    }

    public void AddNumber(long number)
    {
        _flags |= CommandFlags.Number;
        _number = number;
    }

    /// <summary>A number that came with the call, from a caller who keeps a session of his own.</summary>
    public void SetNumber(ulong sessionId, ulong sequence, ushort lag, bool mayHaveHappened)
    {
        SessionId = sessionId;
        Sequence = sequence;
        _lag = lag;
        MayHaveHappened = mayHaveHappened;
    }

    /// <summary>An idempotency key instead of a number of the client's session.</summary>
    public void SetKey(string key)
    {
        if (!IdempotencyKey.TryHash(key, out ulong session, out string? sentence))
        {
            Refusal ??= Failures.BadArgument(sentence);
            return;
        }

        _flags |= CommandFlags.Session | CommandFlags.Opening | CommandFlags.Keyed;
        SetNumber(session, 1, 0, mayHaveHappened: false);
    }

    /// <summary>Gives the number up: it goes out under another one. Only when no attempt can have been carried out.</summary>
    public void DropNumber()
    {
        Session?.End(Sequence);
        Session = null;
        Sequence = 0;
    }

    /// <summary>The request as the wire has it; its spans point into this operation. Session and number are the same for every attempt.</summary>
    /// <param name="holdLeftMs">With <see cref="HoldMs"/>: what is left of it. A later attempt is held back for less, so that its answer is here in time.</param>
    public Command ToCommand(long holdLeftMs) => new()
    {
        Kind = _kind,
        Durability = _durability,
        Flags = _flags | SessionFlags,
        SessionId = SessionId,
        Sequence = Sequence,
        Lag = Session?.LagOf(Sequence) ?? _lag,
        Epoch = Sequence == 0 || _durability != CommandDurability.Ephemeral ? (ushort)0 : GivenEpoch != 0 ? GivenEpoch : (ushort)Epoch,
        Key = Key,
        Value = _value.Span,
        ComparedValue = _compared.Span,
        ComparedRevision = _comparedRevision,
        TtlMs = _ttlMs,
        AtRevision = _atRevision,
        Number = HoldMs == 0 ? _number : Math.Clamp(holdLeftMs, 0, _number),
        FenceToken = FenceToken,
        FenceName = FenceName,
    };

    private CommandFlags SessionFlags =>
        Sequence == 0 ? CommandFlags.None : Session is null || Session.IsOpen(Route) ? CommandFlags.Session : CommandFlags.Session | CommandFlags.Opening;

    /// <summary>Ends it with a reply. The caller has won <see cref="TryEnd"/> and holds no lock, as continuations may run before this returns.</summary>
    public void Complete(scoped in Outcome outcome)
    {
        if (Session is not null && outcome.Status < OutcomeStatus.InvalidArgument)
        {
            Session.Opened(Route);
        }

        ReplyStatus = outcome.Status;
        ReplyRevision = outcome.Revision;
        ReplyNumber = outcome.Number;
        if (outcome.Status >= OutcomeStatus.InvalidArgument)
        {
            Fail(Failures.FromOutcome(in outcome, IsRead, MayHaveHappened));
            return;
        }

        if (outcome.HasValue)
        {
            ReplyValue = outcome.ValueIsNull ? KahunaValue.Null : new KahunaValue(outcome.Value.Length == 0 ? ReadOnlyMemory<byte>.Empty : outcome.Value.ToArray());
        }

        Session?.End(Sequence);
        Succeed();
    }

    /// <summary>Ends it with an exception; the caller's code never runs inside this call. The caller has won <see cref="TryEnd"/>.</summary>
    public void Fail(Exception failure)
    {
        Session?.End(Sequence);
        SetFailure(failure);
    }

    protected abstract void Succeed();

    protected abstract void SetFailure(Exception failure);

    /// <summary>Makes it pending in a new generation.</summary>
    protected void Renew() => Volatile.Write(ref _tag, ((Volatile.Read(ref _tag) / States) + 1) % (int.MaxValue / States) * States);

    /// <summary>Forgets the call, so that the pool keeps nothing alive.</summary>
    protected void Clear()
    {
        _text?.Return();
        _text = null;
        (_value, _compared, _flags) = (default, default, default);
        _key.Clear();
        _fenceName.Clear();
        Refusal = null;
        Attempts = 0;
        HintedNodeId = 0;
        LastRefusal = OutcomeStatus.Unset;
        Stream = null;
        RequestNumber = 0;
        Route = -1;
        Term = 0;
        FixedPartition = null;
        Patience = null;
        EndsInline = false;
        Epoch = 0;
        GivenEpoch = 0;
        Session = null;
        (SessionId, Sequence, _lag) = (0, 0, 0);
        MayHaveHappened = false;
        LostWith = null;
        IsCancelable = false;
        ReplyValue = null;
    }
}
