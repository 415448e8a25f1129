using Kahuna.Tests.Linearizability;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>
/// Where the callers of a run note what they did: the clock, the keys, the counts, and the watch that gets each key
/// when it is complete. Any thread.
/// </summary>
internal sealed class SoakRecord(SoakKeys keys, SoakWatch watch, SoakClock clock, SoakTally tally)
{
    public SoakClock Clock => clock;

    public SoakKeys Keys => keys;

    /// <summary>
    /// An operation has come back. Waits while too many keys wait to be checked, so that a run of any length fits into
    /// memory.
    /// </summary>
    /// <param name="key">The key that it was done to.</param>
    /// <param name="operation">What was asked and answered.</param>
    /// <param name="error">Name of the error, null when there was none.</param>
    public ValueTask AddAsync(SoakKey key, HistoryOperation operation, string? error)
    {
        tally.Count(operation, error);
        return keys.Return(key, operation) ? watch.AddAsync(key) : ValueTask.CompletedTask;
    }

    /// <summary>Everything that was not checked yet goes on to be; nothing may be under way.</summary>
    /// <param name="within">The longest wait for what is to be told.</param>
    /// <param name="found">Something is wrong, so that it is not waited for the rest.</param>
    public async Task FinishAsync(TimeSpan within, Task found)
    {
        foreach (SoakKey key in keys.TakeRest())
        {
            await watch.AddAsync(key);
        }

        await watch.FinishAsync(within, found);
    }
}
