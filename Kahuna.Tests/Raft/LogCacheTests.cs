using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Tests.Raft;

/// <summary>The log's cache: recent entries that all members have, kept for one that falls behind.</summary>
public sealed class LogCacheTests
{
    private const int SpanTicks = 10;
    private const int CacheBytes = 4 << 20;
    private static readonly byte[] s_payload = new byte[1_000];

    [Fact]
    public void A_quiet_group_lets_its_cache_go()
    {
        EntryLog log = Log(isVolatile: false);
        Append(log, entries: 2_000);
        Assert.InRange(log.MemoryBytes, 2_000_000, CacheBytes);
        Span(log);
        Assert.InRange(log.MemoryBytes, 2_000_000, CacheBytes);
        Span(log);
        Assert.Equal(0, log.MemoryBytes);
        Assert.Equal(0UL, log.Start.Value);
    }

    [Fact]
    public void What_was_appended_of_late_stays()
    {
        EntryLog log = Log(isVolatile: true);
        Append(log, entries: 2_000);
        for (int i = 0; i < 6; i++)
        {
            Span(log);
            Append(log, entries: 100);
        }

        Assert.InRange(log.MemoryBytes, 200_000, 310_000 + EntryMemory.ChunkBytes);
        Assert.True(log.Start <= new LogIndex(2_400));
    }

    [Fact]
    public void A_busy_group_keeps_no_more_than_the_cache()
    {
        EntryLog log = Log(isVolatile: false);
        Append(log, entries: 10_000);
        Assert.InRange(log.MemoryBytes, CacheBytes - 2_000, CacheBytes + EntryMemory.ChunkBytes);
    }

    [Fact]
    public void A_quiet_volatile_group_keeps_a_log_that_is_worth_its_state()
    {
        EntryLog log = Log(isVolatile: true);
        log.CacheBytesMin = 600_000;
        Append(log, entries: 2_000);
        Span(log);
        Span(log);
        Assert.InRange(log.MemoryBytes, 590_000, 600_000 + EntryMemory.ChunkBytes);
        Assert.True(log.Start < new LogIndex(1_500));
        log.CacheBytesMin = 100L << 20;
        Append(log, entries: 10_000);
        Assert.InRange(log.MemoryBytes, CacheBytes - 2_000, CacheBytes + EntryMemory.ChunkBytes);
    }

    [Fact]
    public void What_a_follower_needs_stays_however_old_it_is()
    {
        EntryLog log = Log(isVolatile: true);
        Append(log, entries: 2_000, held: 500);
        for (int i = 0; i < 5; i++)
        {
            Span(log, held: 500);
        }

        Assert.True(log.FirstInMemory <= new LogIndex(501));
    }

    [Fact]
    public void After_a_cut_the_cache_is_no_larger_than_it_may_be()
    {
        EntryLog log = Log(isVolatile: false);
        Append(log, entries: 1_000);
        for (int i = 0; i < 1_000; i++)
        {
            log.Append(new Term(1), EntryKind.Commands, s_payload.Length, out Span<byte> room);
            s_payload.CopyTo(room);
        }

        Span(log);
        Span(log);
        log.Cut(new LogIndex(1_001));
        Span(log);
        Assert.Equal(0, log.MemoryBytes);
        Append(log, entries: 10);
        Span(log);
        Assert.Equal(1_010UL, log.LastIndex.Value);
    }

    [Fact]
    public void Idle_chunks_go_when_nobody_has_needed_them()
    {
        EntryMemory memory = new(new LogIndex(1));
        Fill(memory, 6_000, bytes: 250);
        memory.LetGo();
        Assert.InRange(Allocated(() => Fill(memory, 4_000, bytes: 250)), 0, 1_000);
        memory.LetGo();
        Fill(memory, 10, bytes: 250);
        memory.LetGo();
        Assert.InRange(Allocated(() => Fill(memory, 4_000, bytes: 250)), 3 * EntryMemory.ChunkBytes, long.MaxValue);
    }

    [Fact]
    public void A_large_ring_goes_when_it_was_never_full()
    {
        EntryMemory memory = new(new LogIndex(1));
        Fill(memory, 60_000, bytes: 1);
        memory.LetGo();
        Assert.InRange(Allocated(() => Fill(memory, 60_000, bytes: 1)), 0, 1_000);
        memory.LetGo();
        Fill(memory, 10, bytes: 1);
        memory.LetGo();
        Assert.InRange(Allocated(() => Fill(memory, 60_000, bytes: 1)), 60_000 * 16, long.MaxValue);
        Assert.Equal(180_011UL, memory.End.Value);
    }

    /// <summary>Adds entries, and drops them all.</summary>
    private static void Fill(EntryMemory memory, int entries, int bytes)
    {
        for (int i = 0; i < entries; i++)
        {
            memory.Add(bytes).Fill((byte)i);
        }

        memory.DropThrough(memory.End.Previous());
    }

    private static EntryLog Log(bool isVolatile) => new(
        new RaftConfig
        {
            Self = new NodeId(1),
            Group = new GroupId(1),
            Voters = [new NodeId(1)],
            IsVolatile = isVolatile,
            Limits = new RaftLimits { CacheBytes = CacheBytes, CacheTicks = SpanTicks },
            Seed = 1,
        },
        new RaftStart(default, [], default, default));

    /// <summary>Appends entries that are applied and durable at once.</summary>
    private static void Append(EntryLog log, int entries, ulong held = ulong.MaxValue)
    {
        for (int i = 0; i < entries; i++)
        {
            LogIndex index = log.Append(new Term(1), EntryKind.Commands, s_payload.Length, out Span<byte> room);
            s_payload.CopyTo(room);
            log.MarkHandedOut(index, index);
            log.Persisted(index, new Term(1));
            log.Commit(index);
            log.MarkApplied(index, index);
            log.Trim(new LogIndex(held));
        }
    }

    private static void Span(EntryLog log, ulong held = ulong.MaxValue)
    {
        for (int i = 0; i < SpanTicks; i++)
        {
            log.Tick();
            log.Trim(new LogIndex(held));
        }
    }

    private static long Allocated(Action action)
    {
        long before = GC.GetAllocatedBytesForCurrentThread();
        action();
        return GC.GetAllocatedBytesForCurrentThread() - before;
    }
}
