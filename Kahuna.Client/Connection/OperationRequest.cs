using System.Text;
using Kahuna.Client.Outcomes;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Client.Connection;

/// <summary>
/// The arguments of one call, which every attempt encodes anew. Part of an <see cref="Operation"/>: filled by a facade
/// before the call starts and only read afterwards. An argument that cannot be sent is kept as <see cref="Refusal"/>.
/// </summary>
internal struct OperationRequest
{
    private NameBuffer _key;
    private NameBuffer _fenceName;
    private ReadOnlyMemory<byte> _value;
    private ReadOnlyMemory<byte> _compared;
    private ByteBuffer? _text;
    private CommandFlags _flags;
    private long _comparedRevision, _ttlMs, _atRevision, _number;

    /// <summary>The operation's kind.</summary>
    public CommandKind Kind { get; private set; }

    /// <summary>The durability level of its key.</summary>
    public Durability Durability { get; private set; }

    /// <summary>
    /// Why the arguments cannot be sent; null when they can. The operation fails with it before any attempt.
    /// </summary>
    public KahunaException? Refusal { get; private set; }

    /// <summary>The fencing token that a write carries.</summary>
    public FencingToken FenceToken { get; private set; }

    /// <summary>The partition of a request that has no key, such as a page of a list; null for all others.</summary>
    public int? FixedPartition { get; set; }

    /// <summary>A limit on the duration that is below the request timeout; null for none.</summary>
    public TimeSpan? Patience { get; set; }

    /// <summary>
    /// The code behind the await is the client's own and runs on the thread that received the reply.
    /// </summary>
    public bool EndsInline { get; set; }

    /// <summary>
    /// A mutation that needs no number of a session, because carrying it out again changes nothing: it is taken also
    /// where no further session is.
    /// </summary>
    public bool IsIdempotent { get; set; }

    /// <summary>Of a node that coordinates for a user: whose account the write is charged to; 0 for a client.</summary>
    public ushort Account { get; set; }

    /// <summary>The key's bytes.</summary>
    public readonly ReadOnlySpan<byte> Key => _key.Bytes;

    /// <summary>The name of the lock whose token a write carries; empty without one.</summary>
    public readonly ReadOnlySpan<byte> FenceName => _fenceName.Bytes;

    /// <summary>The amount, count, wait, hold or partition that it carries, depending on the kind.</summary>
    public readonly long Number => _number;

    /// <summary>True for kinds that change nothing.</summary>
    public readonly bool IsRead => CommandKinds.IsRead(Kind);

    /// <summary>True when it has an idempotency key.</summary>
    public readonly bool IsKeyed => (_flags & CommandFlags.Keyed) != 0;

    /// <summary>How long the leader may delay its answer to a long poll, in ms; 0 for all other operations.</summary>
    public readonly int HoldMs => CommandKinds.Has(Kind, CommandTraits.MayBeHeld)
        ? (int)Math.Clamp(_number, 0, Limits.LockHoldMsMax)
        : 0;

    /// <summary>Sets the fields that every request has. The first call after the rent.</summary>
    public void Begin(CommandKind kind, Durability durability, string key)
    {
        Kind = kind;
        Durability = durability;
        Refusal = _key.Set(key, "key");
    }

    /// <summary>Sets the value. The bytes stay the caller's and must not change before the operation ends.</summary>
    public void SetValue(ReadOnlyMemory<byte> value)
    {
        if (value.Length > Limits.ValueBytesCeiling)
        {
            Refusal ??= OperationErrors.ValueTooLong("value", value.Length);
            return;
        }

        _value = value;
    }

    /// <summary>Sets the value to text in UTF-8; null is the null value.</summary>
    public void SetValue(string? text)
    {
        if (text is null)
        {
            AddFlag(CommandFlags.NullValue, true);
            return;
        }

        // The upper bound for a long string exceeds the largest array, so the bytes are counted exactly.
        try
        {
            int bytes = Utf8Text.Strict.GetByteCount(text);
            if (bytes > Limits.ValueBytesCeiling)
            {
                Refusal ??= OperationErrors.ValueTooLong("value", bytes);
                return;
            }

            _text = ByteBuffer.Rent(bytes);
            Utf8Text.Strict.GetBytes(text, _text.Take(bytes));
            _value = _text.WrittenMemory;
        }
        catch (EncoderFallbackException)
        {
            Refusal ??= OperationErrors.NoUtf8("value");
        }
    }

    /// <summary>Sets a flag if <paramref name="isSet"/>.</summary>
    public void AddFlag(CommandFlags flag, bool isSet)
    {
        if (isSet)
        {
            _flags |= flag;
        }
    }

