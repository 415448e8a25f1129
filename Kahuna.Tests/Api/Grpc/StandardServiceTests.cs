using Google.Protobuf.Reflection;
using Kahuna.Client.Wire.Grpc;
using Kahuna.Client.Wire.Protos;
using Kahuna.Client.Wire.Protos.Health;
using Kahuna.Server.Api;
using ServingStatus = Kahuna.Client.Wire.Protos.Health.HealthCheckResponse.Types.ServingStatus;
using V1 = Kahuna.Client.Wire.Protos.Reflection.V1;
using V1Alpha = Kahuna.Client.Wire.Protos.Reflection.V1Alpha;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>The standard health and reflection services.</summary>
public sealed class StandardServiceTests
{
    private const string Check = "/grpc.health.v1.Health/Check";

    private readonly HealthStatusBoard _board = new();

    [Fact]
    public async Task Health_tells_the_board()
    {
        await using GrpcTestHost host = await StartAsync();
        GrpcException unknown = await Assert.ThrowsAsync<GrpcException>(() => CheckAsync(host, "kahuna.v1.KeyValues"));
        Assert.Equal(GrpcStatusCode.NotFound, unknown.Code);
        _board.Set(["", "kahuna.v1.KeyValues"], serving: false);
        Assert.Equal(ServingStatus.NotServing, await CheckAsync(host, ""));
        _board.Set("", serving: true);
        Assert.Equal(ServingStatus.Serving, await CheckAsync(host, ""));
        Assert.Equal(ServingStatus.NotServing, await CheckAsync(host, "kahuna.v1.KeyValues"));
        HealthListResponse list = await host.Channel.UnaryAsync("/grpc.health.v1.Health/List", new HealthListRequest(), HealthListResponse.Parser);
        Assert.Equal(["", "kahuna.v1.KeyValues"], list.Statuses.Keys.Order(StringComparer.Ordinal));
    }

    [Fact]
    public async Task A_watcher_of_health_sees_every_change_of_its_service()
    {
        await using GrpcTestHost host = await StartAsync();
        List<ServingStatus> seen = [];
        await foreach (HealthCheckResponse reply in host.Channel.ServerStreamingAsync("/grpc.health.v1.Health/Watch", new HealthCheckRequest { Service = "a" }, HealthCheckResponse.Parser, new CallOptions { Deadline = TimeSpan.FromMinutes(4) }))
        {
            seen.Add(reply.Status);
            _board.Set("other", seen.Count % 2 == 0);
            switch (seen.Count)
            {
                case 1:
                    _board.Set("a", serving: false);
                    continue;
                case 2:
                    _board.Set("a", serving: true);
                    continue;
            }

            break;
        }

        Assert.Equal([ServingStatus.ServiceUnknown, ServingStatus.NotServing, ServingStatus.Serving], seen);
    }

    [Fact]
    public async Task Reflection_lists_services_and_gives_files_with_what_they_import()
    {
        await using GrpcTestHost host = await StartAsync();
        V1.ServerReflectionResponse services = await AskAsync(host, new V1.ServerReflectionRequest { ListServices = "" });
        Assert.Equal(
            ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection", "kahuna.test.Streams", "kahuna.v1.Cluster", "kahuna.v1.KeyValues"],
            services.ListServicesResponse.Service.Select(service => service.Name));

        foreach (string symbol in (string[])["kahuna.v1.KeyValues", "kahuna.v1.KeyValues.SetKeyValue", "kahuna.v1.Conditions", "kahuna.v1.Value.data", "kahuna.v1.Durability", "kahuna.v1.DURABILITY_PERSISTENT"])
        {
            V1.ServerReflectionResponse file = await AskAsync(host, new V1.ServerReflectionRequest { FileContainingSymbol = symbol });
            FileDescriptorProto first = FileDescriptorProto.Parser.ParseFrom(file.FileDescriptorResponse.FileDescriptorProto[0]);
            Assert.Equal("kahuna/v1/key_values.proto", first.Name);
        }

        V1.ServerReflectionResponse byName = await AskAsync(host, new V1.ServerReflectionRequest { FileByFilename = "kahuna/v1/cluster.proto" });
        Assert.Equal(ClusterReflection.Descriptor.SerializedData, byName.FileDescriptorResponse.FileDescriptorProto[0]);
    }

    [Fact]
    public async Task Reflection_says_what_is_not_there()
    {
        await using GrpcTestHost host = await StartAsync();
        V1.ServerReflectionRequest[] missing =
        [
            new() { FileByFilename = "no.proto" },
            new() { FileContainingSymbol = "no.Symbol" },
            new() { FileContainingExtension = new V1.ExtensionRequest { ContainingType = "kahuna.v1.Value", ExtensionNumber = 7 } },
            new() { AllExtensionNumbersOfType = "no.Message" },
        ];
        foreach (V1.ServerReflectionRequest request in missing)
        {
            V1.ServerReflectionResponse response = await AskAsync(host, request);
            Assert.Equal((int)GrpcStatusCode.NotFound, response.ErrorResponse.ErrorCode);
            Assert.Equal(request, response.OriginalRequest);
        }

        V1.ServerReflectionResponse none = await AskAsync(host, new V1.ServerReflectionRequest { AllExtensionNumbersOfType = "kahuna.v1.Value" });
        Assert.Equal("kahuna.v1.Value", none.AllExtensionNumbersResponse.BaseTypeName);
        Assert.Empty(none.AllExtensionNumbersResponse.ExtensionNumber);
        Assert.Equal((int)GrpcStatusCode.InvalidArgument, (await AskAsync(host, new V1.ServerReflectionRequest())).ErrorResponse.ErrorCode);
    }

    [Fact]
    public async Task Reflection_speaks_the_older_version_too()
    {
        await using GrpcTestHost host = await StartAsync();
        using DuplexStreamingCall<V1Alpha.ServerReflectionRequest, V1Alpha.ServerReflectionResponse> call =
            host.Channel.DuplexStreaming<V1Alpha.ServerReflectionRequest, V1Alpha.ServerReflectionResponse>("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", V1Alpha.ServerReflectionResponse.Parser);
        await call.WriteAsync(new V1Alpha.ServerReflectionRequest { FileContainingSymbol = "kahuna.v1.Cluster" });
        V1Alpha.ServerReflectionResponse? response = await call.ReadAsync();
        Assert.Equal(ClusterReflection.Descriptor.SerializedData, response!.FileDescriptorResponse.FileDescriptorProto[0]);
    }

    private static async Task<ServingStatus> CheckAsync(GrpcTestHost host, string service) =>
        (await host.Channel.UnaryAsync(Check, new HealthCheckRequest { Service = service }, HealthCheckResponse.Parser)).Status;

    private static async Task<V1.ServerReflectionResponse> AskAsync(GrpcTestHost host, V1.ServerReflectionRequest request)
    {
        using DuplexStreamingCall<V1.ServerReflectionRequest, V1.ServerReflectionResponse> call =
            host.Channel.DuplexStreaming<V1.ServerReflectionRequest, V1.ServerReflectionResponse>("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", V1.ServerReflectionResponse.Parser);
        await call.WriteAsync(request);
        return (await call.ReadAsync())!;
    }

    private Task<GrpcTestHost> StartAsync() => GrpcTestHost.StartAsync(server =>
    {
        new InMemoryServices().Bind(server);
        HealthHandlers.AddTo(server, _board);
        ReflectionHandlers.AddTo(server);
    });
}
