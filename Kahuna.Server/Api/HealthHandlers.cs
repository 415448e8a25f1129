using Kahuna.Client.Wire.Grpc;
using Kahuna.Client.Wire.Protos.Health;
using Kahuna.Server.Api.Grpc;
using ServingStatus = Kahuna.Client.Wire.Protos.Health.HealthCheckResponse.Types.ServingStatus;

namespace Kahuna.Server.Api;

/// <summary>The standard health service over a <see cref="HealthStatusBoard"/>. Any thread.</summary>
internal sealed class HealthHandlers
{
    private readonly HealthStatusBoard _board;

    private HealthHandlers(HealthStatusBoard board) => _board = board;

    /// <summary>Adds the service to a server.</summary>
    public static void AddTo(GrpcServer server, HealthStatusBoard board)
    {
        HealthHandlers handlers = new(board);
        server.AddService(HealthReflection.Descriptor.Services[0], service => service
            .Unary<HealthCheckRequest, HealthCheckResponse>("Check", handlers.CheckAsync)
            .Unary<HealthListRequest, HealthListResponse>("List", handlers.ListAsync)
            .ServerStreaming<HealthCheckRequest, HealthCheckResponse>("Watch", handlers.WatchAsync));
    }

    private static ServingStatus StatusOf(bool serving) => serving ? ServingStatus.Serving : ServingStatus.NotServing;

    private Task<HealthCheckResponse> CheckAsync(HealthCheckRequest request, CallContext call) =>
        _board.Current.Serving.TryGetValue(request.Service, out bool serving)
            ? Task.FromResult(new HealthCheckResponse { Status = StatusOf(serving) })
            : throw new GrpcException(GrpcStatusCode.NotFound, $"There is no service '{request.Service}' on this server.");

    private Task<HealthListResponse> ListAsync(HealthListRequest request, CallContext call)
    {
        HealthListResponse response = new();
        foreach ((string service, bool serving) in _board.Current.Serving)
        {
            response.Statuses.Add(service, new HealthCheckResponse { Status = StatusOf(serving) });
        }

        return Task.FromResult(response);
    }

    private async Task WatchAsync(HealthCheckRequest request, GrpcStreamWriter<HealthCheckResponse> replies, CallContext call)
    {
        ServingStatus? sent = null;
        while (true)
        {
            HealthStatusBoard.Snapshot current = _board.Current;
            ServingStatus status = current.Serving.TryGetValue(request.Service, out bool serving) ? StatusOf(serving) : ServingStatus.ServiceUnknown;
            if (status != sent)
            {
                await replies.WriteAsync(new HealthCheckResponse { Status = status });
                sent = status;
            }

            await current.Superseded.WaitAsync(call.CancellationToken);
        }
    }
}
