using Kahuna.Client.Locks;

namespace Kahuna.Tests.Client;

public sealed class WaitLimiterTests
{
    private readonly ManualTime _time = new();

    [Fact]
    public void Places_go_to_those_who_came_first()
    {
        WaitLimiter limiter = new(2, takesAll: false, _time, capturesContext: false);
        List<Task> turns = [.. Enumerable.Range(0, 6).Select(_ => Enter(limiter))];
        for (int entered = 2; entered <= 6; entered++)
        {
            Assert.Equal(
                Enumerable.Range(0, 6).Select(i => i < entered),
                turns.Select(turn => turn.Wait(turn == turns[entered - 1] ? Wait.Longest : TimeSpan.Zero)));
            limiter.Exit();
        }

        limiter.Exit();
        Assert.True(Enter(limiter).IsCompleted);
        Assert.True(Enter(limiter).IsCompleted);
        Assert.False(Enter(limiter).IsCompleted);
    }

    [Fact]
    public async Task Who_gives_up_is_passed_by()
    {
        WaitLimiter limiter = new(1, takesAll: false, _time, capturesContext: false);
        await Enter(limiter);
        using CancellationTokenSource cancel = new();
        Task cancelled = limiter.EnterAsync(TimeSpan.FromHours(1), cancel.Token).AsTask();
        Task late = limiter.EnterAsync(TimeSpan.FromSeconds(1), CancellationToken.None).AsTask();
        Task last = Enter(limiter);
        await cancel.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => cancelled);
        _time.Advance(TimeSpan.FromSeconds(2));
        await Assert.ThrowsAsync<TimeoutException>(() => late);
        Assert.False(last.IsCompleted);
        limiter.Exit();
        await last.WaitAsync(Wait.Longest);
    }

    [Fact]
    public void The_more_wait_the_shorter_is_each_turn()
    {
        WaitLimiter limiter = new(4, takesAll: false, _time, capturesContext: false);
        for (int i = 0; i < 4; i++)
        {
            Enter(limiter);
        }

        Assert.Equal(10_000, limiter.NextHoldMs);
        for (int i = 0; i < 12; i++)
        {
            Enter(limiter);
        }

        Assert.Equal(2_500, limiter.NextHoldMs);
        for (int i = 0; i < 10_000; i++)
        {
            Enter(limiter);
        }

        Assert.Equal(200, limiter.NextHoldMs);
    }

    private static Task Enter(WaitLimiter limiter) =>
        limiter.EnterAsync(TimeSpan.FromHours(1), CancellationToken.None).AsTask();
}
