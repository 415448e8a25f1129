namespace Kahuna.Benchmark.Targets;

/// <summary>
/// The way of one worker to the target: at most one request at a time. A request ends within the timeout of the run or fails; a failure is
/// an exception. A continuation may run on the thread that reads replies, so that callers must not block.
/// </summary>
internal interface ITargetSession
{
    ValueTask<OperationResult> SetAsync(string key, ReadOnlyMemory<byte> value);

    ValueTask<OperationResult> GetAsync(string key);

    /// <summary>Takes the next value of a sequence. Only of targets that have sequences; the options refuse others.</summary>
    ValueTask<OperationResult> NextAsync(string name) => throw new NotSupportedException("The target has no sequences.");
}
