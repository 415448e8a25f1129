namespace Kahuna.Tests.Client;

/// <summary>Bounded waits on conditions, for what other threads bring about. Stateless.</summary>
internal static class Wait
{
    /// <summary>Far longer than anything takes on a busy machine.</summary>
    public static readonly TimeSpan Longest = LastNet.Span;

    public static Task UntilAsync(Func<bool> condition) => UntilAsync(() => Task.FromResult(condition()));

    public static Task UntilAsync(Func<Task<bool>> condition) => UntilAsync(condition, Longest);

    /// <summary>As above, with another limit than <see cref="Longest"/>.</summary>
    public static async Task UntilAsync(Func<Task<bool>> condition, TimeSpan longest)
    {
        using CancellationTokenSource limit = new(longest);
        while (!await condition())
        {
            limit.Token.ThrowIfCancellationRequested();
            await Task.Yield();
        }
    }

    /// <summary>
    /// As above while a manual clock goes on, for what needs pauses to pass. A real moment lies between its steps, in
    /// which a busy machine's threads come to their turn.
    /// </summary>
    public static Task UntilAsync(ManualTime time, Func<bool> condition, int stepMs = 5) => UntilAsync(async () =>
    {
        time.Advance(TimeSpan.FromMilliseconds(stepMs));
        await Task.Delay(1);
        return condition();
    });

    /// <summary>The task's result, or a failed test.</summary>
    public static Task<T> ForAsync<T>(ValueTask<T> task) => task.AsTask().WaitAsync(Longest);
}
