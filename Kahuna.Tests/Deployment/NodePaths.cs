using Kahuna.Server.Hosting;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Routing;

namespace Kahuna.Tests.Deployment;

/// <summary>The paths that machines may ask a node for. Stateless.</summary>
internal static class NodePaths
{
    /// <summary>Those of the health endpoints, as the node maps them.</summary>
    public static IReadOnlyList<string> Health()
    {
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
        WebApplication app = builder.Build();
        HealthEndpoints.Map(app, static () => (true, ""));
        return [.. ((IEndpointRouteBuilder)app).DataSources
            .SelectMany(static source => source.Endpoints)
            .OfType<RouteEndpoint>()
            .Select(static endpoint => endpoint.RoutePattern.RawText!)];
    }
}
