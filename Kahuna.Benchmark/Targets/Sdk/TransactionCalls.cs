using System.Runtime.CompilerServices;
using Kahuna.Client.Transactions;

namespace Kahuna.Benchmark.Targets.Sdk;

/// <summary>Commits transactions through the public client. Owned by a session, which has one call at a time.</summary>
internal sealed class TransactionCalls(TransactionClient transactions)
{
    /// <inheritdoc cref="ITransactionSession.CommitAsync"/>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<OperationResult> CommitAsync(TransactionInput input)
    {
        KahunaValue value = new(input.Value);
        IEnumerable<KeyOperation> reads = input.Reads.Select(static key => KeyOperation.Get(key));
        IEnumerable<KeyOperation> writes = input.Writes.Select(key => KeyOperation.Set(key, value));
        await transactions.If().Then(reads.Concat(writes)).CommitAsync().ConfigureAwait(false);
        return OperationResult.Success;
    }

    /// <inheritdoc cref="IInteractiveSession.InteractAsync"/>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<OperationResult> InteractAsync(TransactionInput input)
    {
        KahunaValue value = new(input.Value);
        await transactions.RunAsync(async transaction =>
        {
            foreach (string key in input.Reads)
            {
                await transaction.GetAsync(key).ConfigureAwait(false);
            }

            foreach (string key in input.Writes)
            {
                await transaction.SetAsync(key, value).ConfigureAwait(false);
            }
        }).ConfigureAwait(false);
        return OperationResult.Success;
    }
}
