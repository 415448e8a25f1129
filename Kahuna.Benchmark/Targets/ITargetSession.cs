namespace Kahuna.Benchmark.Targets;

/// <summary>
/// The way of one worker to the target: at most one request at a time. What it can send is said by the interfaces that
/// derive from this one. A request ends within the timeout of the run or fails; a failure is an exception. A
/// continuation may run on the thread that reads replies, so that callers must not block.
/// </summary>
internal interface ITargetSession
{
    /// <summary>Whether a request that failed with <paramref name="failure"/> ran out of time.</summary>
    bool IsTimeout(Exception failure);

    /// <summary>Whether a request that failed with <paramref name="failure"/> had no effect for certain.</summary>
    bool DidNotHappen(Exception failure) => false;
}
