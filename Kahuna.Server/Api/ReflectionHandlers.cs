using Google.Protobuf;
using Kahuna.Server.Api.Grpc;
using V1 = Kahuna.Client.Wire.Protos.Reflection.V1;
using V1Alpha = Kahuna.Client.Wire.Protos.Reflection.V1Alpha;

namespace Kahuna.Server.Api;

/// <summary>The standard reflection service, in both versions that tools ask for. Any thread.</summary>
internal sealed class ReflectionHandlers
{
    private readonly Lazy<ReflectionCatalogue> _catalogue;

    private ReflectionHandlers(GrpcServer server) => _catalogue = new Lazy<ReflectionCatalogue>(() => new ReflectionCatalogue(server.Services));

    /// <summary>Adds the service to a server; it tells of all services that the server has when the first question comes.</summary>
    public static void AddTo(GrpcServer server)
    {
        ReflectionHandlers handlers = new(server);
        server.AddService(V1.ReflectionReflection.Descriptor.Services[0], service => service
            .Duplex<V1.ServerReflectionRequest, V1.ServerReflectionResponse>("ServerReflectionInfo", handlers.AnswerAsync));
        server.AddService(V1Alpha.ReflectionReflection.Descriptor.Services[0], service => service
            .Duplex<V1Alpha.ServerReflectionRequest, V1Alpha.ServerReflectionResponse>("ServerReflectionInfo", handlers.AnswerAlphaAsync));
    }

    private async Task AnswerAsync(GrpcStreamReader<V1.ServerReflectionRequest> requests, GrpcStreamWriter<V1.ServerReflectionResponse> replies, CallContext call)
    {
        while (await requests.ReadAsync() is { } request)
        {
            await replies.WriteAsync(_catalogue.Value.Answer(request));
        }
    }

    private async Task AnswerAlphaAsync(GrpcStreamReader<V1Alpha.ServerReflectionRequest> requests, GrpcStreamWriter<V1Alpha.ServerReflectionResponse> replies, CallContext call)
    {
        // The two versions differ in the name of the package alone, so their messages are the same bytes.
        while (await requests.ReadAsync() is { } request)
        {
            V1.ServerReflectionResponse response = _catalogue.Value.Answer(V1.ServerReflectionRequest.Parser.ParseFrom(request.ToByteString()));
            await replies.WriteAsync(V1Alpha.ServerReflectionResponse.Parser.ParseFrom(response.ToByteString()));
        }
    }
}
