using Kahuna.Server.Hosting;

namespace Kahuna.Tests.Hosting;

/// <summary>
/// When a busy time is over, memory is given back; never while it lasts, never for little, and without a long stop.
/// </summary>
public sealed class HeapTrimmerTests
{
    private const long MiB = 1 << 20;

    /// <summary>Collections that one peak is worth at the most.</summary>
    private const int Steps = 12;

    private readonly HeapTrimmer _heap;
    private long _allocated;
    private long _compaction;
    private int _collected;
    private int _compacted;

    public HeapTrimmerTests() =>
        _heap = new HeapTrimmer(() => _allocated, () => _compaction, () => _collected++, () => _compacted++);

    [Theory]
    [InlineData(1_000)]
    [InlineData(50)]
    public void A_peak_is_given_back_when_it_is_over(long peak)
    {
        Look(peak);
        Look(10);
        Look(10);
        AssertDone(0, 0);

        Look(10);
        AssertDone(1, 0);
        for (int i = 0; i < 20; i++)
        {
            Look(10);
            AssertDone(1, 1);
        }

        Look(peak);
        Look(10);
        Look(10);
        Look(10);
        AssertDone(2, 1);
    }

    [Fact]
    public void What_a_compaction_would_take_long_for_is_given_back_in_steps()
    {
        _compaction = 257 * MiB;
        Look(1_000);
        for (int i = 0; i < 20; i++)
        {
            Look(10);
        }

        AssertDone(Steps, 0);
    }

    [Fact]
    public void Steps_end_with_a_compaction_as_soon_as_little_is_left_for_it()
    {
        _compaction = 257 * MiB;
        Look(1_000);
        Look(10);
        Look(10);
        Look(10);
        Look(10);
        AssertDone(2, 0);

        _compaction = 256 * MiB;
        Look(10);
        Look(10);
        AssertDone(2, 1);
    }

    [Fact]
    public void What_is_left_to_give_back_waits_for_the_end_of_the_next_peak()
    {
        Look(1_000);
        Look(10);
        Look(10);
        Look(10);
        AssertDone(1, 0);

        Look(1_000);
        Look(10);
        Look(10);
        AssertDone(1, 0);
        Look(10);
        AssertDone(2, 0);
    }

    [Fact]
    public void A_peak_is_given_back_under_a_load_that_is_small_beside_it()
    {
        Look(1_000);
        Look(300);
        Look(240);
        Look(240);
        AssertDone(0, 0);

        Look(240);
        AssertDone(1, 0);
        for (int i = 0; i < 20; i++)
        {
            Look(200 + (i % 2 * 40));
            AssertDone(1, 1);
        }
    }

    [Fact]
    public void Nothing_is_given_back_between_two_bursts()
    {
        for (int i = 0; i < 50; i++)
        {
            Look(i % 3 == 0 ? 100 : 1);
        }

        AssertDone(0, 0);
    }

    [Fact]
    public void A_node_that_does_little_is_left_in_peace()
    {
        for (int i = 0; i < 50; i++)
        {
            Look(i % 10 == 0 ? 15 : 1);
        }

        AssertDone(0, 0);
    }

    private void AssertDone(int collected, int compacted) =>
        Assert.Equal((collected, compacted), (_collected, _compacted));

    private void Look(long megabytes)
    {
        _allocated += megabytes * MiB;
        _heap.Check();
    }
}
