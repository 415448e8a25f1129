using System.Collections.Concurrent;
using Google.Protobuf;
using Google.Protobuf.Reflection;
using Grpc.Core;
using Grpc.Net.Client;
using Kahuna.Wire.Protos;

namespace Kahuna.Tests.Api.Grpc.Foreign;

/// <summary>
/// Calls of methods that are given by their description, and a list of those that have given a reply. Any thread.
/// </summary>
internal sealed class DescribedCalls(GrpcChannel channel)
{
    private static readonly TimeSpan s_patience = LastNet.Span;

    private readonly ConcurrentDictionary<string, bool> _answered = new();

    /// <summary>Full names of the methods that have given a reply, as in "package.Service.Method".</summary>
    public IEnumerable<string> Answered => _answered.Keys;

    /// <summary>One request, one reply.</summary>
    public async Task<TReply> UnaryAsync<TReply>(ServiceDescriptor service, string name, IMessage request)
        where TReply : class, IMessage<TReply>
    {
        MethodDescriptor method = Find(service, name, request.Descriptor, client: false, server: false);
        TReply reply = await channel.UnaryAsync(
            PathOf(method), request, Parser<TReply>(method), TestCalls.Within(s_patience));
        _answered[method.FullName] = true;
        return reply;
    }

    /// <summary>The first reply of a stream, which is given up then.</summary>
    public async Task<TReply> FirstAsync<TReply>(ServiceDescriptor service, string name, IMessage request)
        where TReply : class, IMessage<TReply>
    {
        MethodDescriptor method = Find(service, name, request.Descriptor, client: false, server: true);
        await foreach (TReply reply in channel.ServerStreamingAsync(
            PathOf(method), request, Parser<TReply>(method), TestCalls.Within(s_patience)))
        {
            _answered[method.FullName] = true;
            return reply;
        }

        throw new InvalidOperationException($"{method.FullName} ended without a reply.");
    }

    /// <summary>Sends requests, and gives all replies of a call that ends with OK.</summary>
    public async Task<List<TReply>> ExchangeAsync<TRequest, TReply>(
        ServiceDescriptor service, string name, params TRequest[] requests)
        where TRequest : class, IMessage<TRequest>
        where TReply : class, IMessage<TReply>
    {
        MethodDescriptor method = Find(service, name, requests[0].Descriptor, client: true, server: true);
        using AsyncDuplexStreamingCall<TRequest, TReply> call = channel.DuplexStreaming<TRequest, TReply>(
            PathOf(method), Parser<TReply>(method), TestCalls.Within(s_patience));
        foreach (TRequest request in requests)
        {
            await call.RequestStream.WriteAsync(request);
        }

        await call.RequestStream.CompleteAsync();
        List<TReply> replies = [];
        while (await call.ReadAsync() is { } reply)
        {
            _answered[method.FullName] = true;
            replies.Add(reply);
        }

        return replies;
    }

    /// <summary>One request that is refused with a status, which counts as a reply.</summary>
    public async Task RefusedAsync(MethodDescriptor method, StatusCode status)
    {
        IMessage request = method.InputType.Parser.ParseFrom(ReadOnlySpan<byte>.Empty.ToArray());
        RpcException refused = await Assert.ThrowsAsync<RpcException>(() => channel.UnaryAsync(
            PathOf(method), request, WhoAmIResponse.Parser, TestCalls.Within(s_patience)));
        Assert.Equal(status, refused.StatusCode);
        _answered[method.FullName] = true;
    }

    private static MethodDescriptor Find(
        ServiceDescriptor service, string name, MessageDescriptor request, bool client, bool server)
    {
        MethodDescriptor method = service.FindMethodByName(name);
        Assert.Equal((request, client, server), (method.InputType, method.IsClientStreaming, method.IsServerStreaming));
        return method;
    }

    private static string PathOf(MethodDescriptor method) => $"/{method.Service.FullName}/{method.Name}";

    private static MessageParser<TReply> Parser<TReply>(MethodDescriptor method)
        where TReply : class, IMessage<TReply> =>
        Assert.IsType<MessageParser<TReply>>(method.OutputType.Parser);
}
