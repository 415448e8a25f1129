using Kahuna.Server.Api.Watches;
using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Api.Watches;

/// <summary>Which streams wait a moment for more changes.</summary>
public sealed class WatchPaceTests
{
    private readonly WatchPace _pace = new();
    private long _now = 1_000;

    [Fact]
    public void A_stream_of_many_small_frames_waits_and_goes_on_doing_so()
    {
        Send(seconds: 1, everyMs: 2, changes: 1);
        Assert.True(_pace.IsSlow);
        Send(seconds: 1, everyMs: WatchPace.WaitMs + 1, changes: 3);
        Assert.True(_pace.IsSlow);
    }

    [Fact]
    public void Changes_that_come_now_and_then_never_wait()
    {
        Send(seconds: 5, everyMs: 7, changes: 1);
        Assert.False(_pace.IsSlow);
    }

    [Fact]
    public void Changes_that_come_in_large_numbers_never_wait()
    {
        Send(seconds: 1, everyMs: 1, changes: 15);
        Assert.False(_pace.IsSlow);
    }

    [Fact]
    public void A_stream_that_gets_more_changes_or_fewer_no_longer_waits()
    {
        Send(seconds: 1, everyMs: 2, changes: 1);
        Send(seconds: 1, everyMs: WatchPace.WaitMs, changes: 50);
        Assert.False(_pace.IsSlow);
        Send(seconds: 1, everyMs: 2, changes: 1);
        Assert.True(_pace.IsSlow);
        Send(seconds: 1, everyMs: 20, changes: 1);
        Assert.False(_pace.IsSlow);
    }

    [Fact]
    public void After_a_pause_the_first_change_does_not_wait_for_long()
    {
        Send(seconds: 1, everyMs: 2, changes: 1);
        _now += 60_000;
        _pace.Count(new NodeTime(_now), 1);
        Assert.False(_pace.IsSlow);
    }

    private void Send(int seconds, int everyMs, int changes)
    {
        for (long end = _now + (seconds * 1_000L); _now < end; _now += everyMs)
        {
            _pace.Count(new NodeTime(_now), changes);
        }
    }
}
