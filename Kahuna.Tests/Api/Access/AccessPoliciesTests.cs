using Google.Protobuf.Reflection;
using Grpc.Health.V1;
using Grpc.Reflection.V1Alpha;
using Kahuna.Server.Api.Access;
using Kahuna.Server.Api.Protos;
using Kahuna.Server.Hosting;
using Kahuna.Tests.Client;
using Microsoft.AspNetCore.Http;

namespace Kahuna.Tests.Api.Access;

/// <summary>No way in is without a policy.</summary>
public sealed class AccessPoliciesTests
{
    private const string Unknown = "unimplementedMethod";

    [Fact]
    public void Every_method_of_every_service_has_a_policy()
    {
        IEnumerable<ServiceDescriptor> services = NodeServices.Described()
            .Append(AdminReflection.Descriptor.Services[0])
            .Append(HealthReflection.Descriptor.Services[0]);
        string[] methods =
        [
            .. services.SelectMany(static service => service.Methods)
                .Select(static method => $"/{method.Service.FullName}/{method.Name}"),
        ];

        Assert.DoesNotContain(methods, static method => AccessPolicies.Find(method) is null);

        // And no row is about something that does not exist.
        string[] others =
        [
            "/healthz", "/readyz", "/openapi.json", "/status", "/status/slow", "/metrics", AccessPolicies.InitAdminPath,
            AccessPolicies.PagePath, AccessPolicies.PageFilePath, AccessPolicies.PageStatusPath,
            AccessPolicies.PageHistoryPath, AccessPolicies.PageSlowPath, AccessPolicies.PageSessionsPath,
            AccessPolicies.PageQueuePath, AccessPolicies.NodeStatusPath, AccessPolicies.NodeHistoryPath,
            AccessPolicies.NodeSlowPath, AccessPolicies.NodeQueuePath,
        ];
        string[] reflection =
        [
            $"/{ReflectionReflection.Descriptor.Services[0].FullName}/ServerReflectionInfo",
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        ];
        Assert.Equal(
            methods.Concat(others).Concat(reflection).Distinct().Order(StringComparer.Ordinal),
            AccessPolicies.Names.Order(StringComparer.Ordinal));
    }

    [Fact]
    public async Task Every_endpoint_of_a_running_node_has_a_policy()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        Endpoint[] endpoints =
        [
            .. cluster.Nodes[0].Access.Routes!.DataSources.SelectMany(static source => source.Endpoints),
        ];

        Assert.True(endpoints.Length > 50);
        Assert.Contains(endpoints, static endpoint => AccessPolicies.NameOf(endpoint) == "/status");
        Assert.Contains(
            endpoints, static endpoint => AccessPolicies.NameOf(endpoint) == "/kahuna.v1.KeyValues/GetKeyValue");
        Assert.Empty(endpoints.Where(static endpoint => AccessPolicies.Find(endpoint) is null)
            .Select(static endpoint => endpoint.DisplayName));
    }

    [Fact]
    public void What_has_no_row_has_no_policy()
    {
        Assert.Null(AccessPolicies.Find("/kahuna.v1.KeyValues/DropEverything"));
        Assert.Null(AccessPolicies.Find("/metric"));
        Assert.Null(AccessPolicies.Find(new Endpoint(null, new EndpointMetadataCollection(), "none")));
        Assert.Equal(
            AccessPolicy.SignedIn, AccessPolicies.Find($"/kahuna.v1.KeyValues/{{{Unknown}:grpcunimplemented}}"));
    }

    [Fact]
    public void What_administers_is_open_to_administrators_only()
    {
        Assert.All(
            AdminReflection.Descriptor.Services[0].Methods.Where(
                static method => method.Name is not ("WhoAmI" or "TransferLeadership")),
            static method => Assert.Equal(
                AccessPolicy.Admin, AccessPolicies.Find($"/{method.Service.FullName}/{method.Name}")));
        Assert.Equal(AccessPolicy.AdminOrNode, AccessPolicies.Find("/kahuna.v1.Admin/TransferLeadership"));
        Assert.Equal(AccessPolicy.Admin, AccessPolicies.Find("/status"));
        Assert.Equal(AccessPolicy.Metrics, AccessPolicies.Find("/metrics"));
        Assert.Equal(AccessPolicy.Admin, AccessPolicies.Find(AccessPolicies.PageStatusPath));
        Assert.Equal(AccessPolicy.Node, AccessPolicies.Find(AccessPolicies.NodeStatusPath));
        Assert.Equal(AccessPolicy.Node, AccessPolicies.Find(AccessPolicies.InitAdminPath));
    }
}
