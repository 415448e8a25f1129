using Google.Protobuf;
using Grpc.Core;
using Kahuna.Benchmark.Targets.Etcd.Wire;

namespace Kahuna.Benchmark.Targets.Etcd;

/// <summary>One worker's way to etcd.</summary>
internal sealed class EtcdSession(KV.KVClient client, TimeSpan timeout) : IKeyValueSession, ITransactionSession
{
    public bool IsTimeout(Exception failure) => failure is EtcdException { Code: StatusCode.DeadlineExceeded };

    public async ValueTask<OperationResult> SetAsync(string key, ReadOnlyMemory<byte> value)
    {
        PutRequest put = new() { Key = ByteString.CopyFromUtf8(key), Value = UnsafeByteOperations.UnsafeWrap(value) };
        try
        {
            await client.PutAsync(put, Call()).ConfigureAwait(false);
            return OperationResult.Success;
        }
        catch (RpcException failure)
        {
            throw new EtcdException(failure);
        }
    }

    public async ValueTask<OperationResult> GetAsync(string key)
    {
        try
        {
            RangeResponse reply = await client.RangeAsync(
                new RangeRequest { Key = ByteString.CopyFromUtf8(key) }, Call()).ConfigureAwait(false);
            return reply.Count > 0 ? OperationResult.Success : OperationResult.Miss;
        }
        catch (RpcException failure)
        {
            throw new EtcdException(failure);
        }
    }

    public async ValueTask<OperationResult> CommitAsync(TransactionInput input)
    {
        TxnRequest transaction = new();
        foreach (string key in input.Reads)
        {
            transaction.Success.Add(
                new RequestOp { RequestRange = new RangeRequest { Key = ByteString.CopyFromUtf8(key) } });
        }

        ByteString value = UnsafeByteOperations.UnsafeWrap(input.Value);
        foreach (string key in input.Writes)
        {
            PutRequest put = new() { Key = ByteString.CopyFromUtf8(key), Value = value };
            transaction.Success.Add(new RequestOp { RequestPut = put });
        }

        try
        {
            await client.TxnAsync(transaction, Call()).ConfigureAwait(false);
            return OperationResult.Success;
        }
        catch (RpcException failure)
        {
            throw new EtcdException(failure);
        }
    }

    private CallOptions Call() => new(deadline: DateTime.UtcNow + timeout);
}