    /// <summary>Adds the compare conditions that are not null.</summary>
    public void AddComparison(KahunaValue? value, Revision? revision)
    {
        if (value is { } compared)
        {
            _flags |= CommandFlags.IfValue;
            AddFlag(CommandFlags.NullCompared, compared.IsNull);
            if (compared.Memory.Length > Limits.ValueBytesCeiling)
            {
                Refusal ??= OperationErrors.ValueTooLong("if_value", compared.Memory.Length);
                return;
            }

            _compared = compared.Memory;
        }

        if (revision is { } comparedRevision)
        {
            _flags |= CommandFlags.IfRevision;
            _comparedRevision = comparedRevision.Value;
        }
    }

    /// <summary>
    /// Names the pessimistic transaction that commits, unless the id is empty. On the wire it is the compared value.
    /// </summary>
    public void SetHolder(ReadOnlyMemory<byte> id) =>
        AddComparison(id.IsEmpty ? default(KahunaValue?) : new KahunaValue(id), null);

    /// <summary>
    /// Adds a time to live or a lease. It is rounded away from zero to whole milliseconds, so that a lease never ends
    /// early and a negative span stays negative.
    /// </summary>
    public void AddTtl(TimeSpan ttl)
    {
        _flags |= CommandFlags.Ttl;
        _ttlMs = ConnectionClock.WholeMs(ttl);
    }

    /// <summary>Makes the write count only while the token's holder has the lock.</summary>
    public void AddFence(string resource, FencingToken token)
    {
        _flags |= CommandFlags.Fenced;
        FenceToken = token;
        Refusal ??= _fenceName.Set(resource, "fence resource");
    }

    /// <summary>Adds the revision to read at, unless it is null.</summary>
    public void AddReadRevision(Revision? revision)
    {
        if (revision is { } atRevision)
        {
            _flags |= CommandFlags.AtRevision;
            _atRevision = atRevision.Value;
        }
    }

    /// <summary>Adds the amount of an increment, or the count of values to take from a sequence.</summary>
    public void AddNumber(long number)
    {
        _flags |= CommandFlags.Number;
        _number = number;
    }

    /// <summary>Sets the token of the claim. On the wire it is the compared revision.</summary>
    public void SetToken(FencingToken token) => AddComparison(null, new Revision(token.Value));

    /// <summary>Sets how long the claim may wait in the queue, in ms. On the wire it is the number.</summary>
    public void SetWait(long ms) => AddNumber(ms);

    /// <summary>Sets how long the leader may delay its answer, in ms. On the wire it is the number.</summary>
    public void SetHold(long ms) => AddNumber(ms);

    /// <summary>
    /// Restricts a release to a place in the queue; a lock that was granted stays. On the wire it is the flag of an
    /// absent key.
    /// </summary>
    public void SetOnlyPlace(bool isSet) => AddFlag(CommandFlags.IfAbsent, isSet);

    /// <summary>
    /// Sets the page of a list: partition and cursor. On the wire they are the number and the revision to read at.
    /// </summary>
    public void SetPage(int partition, long cursor)
    {
        AddNumber(partition);
        AddReadRevision(new Revision(cursor));
        FixedPartition = partition;
    }

    /// <summary>
    /// Sets the page of a range: its partition, the first key behind it, and <see cref="RangeRequest.Options"/>. On the
    /// wire they are the number, the compared value and the revision to read at.
    /// </summary>
    public void SetRange(int partition, byte[]? end, long options)
    {
        SetPage(partition, options);
        AddComparison(end is null ? default(KahunaValue?) : (KahunaValue)end, null);
    }

    /// <summary>Sets the cut that is read, if there is one. On the wire it is the compared revision.</summary>
    public void SetCut(long number)
    {
        if (number != 0)
        {
            AddComparison(null, new Revision(number));
        }
    }

    /// <summary>Adds an idempotency key and returns its session; 0 when the key is refused.</summary>
    public ulong AddIdempotencyKey(string key)
    {
        if (!IdempotencyKey.TryHash(key, out ulong session, out string? sentence))
        {
            Refusal ??= OperationErrors.BadArgument(sentence);
            return 0;
        }

        _flags |= CommandFlags.Session | CommandFlags.Opening | CommandFlags.Keyed;
        return session;
    }

