using System.Collections.Concurrent;
using System.Runtime.CompilerServices;
using Google.Protobuf;
using Grpc.Core;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>
/// Calls by the path of their method, <c>/package.Service/Method</c>, without generated clients. Failures are
/// <see cref="RpcException"/>. Stateless; any thread.
/// </summary>
internal static class TestCalls
{
    /// <summary>Messages of a call with this are sent in gzip.</summary>
    public static Metadata Gzip => new() { { "grpc-internal-encoding-request", "gzip" } };

    /// <summary>A call that has so much time from now.</summary>
    public static CallOptions Within(TimeSpan span, Metadata? headers = null, CancellationToken ct = default) =>
        new(headers, DateTime.UtcNow + span, ct);

    /// <summary>One request, one reply; with what travels beside them.</summary>
    public static AsyncUnaryCall<TReply> Unary<TReply>(
        this ChannelBase channel,
        string path,
        IMessage request,
        MessageParser<TReply> parser,
        CallOptions options = default)
        where TReply : class, IMessage<TReply> =>
        channel.CreateCallInvoker()
            .AsyncUnaryCall(Methods<IMessage, TReply>.Find(MethodType.Unary, path, parser), null, options, request);

    /// <summary>One request, one reply.</summary>
    public static async Task<TReply> UnaryAsync<TReply>(
        this ChannelBase channel,
        string path,
        IMessage request,
        MessageParser<TReply> parser,
        CallOptions options = default)
        where TReply : class, IMessage<TReply>
    {
        using AsyncUnaryCall<TReply> call = channel.Unary(path, request, parser, options);
        try
        {
            return await call;
        }
        catch (RpcException failure) when (CodeBehind(failure, options.CancellationToken) is { } code)
        {
            throw new RpcException(new Status(code, failure.Status.Detail, failure.Status.DebugException));
        }
    }

    /// <summary>
    /// One request, many replies, read as they arrive. The call ends when the enumeration is disposed.
    /// </summary>
    public static async IAsyncEnumerable<TReply> ServerStreamingAsync<TReply>(
        this ChannelBase channel, string path, IMessage request, MessageParser<TReply> parser, CallOptions options =
            default, [EnumeratorCancellation] CancellationToken ct = default)
        where TReply : class, IMessage<TReply>
    {
        Method<IMessage, TReply> method = Methods<IMessage, TReply>.Find(MethodType.ServerStreaming, path, parser);
        using CancellationTokenSource either = CancellationTokenSource.CreateLinkedTokenSource(
            options.CancellationToken, ct);
        using AsyncServerStreamingCall<TReply> call = channel.CreateCallInvoker()
            .AsyncServerStreamingCall(method, null, options.WithCancellationToken(either.Token), request);
        while (await call.ResponseStream.MoveNext(CancellationToken.None))
        {
            yield return call.ResponseStream.Current;
        }
    }

    /// <summary>Many requests, one reply.</summary>
    public static AsyncClientStreamingCall<TRequest, TReply> ClientStreaming<TRequest, TReply>(
        this ChannelBase channel, string path, MessageParser<TReply> parser, CallOptions options = default)
        where TRequest : class, IMessage
        where TReply : class, IMessage<TReply> =>
        channel.CreateCallInvoker().AsyncClientStreamingCall(
            Methods<TRequest, TReply>.Find(MethodType.ClientStreaming, path, parser), null, options);

    /// <summary>Many requests and many replies, each in its own pace.</summary>
    public static AsyncDuplexStreamingCall<TRequest, TReply> DuplexStreaming<TRequest, TReply>(
        this ChannelBase channel, string path, MessageParser<TReply> parser, CallOptions options = default)
        where TRequest : class, IMessage
        where TReply : class, IMessage<TReply> =>
        channel.CreateCallInvoker().AsyncDuplexStreamingCall(
            Methods<TRequest, TReply>.Find(MethodType.DuplexStreaming, path, parser), null, options);

    /// <summary>The next reply, or null after the last one of a call that ended with OK.</summary>
    public static async Task<TReply?> ReadAsync<TRequest, TReply>(this AsyncDuplexStreamingCall<TRequest, TReply> call)
        where TReply : class =>
        await call.ResponseStream.MoveNext(CancellationToken.None) ? call.ResponseStream.Current : null;

    /// <summary>
    /// The request surely reached no handler, because no connection could be made. False says nothing.
    /// </summary>
    public static bool IsUnsent(this RpcException failure) =>
        HasTimedOutConnecting(failure.Status.DebugException)
            || failure.Status.DebugException is HttpRequestException
            {
                HttpRequestError: HttpRequestError.ConnectionError
                    or HttpRequestError.NameResolutionError
                    or HttpRequestError.SecureConnectionError,
            };

    /// <summary>
    /// The connection was not made within the handler's limit, which the client calls CANCELLED. No other timeout is
    /// set on it.
    /// </summary>
    private static bool HasTimedOutConnecting(Exception? failure) =>
        failure is OperationCanceledException
            && (failure.InnerException is TimeoutException || HasTimedOutConnecting(failure.InnerException));

    /// <summary>What the client calls INTERNAL or CANCELLED although it knows better; null: it is right.</summary>
    private static StatusCode? CodeBehind(RpcException failure, CancellationToken cancelled) =>
        failure.Status.DebugException switch
        {
            // The call ended on this side, and took the reply away from the client while it began to read it.
            ObjectDisposedException =>
                cancelled.IsCancellationRequested ? StatusCode.Cancelled : StatusCode.DeadlineExceeded,

            { } connecting when HasTimedOutConnecting(connecting) && !cancelled.IsCancellationRequested =>
                StatusCode.Unavailable,

            // "No error" is what a server says that stops (RFC 9113, section 6.8).
            { InnerException: HttpProtocolException { ErrorCode: 0 } } or HttpProtocolException { ErrorCode: 0 } =>
                StatusCode.Unavailable,
            _ => null,
        };

    /// <summary>
    /// The methods that were called with messages of two types: a channel keeps something for each, so that there must
    /// be one per path.
    /// </summary>
    private static class Methods<TRequest, TReply>
        where TRequest : class, IMessage
        where TReply : class, IMessage<TReply>
    {
        private static readonly ConcurrentDictionary<(MethodType Type, string Path), Method<TRequest, TReply>> s_found =
            new();

        public static Method<TRequest, TReply> Find(MethodType type, string path, MessageParser<TReply> parser) =>
            s_found.GetOrAdd((type, path), static (key, parser) => Create(key.Type, key.Path, parser), parser);

        private static Method<TRequest, TReply> Create(MethodType type, string path, MessageParser<TReply> parser)
        {
            string[] parts = path.Split('/');
            return new(
                type,
                parts[1],
                parts[2],
                Marshallers.Create<TRequest>(Write, static _ => throw new NotSupportedException()),
                Marshallers.Create<TReply>(Write, context => parser.ParseFrom(context.PayloadAsReadOnlySequence())));
        }

        private static void Write(IMessage message, SerializationContext context)
        {
            context.SetPayloadLength(message.CalculateSize());
            message.WriteTo(context.GetBufferWriter());
            context.Complete();
        }
    }
}
