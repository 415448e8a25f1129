using System.Buffers.Binary;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// One group's log as the core sees it: the terms of all indexes from its start on, the entries that are in memory, and the
/// four marks applied ≤ commit, durable ≤ handed out, none below the start or above the last index. Owned by one core; not thread-safe.
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

    // How much had been appended when this span of the cache began, and the one before.
    private long _atSpan;
    private long _atSpanBefore;

    public EntryLog(RaftConfig config, RaftStart start)
    {
        _terms = new TermRuns(start);
        InvariantException.Require(start.Terms.Count == 0 ? start.LastIndex == start.Start : start.LastIndex >= _terms.LastFirst, "the recovered terms fit the recovered log");
        InvariantException.Require(start.Applied <= start.LastIndex, "what is applied is in the log");
        InvariantException.Require(start.Applied >= start.Start, "what the log no longer holds is applied");

        // The commit mark is a hint that may have been written ahead of entries that a crash tore off.
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

    /// <summary>The index before the first entry that storage holds; its term stays known.</summary>
    public LogIndex Start => _terms.Start;

    public LogIndex LastIndex { get; private set; }

    public Term LastTerm => _terms.LastTerm;

    public LogIndex CommitIndex { get; private set; }

    public LogIndex AppliedIndex { get; private set; }

    /// <summary>
    /// The last entry that the next Ready asks to apply. It stops short of the commit index where <see cref="RaftLimits.ApplyBytesMax"/> ends; one entry always fits.
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

    /// <summary>While a Ready is open: the last index that it may name; 0 when none is open.</summary>
    public LogIndex OpenThrough { get; set; }

    /// <summary>Bytes of entries that are kept at the most for a member that is behind.</summary>
    public long MemoryBytesMax { get; set; }

    /// <summary>So much of the cache stays in any case, within <see cref="RaftLimits.CacheBytes"/>: without it a member of a volatile group that was away for long needs a whole state.</summary>
    public long CacheBytesMin { get; set; }

    /// <summary>Bytes of the entries in memory.</summary>
    public long MemoryBytes => _memory.Bytes;

    /// <summary>What the cache may hold now. Cut entries count as never appended, so that the difference may be negative.</summary>
    private long CacheBytes => Math.Min(Math.Max(_memory.AddedBytes - _atSpanBefore, CacheBytesMin), _cacheBytes);

    /// <summary>First index whose entry is in memory.</summary>
    public LogIndex FirstInMemory => _memory.First;

    /// <summary>All entries above the applied index are in memory, as they must be before the first input.</summary>
    public bool IsRestored => _memory.End == LastIndex.Next();

    public Term TermAt(LogIndex index)
    {
        InvariantException.Require(index <= LastIndex, "the index is in the log");
        return _terms.At(index);
    }

    /// <summary>The log holds this entry, or begins behind it. False also for what lies below the start.</summary>
    public bool Matches(LogIndex index, Term term) => index >= Start && index <= LastIndex && _terms.At(index) == term;

    /// <summary>See <see cref="TermRuns.LastAtMost"/>.</summary>
    public LogIndex LastAtMost(LogIndex index, Term term) => _terms.LastAtMost(index < LastIndex ? index : LastIndex, term);

    /// <summary>A log that ends so is at least as complete as this one (Raft §5.4.1).</summary>
    public bool IsUpToDate(LogIndex lastIndex, Term lastTerm) =>
        lastTerm > LastTerm || (lastTerm == LastTerm && lastIndex >= LastIndex);

    /// <summary>Recovered entries come back into memory.</summary>
    public void Restore(LogIndex first, ReadOnlySpan<byte> entries)
    {
        InvariantException.Require(first == _memory.End, "recovered entries follow one another");
        ReadOnlySpan<byte> rest = entries;
        while (!rest.IsEmpty)
        {
            ReadOnlySpan<byte> encoded = rest;
            InvariantException.Require(EntryCodec.TryRead(ref rest, out Term term, out _, out _), "recovered entries decode");
            InvariantException.Require(_memory.End <= LastIndex && term == _terms.At(_memory.End), "recovered entries have the recovered terms");
            encoded = encoded[..^rest.Length];
            encoded.CopyTo(_memory.Add(encoded.Length));
        }
    }

    /// <summary>Appends a new entry at the end.</summary>
    public LogIndex Append(Term term, EntryKind kind, ReadOnlySpan<byte> payload)
    {
        Span<byte> target = _memory.Add(EntryCodec.HeaderBytes + payload.Length);
        BinaryPrimitives.WriteUInt64LittleEndian(target, term.Value);
        BinaryPrimitives.WriteUInt32LittleEndian(target[8..], (byte)kind);
        BinaryPrimitives.WriteUInt32LittleEndian(target[12..], (uint)payload.Length);
        payload.CopyTo(target[EntryCodec.HeaderBytes..]);
        return Appended(term);
    }

    /// <summary>Appends an entry that is encoded already.</summary>
    public void AppendEncoded(Term term, ReadOnlySpan<byte> encoded)
    {
        encoded.CopyTo(_memory.Add(encoded.Length));
        Appended(term);
    }

    /// <summary>Removes entries from <paramref name="from"/> on: another leader's log goes on differently.</summary>
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

    /// <summary>Storage no longer holds entries up to <paramref name="index"/>; their terms are forgotten but for the last.</summary>
    public void CutThrough(LogIndex index)
    {
        InvariantException.Require(index <= AppliedIndex && index <= DurableIndex, "only what is applied and durable is cut from the front");
        if (index > Start)
        {
            _terms.CutThrough(index);
        }
    }

    /// <summary>A state that ends with this entry replaces the log, of which nothing is left.</summary>
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

    /// <summary>Storage confirmed this position. False when the confirmation is stale: the log was cut since, or it is known already.</summary>
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
        InvariantException.Require(first == HandedOutIndex.Next() && last <= LastIndex, "entries are handed out once and in order");
        HandedOutIndex = last;
    }

    public void MarkApplied(LogIndex first, LogIndex last)
    {
        InvariantException.Require(first == AppliedIndex.Next(), "entries are applied once and in order");
        InvariantException.Require(last <= CommitIndex, "only committed entries are applied");
        AppliedIndex = last;
    }

    /// <summary>A tick of the owner's clock: at the end of a span, what was appended before the one that has ended is no longer kept for a member that falls behind.</summary>
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
    /// Drops from memory what is applied and durable here: entries up to <paramref name="held"/>, which no active follower
    /// needs, except for a cache of the last of them; and more when memory is over its limit.
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

        // Memory goes back in chunks, so dropping waits until a chunk's worth has gathered.
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
