using Kahuna.Client.Coordination;

namespace Kahuna.Tests.Client;

/// <summary>The processor time that scripts get which a node drives.</summary>
public sealed class DrivePaceTests
{
    private readonly ManualTime _time = new();

    [Fact]
    public async Task A_place_rests_for_as_long_as_a_run_computed()
    {
        DrivePace pace = new(_time, 1);
        Assert.Equal(7, await pace.RunAsync(() => Compute(50, 7), default));
        Task<int> next = pace.RunAsync(() => Compute(0, 8), default);
        _time.Advance(TimeSpan.FromMilliseconds(49));
        Assert.False(next.IsCompleted);
        _time.Advance(TimeSpan.FromMilliseconds(1));
        Assert.Equal(8, await next.WaitAsync(Wait.Longest));

        // A short one does not rest.
        Assert.Equal(9, await pace.RunAsync(() => Compute(0, 9), default).WaitAsync(Wait.Longest));
    }

    [Fact]
    public async Task A_run_that_fails_gives_its_place_back_and_a_cancelled_one_takes_none()
    {
        DrivePace pace = new(_time, 1);
        await Assert.ThrowsAsync<InvalidOperationException>(
            () => pace.RunAsync<int>(() => throw new InvalidOperationException(), default));
        await pace.RunAsync(() => Compute(10, 0), default);
        using CancellationTokenSource end = new();
        Task<int> waiting = pace.RunAsync(() => Compute(0, 1), end.Token);
        await end.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => waiting);
        _time.Advance(TimeSpan.FromMilliseconds(10));
        Assert.Equal(2, await pace.RunAsync(() => Compute(0, 2), default).WaitAsync(Wait.Longest));
    }

    private int Compute(int ms, int result)
    {
        _time.Advance(TimeSpan.FromMilliseconds(ms));
        return result;
    }
}
