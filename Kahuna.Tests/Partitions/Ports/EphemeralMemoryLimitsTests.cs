using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Raft;

namespace Kahuna.Tests.Partitions.Ports;

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

    [Fact]
    public void Room_is_short_before_the_limit_and_writes_are_refused_there_when_little_lies_free()
    {
        EphemeralMemory evicting = new(Limit, evicts: true, reserve: 2_000_000);
        EphemeralMemory refusing = new(Limit, evicts: false, reserve: 2_000_000);
        evicting.Changed(bytes: Limit - 2_000_001, free: 0, evictable: 0);
        Assert.False(evicting.IsPressed);
        Assert.Null(evicting.RefuseWrites(0));
        evicting.Changed(bytes: 1, free: 0, evictable: 0);
        refusing.Changed(bytes: Limit - 2_000_000, free: 0, evictable: 0);
        Assert.True(evicting.IsPressed && refusing.IsPressed);
        Assert.NotNull(evicting.RefuseWrites(0));
        Assert.Null(refusing.RefuseWrites(0));
        evicting.Changed(bytes: 0, free: 1_000_000, evictable: 0);
        Assert.Null(evicting.RefuseWrites(0));
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

    [Fact]
    public void A_log_that_is_kept_for_a_member_that_is_being_restored_has_a_share_until_room_is_short()
    {
        const long GB = 1_000_000_000;
        EphemeralMemory memory = new(GB);
        RaftLimits limits = memory.LimitLog(new RaftLimits(), groups: 2);
        Assert.InRange(limits.CacheBytesMax, 1, GB / 16);
        Assert.Equal(GB / 4 / 2, memory.HeldLogBytes(limits, groups: 2));
        memory.Changed(bytes: 950_000_000, free: 0, evictable: 0);
        Assert.Equal(limits.CacheBytesMax, memory.HeldLogBytes(limits, groups: 2));
        memory.Changed(bytes: -50_000_000, free: 0, evictable: 0);
        Assert.Equal(GB / 4 / 2, memory.HeldLogBytes(limits, groups: 2));
        RaftLimits large = limits with { CacheBytesMax = 300_000_000 };
        Assert.Equal(large.CacheBytesMax, memory.HeldLogBytes(large, groups: 2));
    }
}
