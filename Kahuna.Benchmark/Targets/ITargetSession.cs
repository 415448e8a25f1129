namespace Kahuna.Benchmark.Targets;

/// <summary>
/// The way of one worker to the target: at most one request at a time. A request ends within the timeout of the run or fails; a failure is
/// an exception. A continuation may run on the thread that reads replies, so that callers must not block.
/// </summary>
internal interface ITargetSession
{
    /// <summary>The moment from which the latest request is measured, in ticks; null: from its beginning.</summary>
    long? MeasuredFrom => null;

    /// <summary>The moment to which it is measured; null: to its end.</summary>
    long? MeasuredTo => null;

    ValueTask<OperationResult> SetAsync(string key, ReadOnlyMemory<byte> value);

    ValueTask<OperationResult> GetAsync(string key);

    /// <summary>Acquires a lock without waiting and releases it; <see cref="OperationResult.Miss"/> when somebody else has it. Only of targets that have locks; the options refuse others.</summary>
    ValueTask<OperationResult> LockAsync(string name) => throw new NotSupportedException("The target has no locks.");

    /// <summary>
    /// Waits for a lock that all workers want, and gives it to the next. Measured from the moment at which the holder before begins to release it to the moment at which this worker has it.
    /// </summary>
    ValueTask<OperationResult> HandoverAsync(string name) => throw new NotSupportedException("The target has no locks.");

    /// <summary>Takes the next value of a sequence. Only of targets that have sequences; the options refuse others.</summary>
    ValueTask<OperationResult> NextAsync(string name) => throw new NotSupportedException("The target has no sequences.");
}
