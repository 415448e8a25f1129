using Kahuna.Tests.Linearizability;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>
/// Where the callers of a run note what they did: the clock, the keys, the counts, and the checker that gets each key
/// when it is complete. Any thread.
/// </summary>
internal sealed class SoakRecord(SoakKeys keys, SoakChecker checker, SoakTally tally)
{
    public SoakClock Clock { get; } = new();

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
        return keys.Return(key, operation) ? checker.AddAsync(key) : ValueTask.CompletedTask;
    }

    /// <summary>Everything that was not checked yet is; nothing may be under way.</summary>
    public Task FinishAsync() => checker.FinishAsync(keys.TakeRest());
}
