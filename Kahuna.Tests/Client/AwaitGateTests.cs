using Kahuna.Client.Locks;

namespace Kahuna.Tests.Client;

public sealed class AwaitGateTests
{
    private readonly ManualTime _time = new();

    [Fact]
    public void Places_go_to_those_who_came_first()
    {
        AwaitGate gate = new(2, takesAll: false, _time, capturesContext: false);
        List<Task> turns = [.. Enumerable.Range(0, 6).Select(_ => Enter(gate))];
        for (int entered = 2; entered <= 6; entered++)
        {
            Assert.Equal(Enumerable.Range(0, 6).Select(i => i < entered), turns.Select(turn => turn.Wait(turn == turns[entered - 1] ? Wait.Longest : TimeSpan.Zero)));
            gate.Leave();
        }

        gate.Leave();
        Assert.True(Enter(gate).IsCompleted);
        Assert.True(Enter(gate).IsCompleted);
        Assert.False(Enter(gate).IsCompleted);
    }

    [Fact]
    public async Task Who_gives_up_is_passed_by()
    {
        AwaitGate gate = new(1, takesAll: false, _time, capturesContext: false);
        await Enter(gate);
        using CancellationTokenSource cancel = new();
        Task cancelled = gate.EnterAsync(TimeSpan.FromHours(1), cancel.Token).AsTask();
        Task late = gate.EnterAsync(TimeSpan.FromSeconds(1), CancellationToken.None).AsTask();
        Task last = Enter(gate);
        await cancel.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => cancelled);
        _time.Advance(TimeSpan.FromSeconds(2));
        await Assert.ThrowsAsync<TimeoutException>(() => late);
        Assert.False(last.IsCompleted);
        gate.Leave();
        await last.WaitAsync(Wait.Longest);
    }

    [Fact]
    public void The_more_wait_the_shorter_is_each_turn()
    {
        AwaitGate gate = new(4, takesAll: false, _time, capturesContext: false);
        for (int i = 0; i < 4; i++)
        {
            Enter(gate);
        }

        Assert.Equal(10_000, gate.NextHoldMs);
        for (int i = 0; i < 12; i++)
        {
            Enter(gate);
        }

        Assert.Equal(2_500, gate.NextHoldMs);
        for (int i = 0; i < 10_000; i++)
        {
            Enter(gate);
        }

        Assert.Equal(200, gate.NextHoldMs);
    }

    private static Task Enter(AwaitGate gate) => gate.EnterAsync(TimeSpan.FromHours(1), CancellationToken.None).AsTask();
}
