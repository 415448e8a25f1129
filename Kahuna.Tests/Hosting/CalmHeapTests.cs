using Kahuna.Server.Hosting;

namespace Kahuna.Tests.Hosting;

/// <summary>When busy times are over, memory is given back once; never while they last, and never for little.</summary>
public sealed class CalmHeapTests
{
    private const long MiB = 1 << 20;

    private readonly CalmHeap _heap;
    private long _allocated;
    private int _given;

    public CalmHeapTests() => _heap = new CalmHeap(() => _allocated, () => _given++);

    [Fact]
    public void A_peak_is_given_back_once_when_it_is_over()
    {
        Look(1_000 * MiB);
        Look(10 * MiB);
        Look(10 * MiB);
        Assert.Equal(0, _given);

        Look(10 * MiB);
        Assert.Equal(1, _given);
        for (int i = 0; i < 20; i++)
        {
            Look(10 * MiB);
        }

        Assert.Equal(1, _given);
    }

    [Fact]
    public void Nothing_is_given_back_between_two_bursts()
    {
        for (int i = 0; i < 50; i++)
        {
            Look(i % 3 == 0 ? 100 * MiB : MiB);
        }

        Assert.Equal(0, _given);
    }

    [Fact]
    public void A_node_that_does_little_is_left_in_peace()
    {
        for (int i = 0; i < 50; i++)
        {
            Look(5 * MiB);
        }

        Assert.Equal(0, _given);
        Look(10 * MiB);
        Assert.Equal(1, _given);
    }

    private void Look(long allocated)
    {
        _allocated += allocated;
        _heap.Look();
    }
}
