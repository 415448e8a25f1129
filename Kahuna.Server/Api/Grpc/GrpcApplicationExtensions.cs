namespace Kahuna.Server.Api.Grpc;

/// <summary>Puts a <see cref="GrpcServer"/> into an application. Used at start-up.</summary>
internal static class GrpcApplicationExtensions
{
    /// <summary>Answers gRPC requests, and requests for the path of a gRPC method; everything else goes on.</summary>
    public static IApplicationBuilder MapGrpc(this IApplicationBuilder app, GrpcServer server) =>
        app.Use(next => http => server.Handles(http.Request) ? server.HandleAsync(http) : next(http));
}