    /// <summary>The arguments as a command without a session; its spans point into this request.</summary>
    /// <param name="holdLeftMs">
    /// With <see cref="HoldMs"/>: the rest of it. A later attempt is held for less, so that its answer comes in time.
    /// </param>
    public readonly Command ToCommand(long holdLeftMs) => new()
    {
        Kind = Kind,
        Durability = Durability,
        Flags = _flags,
        Key = Key,
        Value = _value.Span,
        ComparedValue = _compared.Span,
        ComparedRevision = _comparedRevision,
        TtlMs = _ttlMs,
        AtRevision = _atRevision,
        Number = HoldMs == 0 ? _number : Math.Clamp(holdLeftMs, 0, _number),
        FenceToken = FenceToken.Value,
        FenceName = FenceName,
        Account = Account,
    };

    /// <summary>Forgets the arguments, so that the pool keeps none of the caller's memory alive.</summary>
    public void Clear()
    {
        _text?.Return();
        _text = null;
        (_value, _compared, _flags) = (default, default, default);
        _key.Clear();
        _fenceName.Clear();
        Refusal = null;
        FenceToken = default;
        Account = 0;
        FixedPartition = null;
        Patience = null;
        EndsInline = false;
        IsIdempotent = false;
    }

    /// <summary>
    /// A name in UTF-8, in memory that is reused by later calls. Part of an <see cref="OperationRequest"/>.
    /// </summary>
    private struct NameBuffer
    {
        private byte[]? _bytes;
        private int _length;

        public readonly ReadOnlySpan<byte> Bytes => _bytes.AsSpan(0, _length);

        /// <summary>Takes a name; returns why it cannot be one, or null.</summary>
        /// <param name="name">The text.</param>
        /// <param name="field">The argument's name in the error.</param>
        public KahunaException? Set(string name, string field)
        {
            _length = 0;
            int had = _bytes?.Length ?? 0;
            int bytesMax = Utf8Text.Strict.GetMaxByteCount(name.Length);
            if (_bytes is null || (had < bytesMax && had < Limits.KeyBytesMax))
            {
                _bytes = new byte[Math.Min(Math.Max(bytesMax, Math.Max(2 * had, 64)), Limits.KeyBytesMax)];
            }

            try
            {
                return Utf8Text.Strict.TryGetBytes(name, _bytes, out _length)
                    ? null
                    : OperationErrors.NameTooLong(field, name);
            }
            catch (EncoderFallbackException)
            {
                _length = 0;
                return OperationErrors.NoUtf8(field);
            }
        }

        public void Clear() => _length = 0;
    }
}

/// <summary>
/// Where an operation is between its start and its end: its deadline, the route of the current attempt and the stream
/// that has it. Part of an <see cref="Operation"/>; written by the holder of the operation, or under the lock of the
/// stream that has it.
/// </summary>
internal struct OperationAttempt
{
    /// <summary>When the operation fails, on the time provider's timestamp scale.</summary>
    public long Deadline;

    /// <summary>Until when the leader may delay its answer to a long poll.</summary>
    public long HoldUntil;

    /// <summary>How often it was sent or looked for a route. Decides the pause before the next attempt.</summary>
    public int Count;

    /// <summary>While no stream has it: when it is tried again.</summary>
    public long NotBefore;

    /// <summary>The leader that a refusal named, for the next attempt only; 0 for none.</summary>
    public int HintedNodeId;

    /// <summary>The attempt goes to a node that does not lead and is asked to forward it to the leader.</summary>
    public bool IsForwarded;

    /// <summary>The partition and durability that it is for; -1 while the cluster's map is unknown.</summary>
    public int Route;

    /// <summary>The newest known term of that route when the attempt was sent.</summary>
    public ulong Term;

    /// <summary>
    /// The epoch that the attempt is for: an attempt that arrives late is not applied in another one. 0 for persistent
    /// keys.
    /// </summary>
    public ulong Epoch;

    /// <summary>
    /// The last stream that took it; null before the first. Written under a hold and the stream's lock. A cancellation
    /// reads it after it has ended the operation, and so sees the newest.
    /// </summary>
    public NodeStream? Stream;

    /// <summary>
    /// Its number within <see cref="Stream"/>; 0 while it is queued there without one, and after a refusal. Guarded by
    /// the stream's lock.
    /// </summary>
    public uint RequestNumber;

    /// <summary>The version of the client's credentials that a node refused; 0 for none.</summary>
    public int RefusedCredentials;

    /// <summary>Forgets the last call, so that the pool keeps no stream alive.</summary>
    public void Clear()
    {
        Count = 0;
        HintedNodeId = 0;
        Stream = null;
        RequestNumber = 0;
        Route = -1;
        Term = 0;
        Epoch = 0;
        RefusedCredentials = 0;
    }
}
