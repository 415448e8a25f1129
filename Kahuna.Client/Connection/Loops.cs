namespace Kahuna.Client.Connection;

/// <summary>
/// Starts the connection's loops detached from whoever caused it: no synchronization context, task scheduler or
/// execution context of an application is kept, so that inside the loops a plain await resumes on the pool, or on the
/// given context when a simulator runs them. Immutable, any thread.
/// </summary>
internal sealed class Loops(SynchronizationContext? context)
{
    /// <summary>Runs a loop; the task ends with it.</summary>
    public Task Start(Func<Task> loop)
    {
        if (ExecutionContext.IsFlowSuppressed())
        {
            return RunAsync(loop);
        }

        using (ExecutionContext.SuppressFlow())
        {
            return RunAsync(loop);
        }
    }

    private async Task RunAsync(Func<Task> loop)
    {
        if (context is null)
        {
            await Task.CompletedTask.ConfigureAwait(ConfigureAwaitOptions.ForceYielding);
        }
        else
        {
            // The caller's own context comes back when this method first returns to it.
            SynchronizationContext.SetSynchronizationContext(context);
            await Task.Yield();
        }

        await loop();
    }
}
