using System.Runtime.CompilerServices;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;

namespace Kahuna.Benchmark.Targets.Sdk;

/// <summary>
/// A session that also has the calls of many keys: batches and transactions. As <see cref="KahunaSession"/>.
/// </summary>
internal sealed class KahunaManyKeySession(KahunaClient client)
    : KahunaSession(client), IBatchSession, ITransactionSession, IInteractiveSession, IPartitionedSession
{
    private readonly KahunaClient _client = client;
    private readonly TransactionCalls _transactions = new(client.Transactions);

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<OperationResult> SetManyAsync(IReadOnlyList<string> keys, ReadOnlyMemory<byte> value)
    {
        BatchResult<SetResult> result = await _client.KeyValues
            .SetManyAsync(keys.Select(key => new SetItem(key, new KahunaValue(value)))).ConfigureAwait(false);
        result.ThrowIfAnyFailed();
        return OperationResult.Success;
    }

    public ValueTask<OperationResult> CommitAsync(TransactionInput input) => _transactions.CommitAsync(input);

    public ValueTask<OperationResult> InteractAsync(TransactionInput input) => _transactions.InteractAsync(input);

    public async Task<int> CountPartitionsAsync(CancellationToken cancellationToken) =>
        (await _client.DescribeAsync(cancellationToken).ConfigureAwait(false)).Partitions.Count;
}
