using System.Collections.Concurrent;
using System.Net;
using System.Runtime.CompilerServices;
using Google.Protobuf;

namespace Kahuna.Client.Wire.Grpc;

/// <summary>
/// Calls to one address over HTTP/2, with TLS for https and with prior knowledge for http. Connections are made on the first
/// call and again after a loss. Owned by its maker, who disposes it when no call is open any more; any thread may call.
/// </summary>
/// <remarks>
/// Failures are <see cref="GrpcException"/>, whether the server answered with them or the connection broke; a call that
/// its caller cancelled throws <see cref="OperationCanceledException"/>. A deadline that passes is DEADLINE_EXCEEDED.
/// </remarks>
internal sealed class GrpcChannel : IAsyncDisposable
{
    private readonly HttpMessageInvoker _invoker;

    /// <summary>One address per method that was ever called: parsing it for each call costs more than looking it up.</summary>
    private readonly ConcurrentDictionary<string, Uri> _methodAddresses = new(StringComparer.Ordinal);

    public GrpcChannel(Uri address, GrpcChannelOptions? options = null)
    {
        if (!address.IsAbsoluteUri || (address.Scheme != Uri.UriSchemeHttps && address.Scheme != Uri.UriSchemeHttp))
        {
            throw new ArgumentException($"'{address}' is not an https or http address.", nameof(address));
        }

        Address = address;
        Options = options ?? new GrpcChannelOptions();
        SocketsHttpHandler handler = new()
        {
            ActivityHeadersPropagator = null,
            AllowAutoRedirect = false,
            AutomaticDecompression = DecompressionMethods.None,
            ConnectTimeout = Options.ConnectTimeout,
            EnableMultipleHttp2Connections = Options.EnableMultipleHttp2Connections,
            InitialHttp2StreamWindowSize = Options.InitialHttp2StreamWindowSize,
            KeepAlivePingDelay = Options.KeepAlivePingDelay,
            KeepAlivePingPolicy = HttpKeepAlivePingPolicy.WithActiveRequests,
            KeepAlivePingTimeout = Options.KeepAlivePingTimeout,
            PooledConnectionIdleTimeout = Timeout.InfiniteTimeSpan,
            UseCookies = false,
            UseProxy = false,
        };
        if (Options.Tls is not null)
        {
            handler.SslOptions = Options.Tls;
        }

        if (Options.Dial is { } dial)
        {
            handler.ConnectCallback = (context, ct) => dial(context.DnsEndPoint, ct);
        }

        _invoker = new HttpMessageInvoker(handler, disposeHandler: true);
    }

    /// <summary>Scheme, host and port of the server.</summary>
    public Uri Address { get; }

    /// <summary>The settings that the channel was made with.</summary>
    public GrpcChannelOptions Options { get; }

    /// <summary>One request, one reply. <paramref name="path"/> is <c>/package.Service/Method</c>, here and below.</summary>
    public async Task<TReply> UnaryAsync<TRequest, TReply>(string path, TRequest request, MessageParser<TReply> parser, CallOptions options = default)
        where TRequest : IMessage
        where TReply : class, IMessage<TReply>
    {
        using GrpcCall call = new(this, path, options);
        try
        {
            await call.SendAsync(new MessageContent(call.Encode(request))).ConfigureAwait(false);
            return await call.ReadOnlyReplyAsync(parser).ConfigureAwait(false);
        }
        catch (Exception e) when (e is not GrpcException)
        {
            throw call.Translate(e);
        }
    }

    /// <summary>One request, many replies, read as they arrive. The call ends when the enumeration is disposed.</summary>
    public async IAsyncEnumerable<TReply> ServerStreamingAsync<TRequest, TReply>(
        string path, TRequest request, MessageParser<TReply> parser, CallOptions options = default, [EnumeratorCancellation] CancellationToken cancellationToken = default)
        where TRequest : IMessage
        where TReply : class, IMessage<TReply>
    {
        using CancellationTokenSource? both = cancellationToken.CanBeCanceled && options.CancellationToken.CanBeCanceled
            ? CancellationTokenSource.CreateLinkedTokenSource(cancellationToken, options.CancellationToken)
            : null;
        CancellationToken token = both?.Token ?? (cancellationToken.CanBeCanceled ? cancellationToken : options.CancellationToken);
        using GrpcCall call = new(this, path, options with { CancellationToken = token });
        try
        {
            await call.SendAsync(new MessageContent(call.Encode(request))).ConfigureAwait(false);
        }
        catch (Exception e) when (e is not GrpcException)
        {
            throw call.Translate(e);
        }

        while (await call.ReadReplyAsync(parser).ConfigureAwait(false) is { } reply)
        {
            yield return reply;
        }
    }

    /// <summary>Many requests, one reply. Begins to send at once; failures come out of the returned call's methods.</summary>
    public ClientStreamingCall<TRequest, TReply> ClientStreaming<TRequest, TReply>(string path, MessageParser<TReply> parser, CallOptions options = default)
        where TRequest : IMessage
        where TReply : class, IMessage<TReply> =>
        new(new StreamedCall(new GrpcCall(this, path, options)), parser);

    /// <summary>Many requests and many replies, each in its own pace. Begins at once; failures come out of the returned call's methods.</summary>
    public DuplexStreamingCall<TRequest, TReply> DuplexStreaming<TRequest, TReply>(string path, MessageParser<TReply> parser, CallOptions options = default)
        where TRequest : IMessage
        where TReply : class, IMessage<TReply> =>
        new(new StreamedCall(new GrpcCall(this, path, options)), parser);

    /// <summary>
    /// Opens a stream of bytes in both directions; the caller frames the messages. Returns when the server's headers have
    /// arrived, so the server must send them before it waits for a message.
    /// </summary>
    /// <param name="path"><c>/package.Service/Method</c>.</param>
    /// <param name="headers">Metadata of the request.</param>
    /// <param name="cancellationToken">Ends the attempt to open, not the open stream.</param>
    public async Task<RawDuplexCall> OpenRawDuplexAsync(string path, GrpcMetadata? headers, CancellationToken cancellationToken)
    {
        GrpcCall call = new(this, path, new CallOptions { Headers = headers });
        StreamedCall streamed = new(call);
        try
        {
            // Only the opening is bound to the caller's token.
            using (cancellationToken.UnsafeRegister(static state => ((GrpcCall)state!).Abort(), call))
            {
                await streamed.ResponseStarted.ConfigureAwait(false);
                Stream requests = await streamed.RequestStream.ConfigureAwait(false);
                cancellationToken.ThrowIfCancellationRequested();
                return new RawDuplexCall(streamed, requests, call.ResponseStream);
            }
        }
        catch (Exception e)
        {
            streamed.Dispose();
            cancellationToken.ThrowIfCancellationRequested();
            throw call.Translate(e);
        }
    }

    /// <inheritdoc/>
    public ValueTask DisposeAsync()
    {
        _invoker.Dispose();
        return ValueTask.CompletedTask;
    }

    /// <summary>The address of a method.</summary>
    internal Uri AddressOf(string path) =>
        _methodAddresses.TryGetValue(path, out Uri? known) ? known : _methodAddresses.GetOrAdd(path, new Uri(Address, path));

    /// <summary>Sends a request; returns when the response's headers are in.</summary>
    internal Task<HttpResponseMessage> SendAsync(HttpRequestMessage request, CancellationToken cancellationToken) =>
        _invoker.SendAsync(request, cancellationToken);
}
