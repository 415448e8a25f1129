namespace Kahuna.Benchmark.Targets;

/// <summary>
/// A session of a target that has transactions of several requests. As <see cref="ITargetSession"/>.
/// </summary>
internal interface IInteractiveSession : ITargetSession
{
    /// <summary>
    /// Reads key by key, writes, and commits. A commit that meets a change of others is tried again as the target's
    /// client does; what fails in the end is a failure.
    /// </summary>
    ValueTask<OperationResult> InteractAsync(TransactionInput input);
}
