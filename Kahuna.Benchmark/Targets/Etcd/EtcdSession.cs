using Google.Protobuf;
using Kahuna.Benchmark.Targets.Etcd.Wire;
using Kahuna.Client.Wire.Grpc;

namespace Kahuna.Benchmark.Targets.Etcd;

/// <summary>One worker's way to etcd. The request objects are reused: a call encodes its request before it returns to the worker.</summary>
internal sealed class EtcdSession(GrpcChannel channel, TimeSpan timeout) : ITargetSession
{
    private readonly PutRequest _put = new();
    private readonly RangeRequest _range = new();
    private readonly CallOptions _call = new() { Deadline = timeout };

    public async ValueTask<OperationResult> SetAsync(string key, ReadOnlyMemory<byte> value)
    {
        _put.Key = ByteString.CopyFromUtf8(key);
        _put.Value = UnsafeByteOperations.UnsafeWrap(value);
        await channel.UnaryAsync("/etcdserverpb.KV/Put", _put, PutResponse.Parser, _call).ConfigureAwait(false);
        return OperationResult.Success;
    }

    public async ValueTask<OperationResult> GetAsync(string key)
    {
        _range.Key = ByteString.CopyFromUtf8(key);
        RangeResponse reply = await channel.UnaryAsync("/etcdserverpb.KV/Range", _range, RangeResponse.Parser, _call).ConfigureAwait(false);
        return reply.Count > 0 ? OperationResult.Success : OperationResult.Miss;
    }
}
