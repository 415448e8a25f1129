using System.Buffers.Binary;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Raft;

/// <summary>
/// One group's log as the core sees it: the terms of all its indexes, the entries in memory, and four positions.
/// Applied ≤ commit and durable ≤ handed out; all four lie between the start and the last index. Owned by one core; not
/// thread-safe.
/// </summary>
internal sealed class EntryLog
{
    private readonly TermRuns _terms;
    private readonly EntryMemory _memory;
    private readonly int _cacheBytes;
    private readonly int _cacheTicks;
    private readonly int _applyBytesMax;
    private readonly bool _isVolatile;
    private int _ticks;

    // Bytes appended when the current span of the cache began, and when the previous one did.
    private long _atSpan;
    private long _atSpanBefore;

    public EntryLog(RaftConfig config, RaftStart start)
    {
        _terms = new TermRuns(start);
        InvariantException.Require(
            start.Terms.Count == 0 ? start.LastIndex == start.Start : start.LastIndex >= _terms.LastFirst,
            "the recovered terms fit the recovered log");
        InvariantException.Require(start.Applied <= start.LastIndex, "what is applied is in the log");
        InvariantException.Require(start.Applied >= start.Start, "what the log no longer holds is applied");

        // The stored commit index is a hint. It may exceed the log when a crash tore off the last entries.
        LogIndex commit = start.HardState.Commit < start.LastIndex ? start.HardState.Commit : start.LastIndex;
        CommitIndex = commit > start.Applied ? commit : start.Applied;
        AppliedIndex = start.Applied;
        LastIndex = start.LastIndex;
        DurableIndex = start.LastIndex;
        HandedOutIndex = start.LastIndex;
        _cacheBytes = config.Limits.CacheBytes;
        _cacheTicks = config.Limits.CacheTicks;
        _applyBytesMax = config.Limits.ApplyBytesMax;
        MemoryBytesMax = config.Limits.CacheBytesMax;
        _isVolatile = config.IsVolatile;
        _memory = new EntryMemory(start.Applied.Next());
    }

    /// <summary>The index before the first entry that storage holds. Its term stays known.</summary>
    public LogIndex Start => _terms.Start;

    public LogIndex LastIndex { get; private set; }

    public Term LastTerm => _terms.LastTerm;

    public LogIndex CommitIndex { get; private set; }

    public LogIndex AppliedIndex { get; private set; }

    /// <summary>
    /// The last entry that the next Ready asks to apply: the commit index, or as far as
    /// <see cref="RaftLimits.ApplyBytesMax"/> allows. At least one entry always fits.
    /// </summary>
    public LogIndex ApplicableIndex
    {
        get
        {
            if (CommitIndex == AppliedIndex)
            {
                return CommitIndex;
            }

            LogIndex last = AppliedIndex + (ulong)_memory.CountWithin(AppliedIndex.Next(), _applyBytesMax);
            return last < CommitIndex ? last : CommitIndex;
        }
    }

    /// <summary>Last index on stable storage.</summary>
    public LogIndex DurableIndex { get; private set; }

    /// <summary>Last index that was handed out to be persisted.</summary>
    public LogIndex HandedOutIndex { get; private set; }

    /// <summary>While a Ready is open: the last index that it may contain. 0 when none is open.</summary>
    public LogIndex OpenThrough { get; set; }

    /// <summary>Most bytes of entries that memory keeps for a member that lags.</summary>
    public long MemoryBytesMax { get; set; }

    /// <summary>
    /// Bytes of the cache that never age, up to <see cref="RaftLimits.CacheBytes"/>. Without them, a member of a
    /// volatile group that was away for long needs a snapshot.
    /// </summary>
    public long CacheBytesMin { get; set; }

    /// <summary>Bytes of the entries in memory.</summary>
    public long MemoryBytes => _memory.Bytes;

    /// <summary>
    /// Most bytes that the cache may hold now. Cut entries count as never appended, so the difference may be negative.
    /// </summary>
    private long CacheBytes => Math.Min(Math.Max(_memory.AddedBytes - _atSpanBefore, CacheBytesMin), _cacheBytes);

