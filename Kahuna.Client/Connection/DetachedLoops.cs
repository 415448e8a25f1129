namespace Kahuna.Client.Connection;

/// <summary>
/// Starts work detached from its caller: without the caller's synchronization context, task scheduler or execution
/// context. It runs on the pool, or on the given context under a simulator. Immutable, any thread.
/// </summary>
internal sealed class DetachedLoops(SynchronizationContext? context)
{
    /// <summary>
    /// Runs a loop; the task completes with it. Returns before the loop begins, so that the caller may hold a lock.
    /// </summary>
    public Task Start(Func<Task> loop) => Start(async () =>
    {
        await loop().ConfigureAwait(context is not null);
        return true;
    });

    /// <inheritdoc cref="Start(Func{Task})"/>
    public Task<T> Start<T>(Func<Task<T>> work)
    {
        if (ExecutionContext.IsFlowSuppressed())
        {
            return RunAsync(work);
        }

        using (ExecutionContext.SuppressFlow())
        {
            return RunAsync(work);
        }
    }

    private async Task<T> RunAsync<T>(Func<Task<T>> work)
    {
        if (context is null)
        {
            await Task.CompletedTask.ConfigureAwait(ConfigureAwaitOptions.ForceYielding);
        }
        else
        {
            // The caller's own context is restored when this method first returns to it.
            SynchronizationContext.SetSynchronizationContext(context);
            await Task.CompletedTask.ConfigureAwait(
                ConfigureAwaitOptions.ForceYielding | ConfigureAwaitOptions.ContinueOnCapturedContext);
        }

        return await work().ConfigureAwait(context is not null);
    }
}
