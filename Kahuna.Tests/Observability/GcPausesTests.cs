using Kahuna.Server.Observability;

namespace Kahuna.Tests.Observability;

/// <summary>The counter of the collector's pauses, fed by real collections of this process.</summary>
public sealed class GcPausesTests
{
    [Fact]
    public void Collections_are_counted_and_measured()
    {
        using GcPauses pauses = new();
        for (int i = 0; i < 20; i++)
        {
            GC.Collect();
        }

        // Events may be delivered a little later than the collection returns.
        Assert.True(SpinWait.SpinUntil(() => pauses.Count >= 20, LastNet.Span), $"{pauses.Count} pauses were seen.");
        TimeSpan[] latest = pauses.Latest();
        Assert.InRange(latest.Length, 20, 256);
        Assert.All(latest, pause => Assert.InRange(pause, TimeSpan.Zero, pauses.Longest));
    }

    [Fact]
    public void Only_the_latest_are_kept()
    {
        using GcPauses pauses = new();
        for (int i = 0; i < 300; i++)
        {
            GC.Collect(0);
        }

        Assert.True(SpinWait.SpinUntil(() => pauses.Count >= 300, LastNet.Span), $"{pauses.Count} pauses were seen.");
        Assert.Equal(256, pauses.Latest().Length);
    }
}