    /// <summary>First index whose entry is in memory.</summary>
    public LogIndex FirstInMemory => _memory.First;

    /// <summary>All entries above the applied index are in memory, as the first input requires.</summary>
    public bool IsRestored => _memory.End == LastIndex.Next();

    public Term TermAt(LogIndex index)
    {
        InvariantException.Require(index <= LastIndex, "the index is in the log");
        return _terms.At(index);
    }

    /// <summary>The log holds this entry, or starts right after it. False for entries below the start.</summary>
    public bool Matches(LogIndex index, Term term) => index >= Start && index <= LastIndex && _terms.At(index) == term;

    /// <summary>See <see cref="TermRuns.LastAtMost"/>.</summary>
    public LogIndex LastAtMost(LogIndex index, Term term) =>
        _terms.LastAtMost(index < LastIndex ? index : LastIndex, term);

    /// <summary>A log that ends with this entry is at least as complete as this one (Raft §5.4.1).</summary>
    public bool IsUpToDate(LogIndex lastIndex, Term lastTerm) =>
        lastTerm > LastTerm || (lastTerm == LastTerm && lastIndex >= LastIndex);

    /// <summary>Puts recovered entries back into memory.</summary>
    public void Restore(LogIndex first, ReadOnlySpan<byte> entries)
    {
        InvariantException.Require(first == _memory.End, "recovered entries follow one another");
        ReadOnlySpan<byte> rest = entries;
        while (!rest.IsEmpty)
        {
            ReadOnlySpan<byte> encoded = rest;
            InvariantException.Require(
                EntryCodec.TryRead(ref rest, out Term term, out _, out _), "recovered entries decode");
            InvariantException.Require(
                _memory.End <= LastIndex && term == _terms.At(_memory.End),
                "recovered entries have the recovered terms");
            encoded = encoded[..^rest.Length];
            encoded.CopyTo(_memory.Add(encoded.Length));
        }
    }

    /// <summary>Appends a new entry at the end; the caller fills its payload.</summary>
    public LogIndex Append(Term term, EntryKind kind, int payloadBytes, out Span<byte> payload)
    {
        Span<byte> target = _memory.Add(EntryCodec.HeaderBytes + payloadBytes);
        BinaryPrimitives.WriteUInt64LittleEndian(target, term.Value);
        BinaryPrimitives.WriteUInt32LittleEndian(target[8..], (byte)kind);
        BinaryPrimitives.WriteUInt32LittleEndian(target[12..], (uint)payloadBytes);
        payload = target[EntryCodec.HeaderBytes..];
        return Appended(term);
    }

    /// <summary>Appends an encoded entry.</summary>
    public void AppendEncoded(Term term, ReadOnlySpan<byte> encoded)
    {
        encoded.CopyTo(_memory.Add(encoded.Length));
        Appended(term);
    }

    /// <summary>Removes the entries from <paramref name="from"/> on, which conflict with the leader's log.</summary>
    public void Cut(LogIndex from)
    {
        InvariantException.Require(from > CommitIndex, "a committed entry is never cut");
        InvariantException.Require(from > OpenThrough, "the log is not cut under an open Ready");
        _memory.CutFrom(from);
        _terms.Cut(from);
        LastIndex = from.Previous();
        HandedOutIndex = HandedOutIndex < LastIndex ? HandedOutIndex : LastIndex;
        DurableIndex = DurableIndex < LastIndex ? DurableIndex : LastIndex;
    }

    /// <summary>
    /// Storage no longer holds entries up to <paramref name="index"/>. Forgets their terms except the last.
    /// </summary>
    public void CutThrough(LogIndex index)
    {
        InvariantException.Require(
            index <= AppliedIndex && index <= DurableIndex, "only what is applied and durable is cut from the front");
        if (index > Start)
        {
            _terms.CutThrough(index);
        }
    }

    /// <summary>A snapshot up to this entry replaces the whole log.</summary>
    public void Restart(LogIndex index, Term term)
    {
        InvariantException.Require(index > CommitIndex, "a state replaces the log only ahead of what is committed");
        _memory.Restart(index.Next());
        _terms.Restart(index, term);
        LastIndex = index;
        CommitIndex = index;
        AppliedIndex = index;
        DurableIndex = index;
        HandedOutIndex = index;
    }

