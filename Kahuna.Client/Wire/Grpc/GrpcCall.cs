using System.Net;
using System.Net.Http.Headers;
using Google.Protobuf;
using Kahuna.Client.Wire.Buffers;

namespace Kahuna.Client.Wire.Grpc;

/// <summary>
/// One call on the client's side: request headers, deadline, the check of the response's headers, its messages and its
/// status. Owned by one caller, who disposes it; sending and receiving may happen at the same time, each by one task at a time.
/// </summary>
internal sealed class GrpcCall : IDisposable
{
    private static readonly ProductInfoHeaderValue s_userAgent = new("kahuna-dotnet", typeof(GrpcCall).Assembly.GetName().Version!.ToString(3));
    private static readonly MediaTypeHeaderValue s_contentType = new(GrpcProtocol.ContentType);

    private readonly GrpcChannel _channel;
    private readonly string _path;
    private readonly CallOptions _options;
    private readonly long _deadlineAt;
    private readonly CancellationTokenSource _end;
    private readonly CancellationTokenRegistration _callerCancels;
    private HttpResponseMessage? _response;
    private Stream? _responseStream;
    private GrpcMessageReader? _reader;
    private GrpcStatus? _earlyStatus;

    public GrpcCall(GrpcChannel channel, string path, CallOptions options)
    {
        options.CancellationToken.ThrowIfCancellationRequested();
        _channel = channel;
        _path = path;
        _options = options;
        _end = new CancellationTokenSource();
        Ended = _end.Token;
        _deadlineAt = long.MaxValue;
        if (options.Deadline is { } deadline)
        {
            if (deadline <= TimeSpan.Zero)
            {
                throw new GrpcException(GrpcStatusCode.DeadlineExceeded, "The deadline passed before the call began.") { NeverProcessed = true };
            }

            long now = Environment.TickCount64;
            _deadlineAt = now + (long)Math.Min(deadline.TotalMilliseconds, int.MaxValue);
            _end.CancelAfter(TimeSpan.FromMilliseconds(Math.Min(Math.Ceiling(deadline.TotalMilliseconds), int.MaxValue)));
        }

        _callerCancels = options.CancellationToken.UnsafeRegister(static state => ((GrpcCall)state!).Abort(), this);
    }

    /// <summary>Cancelled by the deadline, by the caller's token and by <see cref="Abort"/>.</summary>
    public CancellationToken Ended { get; }

    /// <summary>The body of the response; there is one once the response has begun.</summary>
    public Stream ResponseStream => _responseStream ?? throw new InvalidOperationException("The response has not begun.");

    /// <summary>A message as it goes on the wire.</summary>
    public ReadOnlyMemory<byte> Encode(IMessage message) => GrpcFraming.ToArray(message, _options.Gzip, _channel.Options.MaxSendMessageBytes);

    /// <summary>Sends the request and waits for the headers of the response.</summary>
    /// <exception cref="GrpcException">The server answered with a status at once, or with something that is not gRPC.</exception>
    public async Task SendAsync(HttpContent content)
    {
        content.Headers.ContentType = s_contentType;
        HttpRequestMessage request = new(HttpMethod.Post, _channel.AddressOf(_path))
        {
            Version = HttpVersion.Version20,
            VersionPolicy = HttpVersionPolicy.RequestVersionExact,
            Content = content,
        };
        AddRequestHeaders(request.Headers);
        _response = await _channel.SendAsync(request, Ended).ConfigureAwait(false);
        _responseStream = await _response.Content.ReadAsStreamAsync(Ended).ConfigureAwait(false);
        CheckResponse(_response);
    }

    /// <summary>The next reply of a stream, or null after the last one of a stream that ended well.</summary>
    public async ValueTask<TReply?> ReadReplyAsync<TReply>(MessageParser<TReply> parser)
        where TReply : class, IMessage<TReply>
    {
        try
        {
            TReply? reply = await ReadMessageAsync(parser).ConfigureAwait(false);
            if (reply is null)
            {
                ThrowUnlessOK(EndStatus());
            }

            return reply;
        }
        catch (Exception e)
        {
            throw Translate(e);
        }
    }

    /// <summary>The reply of a call that has exactly one.</summary>
    public async ValueTask<TReply> ReadOnlyReplyAsync<TReply>(MessageParser<TReply> parser)
        where TReply : class, IMessage<TReply>
    {
        TReply? reply = await ReadMessageAsync(parser).ConfigureAwait(false);
        if (reply is not null && await ReadMessageAsync(parser).ConfigureAwait(false) is not null)
        {
            throw new GrpcException(GrpcStatusCode.Internal, "The server sent more than one reply to a call that has one.");
        }

        ThrowUnlessOK(EndStatus());
        return reply ?? throw new GrpcException(GrpcStatusCode.Internal, "The server ended the call without a reply.");
    }

    /// <summary>The status at the end of the response.</summary>
    public GrpcStatus EndStatus()
    {
        if (_earlyStatus is { } early)
        {
            return early;
        }

        HttpResponseHeaders trailers = _response!.TrailingHeaders;
        _options.Response?.Trailers = Received(trailers);
        return GrpcStatusMapping.TryRead(trailers, out GrpcStatus status)
            ? status
            : new GrpcStatus(GrpcStatusCode.Unknown, "The response ended without a grpc-status.");
    }

