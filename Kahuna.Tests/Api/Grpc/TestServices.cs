using Google.Protobuf;
using Google.Protobuf.Reflection;
using Grpc.AspNetCore.Server.Model;
using Grpc.Core;
using Kahuna.Server.Api.Access;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Hosting;
using Kahuna.Wire.Protos;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Routing;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;
using ServiceDescriptor = Google.Protobuf.Reflection.ServiceDescriptor;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>
/// Services made of handlers that a test gives, served as the product serves its own. Filled before the host starts.
/// </summary>
internal sealed class TestServices
{
    private readonly List<ServiceDescriptor> _services = [];
    private readonly List<Action<ServiceMethodProviderContext<TestServices>>> _methods = [];

    /// <summary>Adds a service; methods that <paramref name="bind"/> leaves out answer UNIMPLEMENTED.</summary>
    public TestServices AddService(ServiceDescriptor service, Action<Methods> bind)
    {
        _services.Add(service);
        bind(new Methods(service, _methods));
        return this;
    }

    /// <summary>Adds what the services need.</summary>
    public void AddTo(IServiceCollection services, CallLimits limits)
    {
        services.AddKahunaGrpc(limits);
        services.AddSingleton(this);
        services.AddSingleton<IServiceMethodProvider<TestServices>>(new Provider(_methods));
    }

    /// <summary>Puts the services into an application.</summary>
    public void MapTo(WebApplication app, CallLimits limits, ILogger log, AccessMiddleware? access = null)
    {
        app.MapKahunaGrpc(limits, _services, log, access);
        app.MapGrpcService<TestServices>();
    }

    private sealed class Provider(List<Action<ServiceMethodProviderContext<TestServices>>> methods)
        : IServiceMethodProvider<TestServices>
    {
        public void OnServiceMethodDiscovery(ServiceMethodProviderContext<TestServices> context) =>
            methods.ForEach(method => method(context));
    }

    /// <summary>The methods of one service.</summary>
    internal sealed class Methods(
        ServiceDescriptor service, List<Action<ServiceMethodProviderContext<TestServices>>> bound)
    {
        public Methods Unary<TRequest, TReply>(string name, Func<TRequest, ServerCallContext, Task<TReply>> handler)
            where TRequest : class, IMessage<TRequest>
            where TReply : class, IMessage<TReply> =>
            Add(context => context.AddUnaryMethod(
                Method<TRequest, TReply>(name, MethodType.Unary),
                [new HttpMethodMetadata([HttpMethods.Post])],
                (_, request, call) => handler(request, call)));

        public Methods ServerStreaming<TRequest, TReply>(
            string name, Func<TRequest, IServerStreamWriter<TReply>, ServerCallContext, Task> handler)
            where TRequest : class, IMessage<TRequest>
            where TReply : class, IMessage<TReply> =>
            Add(context => context.AddServerStreamingMethod(
                Method<TRequest, TReply>(name, MethodType.ServerStreaming),
                [new HttpMethodMetadata([HttpMethods.Post])],
                (_, request, replies, call) => handler(request, replies, call)));

        public Methods ClientStreaming<TRequest, TReply>(
            string name, Func<IAsyncStreamReader<TRequest>, ServerCallContext, Task<TReply>> handler)
            where TRequest : class, IMessage<TRequest>
            where TReply : class, IMessage<TReply> =>
            Add(context => context.AddClientStreamingMethod(
                Method<TRequest, TReply>(name, MethodType.ClientStreaming),
                [new HttpMethodMetadata([HttpMethods.Post])],
                (_, requests, call) => handler(requests, call)));

        public Methods Duplex<TRequest, TReply>(
            string name,
            Func<IAsyncStreamReader<TRequest>, IServerStreamWriter<TReply>, ServerCallContext, Task> handler)
            where TRequest : class, IMessage<TRequest>
            where TReply : class, IMessage<TReply> =>
            Add(context => context.AddDuplexStreamingMethod(
                Method<TRequest, TReply>(name, MethodType.DuplexStreaming),
                [new HttpMethodMetadata([HttpMethods.Post])],
                (_, requests, replies, call) => handler(requests, replies, call)));

        public Methods RawDuplex(string name, Func<RawStream, ServerCallContext, Task> handler) =>
            Duplex<Frame, Frame>(name, (_, _, call) => handler(new RawStream(call), call));

        private Methods Add(Action<ServiceMethodProviderContext<TestServices>> method)
        {
            bound.Add(method);
            return this;
        }

        private Method<TRequest, TReply> Method<TRequest, TReply>(string name, MethodType type)
            where TRequest : class, IMessage<TRequest>
            where TReply : class, IMessage<TReply>
        {
            MethodDescriptor found = service.FindMethodByName(name);
            return new Method<TRequest, TReply>(
                type,
                service.FullName,
                name,
                Marshaller<TRequest>(found.InputType),
                Marshaller<TReply>(found.OutputType));
        }

        private static Marshaller<T> Marshaller<T>(MessageDescriptor type)
            where T : class, IMessage<T> => new(
            static (message, context) =>
            {
                context.SetPayloadLength(message.CalculateSize());
                message.WriteTo(context.GetBufferWriter());
                context.Complete();
            },
            context => (T)type.Parser.ParseFrom(context.PayloadAsReadOnlySequence()));
    }
}