    public void Commit(LogIndex index)
    {
        InvariantException.Require(index >= CommitIndex, "the commit index never decreases");
        InvariantException.Require(index <= LastIndex, "only entries of the log are committed");
        CommitIndex = index;
    }

    /// <summary>
    /// Storage confirmed this position. False when the confirmation is stale: the log was cut since, or the position is
    /// known already.
    /// </summary>
    public bool Persisted(LogIndex index, Term term)
    {
        if (index <= DurableIndex || index > HandedOutIndex || _terms.At(index) != term)
        {
            return false;
        }

        DurableIndex = index;
        return true;
    }

    public void MarkHandedOut(LogIndex first, LogIndex last)
    {
        InvariantException.Require(
            first == HandedOutIndex.Next() && last <= LastIndex, "entries are handed out once and in order");
        HandedOutIndex = last;
    }

    public void MarkApplied(LogIndex first, LogIndex last)
    {
        InvariantException.Require(first == AppliedIndex.Next(), "entries are applied once and in order");
        InvariantException.Require(last <= CommitIndex, "only committed entries are applied");
        AppliedIndex = last;
    }

    /// <summary>
    /// Counts one tick. At the end of a span, the cache stops keeping entries that were appended before that span
    /// began.
    /// </summary>
    public void Tick()
    {
        if (++_ticks >= _cacheTicks)
        {
            _ticks = 0;
            _atSpanBefore = _atSpan;
            _atSpan = _memory.AddedBytes;
            _memory.LetGo();
        }
    }

    /// <summary>
    /// Drops applied and durable entries from memory: those up to <paramref name="held"/>, which no active follower
    /// needs, except for a cache of the last of them. Drops more when memory exceeds its limit.
    /// </summary>
    public void Trim(LogIndex held)
    {
        LogIndex droppable = AppliedIndex < DurableIndex ? AppliedIndex : DurableIndex;
        LogIndex unneeded = held < droppable ? held : droppable;
        LogIndex first = _memory.First;
        if (droppable < first)
        {
            return;
        }

        long cacheBytes = CacheBytes;
        long excess = _memory.BytesBetween(first, unneeded) - cacheBytes;
        LogIndex last = unneeded;
        if (_memory.Bytes - MemoryBytesMax > excess)
        {
            excess = _memory.Bytes - MemoryBytesMax;
            last = droppable;
        }

        if (excess <= 0)
        {
            return;
        }

        // Memory is freed in chunks, so dropping waits until one chunk's worth of entries can go.
        if (excess >= EntryMemory.ChunkBytes || excess >= cacheBytes)
        {
            LogIndex through = first + (ulong)(_memory.CountWithin(first, (int)Math.Min(excess, int.MaxValue)) - 1);
            _memory.DropThrough(through < last ? through : last);
            if (_isVolatile)
            {
                CutThrough(_memory.First.Previous());
            }
        }
    }

    public ReadOnlySpan<byte> Payload(LogIndex index, out Term term, out EntryKind kind)
    {
        ReadOnlySpan<byte> encoded = _memory.Encoded(index);
        term = new Term(BinaryPrimitives.ReadUInt64LittleEndian(encoded));
        kind = (EntryKind)encoded[8];
        return encoded[EntryCodec.HeaderBytes..];
    }

    public void CopyEntries(LogIndex first, int count, ByteBuffer target)
    {
        if (count > 0)
        {
            _memory.CopyTo(first, count, target);
        }
    }

    public void CopyEntries(LogIndex first, int count, Span<byte> target) => _memory.CopyTo(first, count, target);

    /// <summary>See <see cref="EntryMemory.CountWithin"/>.</summary>
    public int CountWithin(LogIndex from, int bytesMax) => _memory.CountWithin(from, bytesMax);

    public long BytesBetween(LogIndex from, LogIndex through) => _memory.BytesBetween(from, through);

    private LogIndex Appended(Term term)
    {
        LastIndex = LastIndex.Next();
        _terms.Add(LastIndex, term);
        return LastIndex;
    }
}
