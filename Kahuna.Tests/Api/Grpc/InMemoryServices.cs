using System.Collections.Concurrent;
using Grpc.Core;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc.Protos;
using Kahuna.Wire.Protos;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>
/// The kahuna.v1 services over a dictionary, and streams for testing: enough for a client of any language to show all
/// kinds of calls. Any thread.
/// </summary>
internal sealed class InMemoryServices
{
    private readonly ConcurrentDictionary<string, (Value Value, long Revision)> _values = new();
    private long _revision;

    public void Bind(TestServices server)
    {
        server.AddService(KeyValuesReflection.Descriptor.Services[0], service => service
            .Unary<SetKeyValueRequest, SetKeyValueResponse>("SetKeyValue", SetAsync)
            .Unary<GetKeyValueRequest, GetKeyValueResponse>("GetKeyValue", GetAsync));
        server.AddService(ClusterReflection.Descriptor.Services[0], service => service
            .Unary<DescribeClusterRequest, DescribeClusterResponse>(
                "DescribeCluster", static (_, _) => Task.FromResult(Describe()))
            .ServerStreaming<DescribeClusterRequest, DescribeClusterResponse>("WatchCluster", WatchAsync)
            .RawDuplex("Exchange", RawEcho.RunAsync));
        server.AddService(StreamsReflection.Descriptor.Services[0], service => service
            .Duplex<EchoMessage, EchoMessage>("Echo", EchoHandlers.EchoAsync)
            .ClientStreaming<EchoMessage, SinkResponse>("Sink", EchoHandlers.SinkAsync));
    }

    private static DescribeClusterResponse Describe() =>
        new() { ClusterId = "test", NodeId = 1, ServerVersion = "0.1.0", Ready = true };

    private static async Task WatchAsync(
        DescribeClusterRequest request, IServerStreamWriter<DescribeClusterResponse> replies, ServerCallContext call)
    {
        await replies.WriteAsync(Describe());
        await Task.Delay(Timeout.Infinite, call.CancellationToken);
    }

    private static void CheckDurability(Server.Api.Protos.Durability durability)
    {
        if (durability == Server.Api.Protos.Durability.Unspecified)
        {
            throw new RpcException(
                new Status(StatusCode.InvalidArgument, "durability is unset; give PERSISTENT or EPHEMERAL."),
                new Metadata { { "kahuna-outcome", "did-not-happen" } });
        }
    }

    private Task<SetKeyValueResponse> SetAsync(SetKeyValueRequest request, ServerCallContext call)
    {
        CheckDurability(request.Durability);
        long revision = Interlocked.Increment(ref _revision);
        _values[request.Key] = (request.Value, revision);
        return Task.FromResult(new SetKeyValueResponse { Set = true, Revision = revision });
    }

    private Task<GetKeyValueResponse> GetAsync(GetKeyValueRequest request, ServerCallContext call)
    {
        CheckDurability(request.Durability);
        return Task.FromResult(_values.TryGetValue(request.Key, out (Value Value, long Revision) found)
            ? new GetKeyValueResponse { Found = true, Value = found.Value, Revision = found.Revision }
            : new GetKeyValueResponse());
    }
}