    /// <summary>Reads and forgets what is left of the response, then gives the status. Failures of the connection are statuses too.</summary>
    public async Task<GrpcStatus> DrainAsync()
    {
        byte[] scratch = BufferArrays.Rent(4096);
        try
        {
            while (await ResponseStream.ReadAsync(scratch, Ended).ConfigureAwait(false) > 0)
            {
            }

            return EndStatus();
        }
        catch (Exception e)
        {
            return Translate(e) is GrpcException known ? known.Status : new GrpcStatus(GrpcStatusCode.Cancelled, "The caller cancelled the call.");
        }
        finally
        {
            BufferArrays.Return(scratch);
        }
    }

    /// <summary>What a failure of this call means to its caller.</summary>
    public Exception Translate(Exception failure)
    {
        if (failure is GrpcException)
        {
            return failure;
        }

        if (_options.CancellationToken.IsCancellationRequested)
        {
            return new OperationCanceledException("The caller cancelled the call.", failure, _options.CancellationToken);
        }

        if (Environment.TickCount64 >= _deadlineAt)
        {
            return new GrpcException(new GrpcStatus(GrpcStatusCode.DeadlineExceeded, "The deadline passed."), inner: failure);
        }

        return _end.IsCancellationRequested || failure is ObjectDisposedException
            ? new GrpcException(new GrpcStatus(GrpcStatusCode.Cancelled, "The call was ended on this side."), inner: failure)
            : GrpcStatusMapping.FromFailure(failure);
    }

    /// <summary>Ends the call at once. The server sees a cancelled stream unless the call was over. Any thread.</summary>
    public void Abort()
    {
        try
        {
            _end.Cancel();
        }
        catch (ObjectDisposedException)
        {
            // The call is over already.
        }
    }

    /// <inheritdoc/>
    public void Dispose()
    {
        _callerCancels.Dispose();
        _response?.Dispose();
        _reader?.Dispose();
        _end.Dispose();
    }

    private static GrpcMetadata Received(HttpHeaders headers)
    {
        GrpcMetadata? metadata = null;
        foreach (KeyValuePair<string, HeaderStringValues> header in headers.NonValidated)
        {
            if (!GrpcProtocol.IsReservedHeader(header.Key))
            {
                metadata ??= [];
                foreach (string value in header.Value)
                {
                    metadata.AddReceived(header.Key, value);
                }
            }
        }

        return metadata ?? GrpcMetadata.Empty;
    }

    private static string? EncodingOf(HttpResponseMessage response) =>
        response.Headers.NonValidated.TryGetValues(GrpcProtocol.EncodingHeader, out HeaderStringValues values) ? values.ToString() : null;

    private ValueTask<TReply?> ReadMessageAsync<TReply>(MessageParser<TReply> parser)
        where TReply : class, IMessage<TReply>
    {
        _reader ??= new GrpcMessageReader(ResponseStream, _channel.Options.MaxReceiveMessageBytes, EncodingOf(_response!));
        return _reader.ReadAsync(parser, Ended);
    }

    private void AddRequestHeaders(HttpRequestHeaders headers)
    {
        headers.UserAgent.Add(s_userAgent);
        headers.TryAddWithoutValidation("te", "trailers");
        headers.TryAddWithoutValidation(GrpcProtocol.AcceptEncodingHeader, GrpcProtocol.AcceptedEncodings);
        if (_options.Gzip)
        {
            headers.TryAddWithoutValidation(GrpcProtocol.EncodingHeader, GrpcProtocol.GzipEncoding);
        }

        if (_options.Deadline is { } deadline)
        {
            headers.TryAddWithoutValidation(GrpcProtocol.TimeoutHeader, GrpcTimeout.Encode(deadline));
        }

        foreach (GrpcMetadataEntry entry in _options.Headers ?? GrpcMetadata.Empty)
        {
            headers.TryAddWithoutValidation(entry.Name, entry.HeaderValue);
        }
    }

    private void CheckResponse(HttpResponseMessage response)
    {
        bool hasStatus = GrpcStatusMapping.TryRead(response.Headers, out GrpcStatus status);
        if (hasStatus)
        {
            // Headers that hold the status are trailers: the response has no body.
            _earlyStatus = status;
            GrpcMetadata trailers = Received(response.Headers);
            _options.Response?.Trailers = trailers;
            if (!status.IsOK)
            {
                throw new GrpcException(status, trailers);
            }

            return;
        }

        if (response.StatusCode != HttpStatusCode.OK)
        {
            throw new GrpcException(GrpcStatusMapping.FromHttp(response.StatusCode), $"The server answered with HTTP status {(int)response.StatusCode}, not with gRPC.");
        }

        string? contentType = response.Content.Headers.ContentType?.ToString();
        if (!GrpcProtocol.IsGrpcContentType(contentType))
        {
            throw new GrpcException(GrpcStatusCode.Unknown, $"The server answered with the content type '{contentType}', not with gRPC.");
        }

        _options.Response?.Headers = Received(response.Headers);
    }

    private void ThrowUnlessOK(GrpcStatus status)
    {
        if (!status.IsOK)
        {
            throw new GrpcException(status, _earlyStatus is null ? Received(_response!.TrailingHeaders) : null);
        }
    }
}
