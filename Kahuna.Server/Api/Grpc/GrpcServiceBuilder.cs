using Google.Protobuf;
using Google.Protobuf.Reflection;
using ServiceDescriptor = Google.Protobuf.Reflection.ServiceDescriptor;

namespace Kahuna.Server.Api.Grpc;

/// <summary>
/// Binds handlers to the methods of one service and checks each against the service's descriptor: name, kind and message
/// types. Used once at start-up by one thread.
/// </summary>
internal sealed class GrpcServiceBuilder(ServiceDescriptor service, Dictionary<string, GrpcMethodHandler> bound)
{
    /// <summary>One request, one reply. A handler that completes at once costs no thread switch and no timer.</summary>
    public GrpcServiceBuilder Unary<TRequest, TReply>(string method, Func<TRequest, CallContext, Task<TReply>> handler)
        where TRequest : class, IMessage<TRequest>
        where TReply : class, IMessage<TReply> =>
        Bind(method, typeof(TRequest), typeof(TReply), (false, false), found => new UnaryHandler<TRequest, TReply>(ParserOf<TRequest>(found), handler));

    /// <summary>One request, many replies.</summary>
    public GrpcServiceBuilder ServerStreaming<TRequest, TReply>(string method, Func<TRequest, GrpcStreamWriter<TReply>, CallContext, Task> handler)
        where TRequest : class, IMessage<TRequest>
        where TReply : class, IMessage<TReply> =>
        Bind(method, typeof(TRequest), typeof(TReply), (false, true), found => new ServerStreamingHandler<TRequest, TReply>(ParserOf<TRequest>(found), handler));

    /// <summary>Many requests, one reply.</summary>
    public GrpcServiceBuilder ClientStreaming<TRequest, TReply>(string method, Func<GrpcStreamReader<TRequest>, CallContext, Task<TReply>> handler)
        where TRequest : class, IMessage<TRequest>
        where TReply : class, IMessage<TReply> =>
        Bind(method, typeof(TRequest), typeof(TReply), (true, false), found => new ClientStreamingHandler<TRequest, TReply>(ParserOf<TRequest>(found), handler));

    /// <summary>Many requests, many replies.</summary>
    public GrpcServiceBuilder Duplex<TRequest, TReply>(string method, Func<GrpcStreamReader<TRequest>, GrpcStreamWriter<TReply>, CallContext, Task> handler)
        where TRequest : class, IMessage<TRequest>
        where TReply : class, IMessage<TReply> =>
        Bind(method, typeof(TRequest), typeof(TReply), (true, true), found => new DuplexHandler<TRequest, TReply>(ParserOf<TRequest>(found), handler));

    /// <summary>Many requests, many replies, as bytes: the handler frames and decodes by itself.</summary>
    public GrpcServiceBuilder RawDuplex(string method, Func<RawGrpcStream, CallContext, Task> handler) =>
        Bind(method, null, null, (true, true), _ => new RawDuplexHandler(handler));

    private static MessageParser<TRequest> ParserOf<TRequest>(MethodDescriptor method)
        where TRequest : class, IMessage<TRequest> =>
        (MessageParser<TRequest>)method.InputType.Parser;

    private GrpcServiceBuilder Bind(string name, Type? request, Type? reply, (bool Client, bool Server) streams, Func<MethodDescriptor, GrpcMethodHandler> make)
    {
        MethodDescriptor method = service.FindMethodByName(name)
            ?? throw new ArgumentException($"The service {service.FullName} has no method '{name}'.", nameof(name));
        if (method.IsClientStreaming != streams.Client || method.IsServerStreaming != streams.Server)
        {
            throw new ArgumentException($"The method {method.FullName} is of another kind than its handler.", nameof(name));
        }

        if ((request ?? method.InputType.ClrType) != method.InputType.ClrType || (reply ?? method.OutputType.ClrType) != method.OutputType.ClrType)
        {
            throw new ArgumentException($"The method {method.FullName} takes {method.InputType.ClrType.Name} and gives {method.OutputType.ClrType.Name}.", nameof(name));
        }

        if (!bound.TryAdd($"/{service.FullName}/{name}", make(method)))
        {
            throw new ArgumentException($"The method {method.FullName} is bound already.", nameof(name));
        }

        return this;
    }
}
