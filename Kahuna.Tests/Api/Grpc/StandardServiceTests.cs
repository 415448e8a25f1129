using Google.Protobuf.Reflection;
using Grpc.Core;
using Grpc.Health.V1;
using Grpc.HealthCheck;
using Grpc.Net.Client;
using Kahuna.Server.Api.Protos;
using Microsoft.AspNetCore.Builder;
using Microsoft.Extensions.DependencyInjection;
using ServingStatus = Grpc.Health.V1.HealthCheckResponse.Types.ServingStatus;
using V1 = Grpc.Reflection.V1;
using V1Alpha = Grpc.Reflection.V1Alpha;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>The standard health and reflection services.</summary>
[Collection(nameof(ThreeNodesCollection))]
public sealed class StandardServiceTests(ThreeNodes nodes)
{
    private static readonly TimeSpan s_patience = LastNet.Span;

    [Theory]
    [InlineData("")]
    [InlineData("kahuna.v1.KeyValues")]
    [InlineData("kahuna.v1.Sequences")]
    [InlineData("kahuna.v1.Locks")]
    [InlineData("kahuna.v1.Cluster")]
    public async Task A_node_that_is_ready_serves(string service)
    {
        await nodes.Cluster.Nodes[0].WaitReadyAsync();
        Assert.Equal(ServingStatus.Serving, await CheckAsync(nodes.Channel(0), service));
    }

    [Fact]
    public async Task Health_of_an_unknown_service_is_not_found()
    {
        RpcException unknown = await Assert.ThrowsAsync<RpcException>(
            () => CheckAsync(nodes.Leader, "no.such.Service"));
        Assert.Equal(StatusCode.NotFound, unknown.StatusCode);
        Assert.NotNull(unknown.Trailers.GetValue("kahuna-outcome"));
    }

    [Fact]
    public async Task A_watcher_of_health_sees_every_change_of_its_service_and_the_stop()
    {
        HealthServiceImpl board = new();
        using CancellationTokenSource stop = new();
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(
            options: new Kahuna.Server.Api.Calls.CallLimits { Stop = stop.Token },
            configure: services => services.AddSingleton(board),
            map: static app => app.MapGrpcService<HealthServiceImpl>());
        List<ServingStatus> seen = [];
        RpcException end = await Assert.ThrowsAsync<RpcException>(async () =>
        {
            await foreach (HealthCheckResponse reply in host.Channel.ServerStreamingAsync(
                "/grpc.health.v1.Health/Watch",
                new HealthCheckRequest { Service = "a" },
                HealthCheckResponse.Parser,
                TestCalls.Within(s_patience)))
            {
                seen.Add(reply.Status);
                board.SetStatus("other", ServingStatus.Serving);
                switch (seen.Count)
                {
                    case 1:
                        board.SetStatus("a", ServingStatus.NotServing);
                        break;
                    case 2:
                        board.SetStatus("a", ServingStatus.Serving);
                        break;
                    default:
                        await stop.CancelAsync();
                        break;
                }
            }
        });
        Assert.Equal([ServingStatus.ServiceUnknown, ServingStatus.NotServing, ServingStatus.Serving], seen);
        Assert.Equal(StatusCode.Unavailable, end.StatusCode);
    }

    [Fact]
    public async Task Reflection_lists_services_and_gives_files_with_what_they_import()
    {
        V1.ServerReflectionResponse services = await AskAsync(new V1.ServerReflectionRequest { ListServices = "" });
        Assert.Superset(
            new HashSet<string>
            {
                "grpc.health.v1.Health",
                "kahuna.v1.Cluster",
                "kahuna.v1.KeyValues",
                "kahuna.v1.Locks",
                "kahuna.v1.Sequences",
            },
            services.ListServicesResponse.Service.Select(service => service.Name).ToHashSet());

        string[] symbols = ["kahuna.v1.KeyValues", "kahuna.v1.KeyValues.SetKeyValue", "kahuna.v1.Conditions"];
        foreach (string symbol in symbols)
        {
            V1.ServerReflectionResponse file = await AskAsync(
                new V1.ServerReflectionRequest { FileContainingSymbol = symbol });
            Assert.Contains("kahuna/v1/key_values.proto", Names(file.FileDescriptorResponse.FileDescriptorProto));
        }

        V1.ServerReflectionResponse byName = await AskAsync(
            new V1.ServerReflectionRequest { FileByFilename = "kahuna/v1/cluster.proto" });
        Assert.Contains("kahuna/v1/cluster_messages.proto", Names(byName.FileDescriptorResponse.FileDescriptorProto));
    }

    [Fact]
    public async Task Reflection_says_what_is_not_there()
    {
        V1.ServerReflectionRequest[] requests =
        [
            new() { FileByFilename = "no.proto" },
            new() { FileContainingSymbol = "no.Symbol" },
        ];
        foreach (V1.ServerReflectionRequest request in requests)
        {
            Assert.Equal((int)StatusCode.NotFound, (await AskAsync(request)).ErrorResponse.ErrorCode);
        }
    }

    [Fact]
    public async Task Reflection_speaks_the_older_version_too()
    {
        using AsyncDuplexStreamingCall<V1Alpha.ServerReflectionRequest, V1Alpha.ServerReflectionResponse> call =
            nodes.Leader.DuplexStreaming<V1Alpha.ServerReflectionRequest, V1Alpha.ServerReflectionResponse>(
                "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                V1Alpha.ServerReflectionResponse.Parser);
        await call.RequestStream.WriteAsync(
            new V1Alpha.ServerReflectionRequest { FileContainingSymbol = "kahuna.v1.Cluster" });
        V1Alpha.ServerReflectionResponse? response = await call.ReadAsync();
        Assert.Contains(
            ClusterReflection.Descriptor.SerializedData, response!.FileDescriptorResponse.FileDescriptorProto);
    }

    private static IEnumerable<string> Names(IEnumerable<Google.Protobuf.ByteString> files) =>
        files.Select(file => FileDescriptorProto.Parser.ParseFrom(file).Name);

    private static async Task<ServingStatus> CheckAsync(GrpcChannel channel, string service) =>
        (await channel.UnaryAsync(
            "/grpc.health.v1.Health/Check",
            new HealthCheckRequest { Service = service },
            HealthCheckResponse.Parser)).Status;

    private async Task<V1.ServerReflectionResponse> AskAsync(V1.ServerReflectionRequest request)
    {
        using AsyncDuplexStreamingCall<V1.ServerReflectionRequest, V1.ServerReflectionResponse> call =
            nodes.Leader.DuplexStreaming<V1.ServerReflectionRequest, V1.ServerReflectionResponse>(
                "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", V1.ServerReflectionResponse.Parser);
        await call.RequestStream.WriteAsync(request);
        return (await call.ReadAsync())!;
    }
}
