using Kahuna.Server.Hosting;

namespace Kahuna.Tests.Hosting;

/// <summary>A node's ticks come one after the other, whatever the thread pool does, and end with it.</summary>
public sealed class NodeTickerTests
{
    [Fact]
    public async Task Ticks_go_on_until_the_end_and_never_meet()
    {
        int running = 0;
        int most = 0;
        int ticks = 0;
        TaskCompletionSource enough = new(TaskCreationOptions.RunContinuationsAsynchronously);
        NodeTicker ticker = new(
            "ticks",
            () =>
            {
                most = Math.Max(most, Interlocked.Increment(ref running));
                Thread.Sleep(3);
                Interlocked.Decrement(ref running);
                if (++ticks == 20)
                {
                    enough.SetResult();
                }
            },
            1);
        await enough.Task.WaitAsync(LastNet.Minute);
        await ticker.DisposeAsync().AsTask().WaitAsync(LastNet.Minute);
        int after = ticks;
        await Task.Delay(20);
        Assert.Equal((1, after), (most, ticks));
    }

    [Fact]
    public async Task Missed_ticks_are_left_out()
    {
        using ManualResetEventSlim held = new();
        List<long> ticks = [];
        TaskCompletionSource first = new(TaskCreationOptions.RunContinuationsAsynchronously);
        TaskCompletionSource third = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using NodeTicker ticker = new(
            "ticks",
            () =>
            {
                ticks.Add(Environment.TickCount64);
                if (ticks.Count == 1)
                {
                    first.SetResult();
                    held.Wait();
                }
                else if (ticks.Count == 3)
                {
                    third.SetResult();
                }
            },
            500);
        await first.Task.WaitAsync(LastNet.Minute);
        await Task.Delay(1_300);
        held.Set();
        await third.Task.WaitAsync(LastNet.Minute);

        // Two were missed. One comes at once, and the next one after an interval.
        Assert.True(ticks[2] - ticks[1] > 50);
    }

    [Fact]
    public async Task The_end_awaits_the_tick_that_runs()
    {
        using ManualResetEventSlim begun = new();
        using ManualResetEventSlim held = new();
        NodeTicker ticker = new(
            "ticks",
            () =>
            {
                begun.Set();
                held.Wait();
            },
            1);
        begun.Wait(LastNet.Minute);
        Task end = ticker.DisposeAsync().AsTask();
        Assert.False(end.IsCompleted);
        held.Set();
        await end.WaitAsync(LastNet.Minute);
    }
}
