using System.Buffers.Binary;
using System.Runtime.InteropServices;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

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
        Level = start.Level;
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

    /// <summary>
    /// The feature level of the next own entry: the highest that the owner has named or an entry here has had, also one
    /// that was cut. An entry has a level only after the cluster has it, so a level never has to be taken back.
    /// </summary>
    public FeatureLevel Level { get; private set; }

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
            RaiseLevel(EntryCodec.LevelOf(encoded));
        }
    }

    /// <summary>The cluster has at least this feature level.</summary>
    public void RaiseLevel(FeatureLevel level) => Level = FeatureLevel.Max(Level, level);

    /// <summary>Appends a new entry at the end; the caller fills its payload.</summary>
    public LogIndex Append(Term term, EntryKind kind, int payloadBytes, out Span<byte> payload)
    {
        Span<byte> target = _memory.Add(EntryCodec.HeaderBytes + payloadBytes);
        EntryCodec.WriteHeader(target, term, kind, Level, payloadBytes);
        payload = target[EntryCodec.HeaderBytes..];
        return Appended(term);
    }

    /// <summary>Appends an encoded entry.</summary>
    public void AppendEncoded(Term term, ReadOnlySpan<byte> encoded)
    {
        encoded.CopyTo(_memory.Add(encoded.Length));
        RaiseLevel(EntryCodec.LevelOf(encoded));
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

    public ReadOnlySpan<byte> Payload(LogIndex index, out Term term, out EntryKind kind, out FeatureLevel level)
    {
        ReadOnlySpan<byte> encoded = _memory.Encoded(index);
        term = new Term(BinaryPrimitives.ReadUInt64LittleEndian(encoded));
        kind = (EntryKind)encoded[8];
        level = EntryCodec.LevelOf(encoded);
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

/// <summary>
/// The term of every index of a log, as a short list of runs. The list grows with elections, not with entries, so it
/// stays in memory when the entries do not. Owned by one <see cref="EntryLog"/>; not thread-safe.
/// </summary>
internal sealed class TermRuns
{
    // The first element is the entry before the first one: its index and term, both 0 if the log was never cut.
    private readonly List<TermRun> _runs = new(16);

    public TermRuns(RaftStart start)
    {
        InvariantException.Require(
            (start.Start.Value == 0) == (start.StartTerm.Value == 0), "the term before the first entry is known");
        _runs.Add(new TermRun(start.Start, start.StartTerm));
        LogIndex first = default;
        foreach (TermRun run in start.Terms)
        {
            InvariantException.Require(
                first.Value == 0 ? run.First == start.Start.Next() : run.First > first,
                "term runs begin at the first entry and ascend");
            Add(run.First, run.Term);
            first = run.First;
        }

        LastFirst = first;
    }

    /// <summary>The index before the first entry.</summary>
    public LogIndex Start => _runs[0].First;

    public Term LastTerm => _runs[^1].Term;

    /// <summary>First index of the last run that the log started with; 0 if it started without entries.</summary>
    public LogIndex LastFirst { get; }

    /// <summary>The term at an index of the log, or at its start.</summary>
    public Term At(LogIndex index)
    {
        int position = Find(index);
        InvariantException.Require(position >= 0, "an index at or behind the log's start has a term");
        return _runs[position].Term;
    }

    /// <summary>Extends the last run, or begins one if the term is new.</summary>
    public void Add(LogIndex index, Term term)
    {
        if (_runs[^1].Term == term)
        {
            return;
        }

        InvariantException.Require(term > LastTerm, "terms never decrease along a log");
        _runs.Add(new TermRun(index, term));
    }

    /// <summary>Forgets the entries from <paramref name="from"/> on.</summary>
    public void Cut(LogIndex from)
    {
        InvariantException.Require(from > Start, "the place before the first entry stays known");
        while (_runs[^1].First >= from)
        {
            _runs.RemoveAt(_runs.Count - 1);
        }
    }

    /// <summary>Forgets the terms below <paramref name="index"/>, which becomes the start.</summary>
    public void CutThrough(LogIndex index)
    {
        int position = Find(index);
        _runs[position] = new TermRun(index, _runs[position].Term);
        _runs.RemoveRange(0, position);
    }

    /// <summary>Forgets everything; the log is empty and starts at this entry.</summary>
    public void Restart(LogIndex index, Term term)
    {
        _runs.Clear();
        _runs.Add(new TermRun(index, term));
    }

    /// <summary>
    /// The last index at or below <paramref name="index"/> whose term is at most <paramref name="term"/>; 0 if there is
    /// none above or at the start. Skips whole terms.
    /// </summary>
    public LogIndex LastAtMost(LogIndex index, Term term)
    {
        LogIndex candidate = index;
        for (int i = Find(index); i >= 0; i--)
        {
            if (_runs[i].Term <= term)
            {
                return candidate;
            }

            candidate = _runs[i].First.Previous();
        }

        return default;
    }

    private int Find(LogIndex index)
    {
        ReadOnlySpan<TermRun> runs = CollectionsMarshal.AsSpan(_runs);
        if (runs.Length > 0 && runs[^1].First <= index)
        {
            return runs.Length - 1;
        }

        int low = 0;
        int high = runs.Length - 1;
        while (low <= high)
        {
            int middle = (low + high) >>> 1;
            if (runs[middle].First <= index)
            {
                low = middle + 1;
            }
            else
            {
                high = middle - 1;
            }
        }

        return high;
    }
}
