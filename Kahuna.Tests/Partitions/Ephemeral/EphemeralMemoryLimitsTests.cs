using Kahuna.Server.Partitions.Ephemeral;
using Kahuna.Server.Raft;

namespace Kahuna.Tests.Partitions.Ephemeral;

/// <summary>What goes and what is refused as the memory of ephemeral keys fills up.</summary>
public sealed class EphemeralMemoryLimitsTests
{
    private const long Limit = 16_000_000;

    [Fact]
    public void At_the_limit_keys_go_however_much_lies_free_among_them()
    {
        EphemeralMemory memory = new(Limit, evicts: true);
        memory.Changed(bytes: 22_000_000, free: 18_000_000, evictable: 2_000_000);
        Assert.NotNull(memory.RefuseWrites(0));
        Assert.InRange(memory.ShareToEvict(2_000_000), 1_000_000, 2_000_000);
        memory.Changed(bytes: -14_000_000, free: -18_000_000, evictable: -1_500_000);
        Assert.Null(memory.RefuseWrites(0));
        Assert.InRange(memory.ShareToEvict(500_000), 3_000_000, 7_000_000);
    }

    [Fact]
    public void A_group_gives_as_much_as_it_has_of_what_can_go()
    {
        EphemeralMemory memory = new(Limit, evicts: true);

        // One group is full of what never goes by itself; the others make the room.
        memory.Changed(bytes: 14_000_000, free: 0, evictable: 0);
        Assert.Equal(0, memory.ShareToEvict(0));
        memory.Changed(bytes: 1_000_000, free: 0, evictable: 1_000_000);
        long all = memory.ShareToEvict(1_000_000);
        memory.Changed(bytes: 0, free: 0, evictable: 1_000_000);
        Assert.InRange(memory.ShareToEvict(1_000_000), all / 2, (all / 2) + 1);
    }

    [Fact]
    public void What_is_accepted_and_not_applied_counts_before_it_is_stored()
    {
        EphemeralMemory memory = new(Limit);
        memory.Changed(bytes: 10_000_000, free: 0, evictable: 0);
        Assert.Null(memory.RefuseWrites(5_000_000));
        Assert.NotNull(memory.RefuseWrites(7_000_000));
    }

    [Theory]
    [InlineData(Limit, 3)]
    [InlineData(1_000_000_000, 64)]
    [InlineData(long.MaxValue, 3)]
    public void Logs_in_memory_are_a_small_part_of_the_limit(long limit, int groups)
    {
        RaftLimits limits = new EphemeralMemory(limit).LimitLog(new RaftLimits(), groups);
        Assert.InRange(limits.CacheBytesMax, 512 << 10, Math.Max(limit / 4 / groups, 512 << 10));
        Assert.InRange(limits.CacheBytes, 512 << 10, limits.CacheBytesMax);
        Assert.InRange(limits.CacheBytes, 0, new RaftLimits().CacheBytes);
    }
}
