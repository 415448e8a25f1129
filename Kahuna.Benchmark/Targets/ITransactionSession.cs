namespace Kahuna.Benchmark.Targets;

/// <summary>
/// A session of a target that commits a list of reads and writes as one request. As <see cref="ITargetSession"/>.
/// </summary>
internal interface ITransactionSession : ITargetSession
{
    /// <summary>Reads and writes at one moment, with one request.</summary>
    ValueTask<OperationResult> CommitAsync(TransactionInput input);
}
