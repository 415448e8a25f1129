using System.Diagnostics;
using System.Globalization;
using System.IO.Pipelines;
using Google.Protobuf;
using Kahuna.Client.Wire.Grpc;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.Extensions.Primitives;

namespace Kahuna.Server.Api.Grpc;

/// <summary>
/// One call on the server's side: what a handler may ask about it and set on it, its deadline, and its end. Owned by the
/// request; the handler uses it from one thread at a time, while the timer may end it from another.
/// </summary>
/// <remarks>
/// The response has one owner at any time, told by <see cref="_output"/>: nobody, whoever writes a reply, or whoever ended
/// the call. The timer takes it when nobody has it and answers in the handler's place, even when the handler never returns.
/// When a write has it, the handler sees its token cancelled, and a write that does not end within the grace (its reader
/// stopped reading) is reset. The timer touches the request only under <see cref="_lock"/> and before <see cref="_finished"/>,
/// because requests are reused.
/// </remarks>
internal sealed class CallContext
{
    private const int Free = 0;
    private const int Writing = 1;
    private const int Ended = 2;

    /// <summary>HTTP/2 error codes (RFC 9113, section 7).</summary>
    private const int ResetInternalError = 2;
    private const int ResetCancel = 8;

    /// <summary>
    /// Replies of this size and more are waited for until the connection has taken them. The web server's buffer of one response takes 4 KiB without saying whether the client
    /// reads; a thousand calls of one connection keep 4 MB at most in such replies.
    /// </summary>
    private const int UnseenBytes = 4_000;

    /// <summary>A stream that stalls is cut at most a quarter of the patience late.</summary>
    private const int LooksPerPatience = 4;

    /// <summary>Timers take no longer times; nobody waits 24 days for a call.</summary>
    private static readonly TimeSpan s_longest = TimeSpan.FromMilliseconds(int.MaxValue);

    private readonly GrpcServer _server;
    private readonly long _startedAt = Stopwatch.GetTimestamp();
    private readonly Lock _lock = new();
    private GrpcMethodHandler? _handler;
    private GrpcMetadata? _requestHeaders;
    private GrpcMetadata? _responseHeaders;
    private GrpcMetadata? _responseTrailers;
    private TimeSpan? _timeout;
    private CancellationTokenSource? _cancellation;
    private Timer? _timer;
    private Task _forcedEnd = Task.CompletedTask;
    private GrpcStatus? _forcedStatus;
    private int _output;
    private bool _responseBegun;
    private bool _bodyWritten;
    private bool _gzip;
    private bool _finished;
    private volatile bool _begun;
    private volatile bool _cut;
    private long _flushingSince;

    public CallContext(GrpcServer server, HttpContext http, string method)
    {
        _server = server;
        Http = http;
        Method = method;
        Requests = new GrpcRequestReader(http.Request, server.Options);
    }

    /// <summary><c>/package.Service/Method</c>.</summary>
    public string Method { get; }

    /// <summary>Address and port of the caller, or of the proxy in front of it.</summary>
    public string Peer => $"{Http.Connection.RemoteIpAddress}:{Http.Connection.RemotePort.ToString(CultureInfo.InvariantCulture)}";

    /// <summary>What is left until the deadline; null when the caller set none, zero when it has passed.</summary>
    public TimeSpan? TimeLeft => _timeout is { } timeout ? Left(timeout) : null;

    /// <summary>What the caller sent beside the request.</summary>
    public GrpcMetadata RequestHeaders => _requestHeaders ??= ReadRequestHeaders();

    /// <summary>Goes out before the first reply; additions after it are too late.</summary>
    public GrpcMetadata ResponseHeaders => _responseHeaders ??= [];

    /// <summary>Goes out with the status.</summary>
    public GrpcMetadata ResponseTrailers => _responseTrailers ??= [];

    /// <summary>Cancelled when the call is over: its deadline passed, the caller went away, or, for streams, the server stops.</summary>
    public CancellationToken CancellationToken => (_cancellation ?? MakeCancellation()).Token;

    /// <summary>The request and response below.</summary>
    internal HttpContext Http { get; }

    /// <summary>The messages of the request.</summary>
    internal GrpcRequestReader Requests { get; }

    private bool Streams => _handler is { RequestStreams: true } or { ReplyStreams: true };

    /// <summary>Replies are compressed if the caller can read that. To be asked for before the first reply.</summary>
    public void CompressReplies()
    {
        foreach (string? accepted in Http.Request.Headers[GrpcProtocol.AcceptEncodingHeader])
        {
            _gzip |= accepted?.Contains(GrpcProtocol.GzipEncoding, StringComparison.OrdinalIgnoreCase) ?? false;
        }
    }

    /// <summary>Runs a handler from the request's arrival to the response's end.</summary>
    internal async Task RunAsync(GrpcMethodHandler handler)
    {
        _handler = handler;
        ConnectionShare? share = null;
        try
        {
            ReadProtocolHeaders();
            share = OpenStream();
            Task work = handler.InvokeAsync(this);
            if (!work.IsCompleted)
            {
                StartTimer();
            }

            await work;
            End(GrpcStatus.Success, null);
        }
        catch (Exception e)
        {
            EndWith(e);
        }
        finally
        {
            Requests.End();
            share?.CloseStream();
            await FinishAsync();
        }
    }

    /// <summary>Answers with a status alone.</summary>
    internal Task RefuseAsync(GrpcStatus status)
    {
        End(status, null);
        return Task.CompletedTask;
    }

    /// <summary>
    /// Writes the reply of a call that has one. A reply of less than <see cref="UnseenBytes"/> leaves together with the status. A larger one is counted among the answers that
    /// wait until the caller has taken it; the call of a caller that does not is reset after <see cref="GrpcServerOptions.ReplyPatience"/>.
    /// </summary>
    /// <exception cref="GrpcException">RESOURCE_EXHAUSTED: the caller's connection has as many replies waiting as it may; this one is dropped.</exception>
    internal ValueTask WriteOnlyReplyAsync(IMessage reply)
    {
        if (reply.CalculateSize() is var bytes and >= UnseenBytes)
        {
            return WriteSeenReplyAsync(reply, bytes);
        }

        TakeOutput();
        try
        {
            WriteMessage(reply);
        }
        finally
        {
            GiveOutputBack();
        }

        return ValueTask.CompletedTask;
    }

    private async ValueTask WriteSeenReplyAsync(IMessage reply, int bytes)
    {
        TakeOutput();
        try
        {
            using ReplyWait wait = ReplyWait.Begin(Http.Features.Get<ConnectionShare>(), _server.Options.Room, bytes);
            WriteMessage(reply);
            await FlushAsync(CancellationToken.None);
        }
        finally
        {
            GiveOutputBack();
        }

        if (_cut)
        {
            throw new IOException("The caller did not take the reply.");
        }
    }

    /// <summary>Writes a reply of a stream and sends it.</summary>
    internal async ValueTask WriteReplyAsync(IMessage reply)
    {
        CancellationToken token = CancellationToken;
        TakeOutput();
        try
        {
            WriteMessage(reply);
            await FlushAsync(token);
        }
        finally
        {
            GiveOutputBack();
        }
    }

    /// <summary>Sends what was written, by its one writer; the timer cuts a caller off that does not take it.</summary>
    internal ValueTask<FlushResult> FlushAsync(CancellationToken token)
    {
        ValueTask<FlushResult> flush = Http.Response.BodyWriter.FlushAsync(token);
        return flush.IsCompleted ? flush : WaitForFlushAsync(flush);
    }

    private async ValueTask<FlushResult> WaitForFlushAsync(ValueTask<FlushResult> flush)
    {
        Volatile.Write(ref _flushingSince, Stopwatch.GetTimestamp());
        try
        {
            if (!Streams)
            {
                WatchFlush();
            }

            return await flush;
        }
        finally
        {
            Volatile.Write(ref _flushingSince, 0);
        }
    }

    /// <summary>The request is whole and well-formed; from now on the call may have an effect.</summary>
    internal void BeginWork() => _begun = true;

    /// <summary>Makes the caller of this method the owner of the response until <see cref="GiveOutputBack"/>.</summary>
    internal void TakeOutput()
    {
        switch (Interlocked.CompareExchange(ref _output, Writing, Free))
        {
            case Writing:
                throw new InvalidOperationException("Replies are written one after the other.");
            case Ended:
                throw new OperationCanceledException("The call has ended.");
        }
    }

    /// <summary>Ends the ownership that <see cref="TakeOutput"/> began.</summary>
    internal void GiveOutputBack() => Interlocked.CompareExchange(ref _output, Free, Writing);

    /// <summary>Puts the headers of the response in place; they leave with the first flush.</summary>
    internal void BeginResponse()
    {
        if (_responseBegun)
        {
            return;
        }

        _responseBegun = true;
        Http.Response.ContentType = GrpcProtocol.ContentType;
        if (_gzip)
        {
            Http.Response.Headers[GrpcProtocol.EncodingHeader] = GrpcProtocol.GzipEncoding;
        }

        Append(_responseHeaders, Http.Response.Headers);
    }

    private static TimeSpan Min(TimeSpan a, TimeSpan b) => a < b ? a : b;

    private static void Append(GrpcMetadata? metadata, IHeaderDictionary headers)
    {
        if (metadata is null)
        {
            return;
        }

        foreach (GrpcMetadataEntry entry in metadata)
        {
            headers.Append(entry.Name, entry.HeaderValue);
        }
    }

    private TimeSpan Left(TimeSpan time)
    {
        TimeSpan left = time - Stopwatch.GetElapsedTime(_startedAt);
        return left > TimeSpan.Zero ? left : TimeSpan.Zero;
    }

    private void WriteMessage(IMessage message)
    {
        BeginResponse();
        GrpcFraming.Write(Http.Response.BodyWriter, message, _gzip, _server.Options.MaxSendMessageBytes);
        _bodyWritten = true;
    }

    /// <summary>One header of the request; null when it was not sent. Of several, the last counts.</summary>
    public string? Header(string name) => Http.Request.Headers.TryGetValue(name, out StringValues values) && values.Count > 0 ? values[^1] : null;

    private GrpcMetadata ReadRequestHeaders()
    {
        GrpcMetadata metadata = [];
        foreach ((string name, StringValues values) in Http.Request.Headers)
        {
            foreach (string? value in values)
            {
                metadata.AddReceived(name, value ?? "");
            }
        }

        return metadata;
    }

    private void ReadProtocolHeaders()
    {
        IHeaderDictionary headers = Http.Request.Headers;
        StringValues encoding = headers[GrpcProtocol.EncodingHeader];
        if (encoding.Count > 0 && encoding.ToString() is not (GrpcProtocol.IdentityEncoding or GrpcProtocol.GzipEncoding))
        {
            Http.Response.Headers[GrpcProtocol.AcceptEncodingHeader] = GrpcProtocol.AcceptedEncodings;
            throw new GrpcException(GrpcStatusCode.Unimplemented, $"The grpc-encoding '{encoding}' is not understood; identity and gzip are.");
        }

        StringValues timeoutText = headers[GrpcProtocol.TimeoutHeader];
        if (timeoutText.Count > 0)
        {
            if (!GrpcTimeout.TryDecode(timeoutText.ToString(), out TimeSpan timeout))
            {
                throw new GrpcException(GrpcStatusCode.Internal, $"The grpc-timeout '{timeoutText}' is not at most eight digits and a unit.");
            }

            _timeout = timeout;
            if (timeout == TimeSpan.Zero)
            {
                throw new GrpcException(GrpcStatusCode.DeadlineExceeded, "The deadline passed before the call began.");
            }
        }
    }

    private CancellationTokenSource MakeCancellation()
    {
        CancellationToken stop = Streams ? _server.Options.StopToken : CancellationToken.None;
        CancellationTokenSource made = CancellationTokenSource.CreateLinkedTokenSource(Http.RequestAborted, stop);
        bool over;
        lock (_lock)
        {
            if (_cancellation is { } other)
            {
                made.Dispose();
                return other;
            }

            _cancellation = made;
            over = _forcedStatus is not null;
        }

        if (over)
        {
            made.Cancel();
        }

        // A handler that looks at its token may never give its thread back before the deadline.
        StartTimer();
        return made;
    }

    private void StartTimer()
    {
        if (NextDue() is { } due)
        {
            lock (_lock)
            {
                _timer ??= new Timer(static state => ((CallContext)state!).OnTimer(), this, due, Timeout.InfiniteTimeSpan);
            }
        }
    }

    /// <summary>Sets the timer for a reply that the connection did not take at once. The timer of a call whose end has begun is left as it is.</summary>
    private void WatchFlush()
    {
        TimeSpan due = NextDue() ?? Timeout.InfiniteTimeSpan;
        lock (_lock)
        {
            if (_timer is null)
            {
                _timer = new Timer(static state => ((CallContext)state!).OnTimer(), this, due, Timeout.InfiniteTimeSpan);
            }
            else if (_forcedStatus is null)
            {
                _timer.Change(due, Timeout.InfiniteTimeSpan);
            }
        }
    }

    /// <summary>When the timer has something to do: the deadline, or the end of patience with a request that does not arrive or an answer that is not taken.</summary>
    private TimeSpan? NextDue()
    {
        TimeSpan? due = _timeout is { } timeout ? Min(Left(timeout), s_longest) : null;
        TimeSpan? patience = !_handler!.RequestStreams && !Requests.OnlyTaken ? Left(_server.Options.RequestReceiveTimeout) : null;
        if (Streams)
        {
            // Waits begin and end with each message: they are looked at now and then instead of with a timer each.
            TimeSpan look = Min(_server.Options.RequestReceiveTimeout, _server.Options.ReplyPatience) / LooksPerPatience;
            patience = Min(patience ?? look, look);
        }
        else if (Volatile.Read(ref _flushingSince) is var since and > 0)
        {
            TimeSpan left = _server.Options.ReplyPatience - Stopwatch.GetElapsedTime(since);
            patience = left > TimeSpan.Zero ? left : TimeSpan.Zero;
        }

        return patience is { } first ? Min(due ?? first, first) : due;
    }

    private void OnTimer()
    {
        try
        {
            EndIfOverdue();
        }
        catch (Exception e)
        {
            // A connection that breaks at this moment, or a callback of the handler that fails, must not reach the timer: it would end the process.
            GrpcLog.CallLost(_server.Logger, Method, e);
        }
    }

    private void EndIfOverdue()
    {
        CancellationTokenSource? cancellation;
        lock (_lock)
        {
            if (_finished)
            {
                return;
            }

            long since = Volatile.Read(ref _flushingSince);
            if (_cut)
            {
                if (since > 0)
                {
                    // Not even the reset has left: the connection takes nothing, so resets free no memory.
                    Http.Features.Get<ConnectionShare>()?.Close("The client takes nothing, not even the end of its calls.");
                }

                return;
            }

            if (_forcedStatus is not null || (since > 0 && Stopwatch.GetElapsedTime(since) >= _server.Options.ReplyPatience))
            {
                // Neither a status nor anything else would reach a caller that does not read.
                _cut = true;
                Reset(ResetCancel);
                _timer!.Change(_server.Options.ResetPatience, Timeout.InfiniteTimeSpan);
                return;
            }

            if (OverdueStatus() is not { } status)
            {
                _timer!.Change(NextDue() ?? Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan);
                return;
            }

            _forcedStatus = status;
            cancellation = _cancellation;
            if (Interlocked.CompareExchange(ref _output, Ended, Free) == Free)
            {
                WriteStatus(status, null);
                _forcedEnd = Http.Response.CompleteAsync();
            }
            else
            {
                _timer!.Change(_server.Options.StreamEndGrace, Timeout.InfiniteTimeSpan);
            }

            Requests.CancelPendingRead();
        }

        // Last, and outside the lock: the handler may run to its end inside this call.
        Cancel(cancellation);
    }

    private GrpcStatus? OverdueStatus()
    {
        if (TimeLeft == TimeSpan.Zero)
        {
            return new GrpcStatus(GrpcStatusCode.DeadlineExceeded, "The deadline passed.");
        }

        TimeSpan patience = _server.Options.RequestReceiveTimeout;
        bool overdue = _handler!.RequestStreams ? Requests.WaitsLongerThan(patience) : !Requests.OnlyTaken && Left(patience) == TimeSpan.Zero;
        return overdue
            ? new GrpcStatus(GrpcStatusCode.DeadlineExceeded, $"The request was not complete after {patience.TotalSeconds.ToString(CultureInfo.InvariantCulture)} s.")
            : null;
    }

    /// <summary>Counts a call that has no end of its own against its connection; null when it is none, or nobody counts.</summary>
    private ConnectionShare? OpenStream()
    {
        int most = _server.Options.StreamsPerConnectionMax;
        ConnectionShare? share = Streams ? Http.Features.Get<ConnectionShare>() : null;
        return share?.TryOpenStream(most) ?? true
            ? share
            : throw new GrpcException(GrpcStatusCode.ResourceExhausted, $"The connection has {most} open streams, its limit; this one was not opened. End others first, or use another connection.");
    }

    private static void Cancel(CancellationTokenSource? cancellation)
    {
        try
        {
            cancellation?.Cancel();
        }
        catch (ObjectDisposedException)
        {
            // The handler was faster; the call is over.
        }
    }

    private void EndWith(Exception failure)
    {
        switch (failure)
        {
            case GrpcException known:
                End(known.Status, known.Trailers);
                break;
            case OperationCanceledException when _forcedStatus is { } forced:
                End(forced, null);
                break;
            case OperationCanceledException when Streams && _server.Options.StopToken.IsCancellationRequested:
                End(new GrpcStatus(GrpcStatusCode.Unavailable, "The server is stopping."), null);
                break;
            case not null when Http.RequestAborted.IsCancellationRequested:
            // The web server says so of a stream that its client has reset, maybe before it cancels the token; handlers use no files.
            case IOException and not BadHttpRequestException:
                GrpcLog.CallLost(_server.Logger, Method, failure);
                _server.CountReset(Http);
                End(new GrpcStatus(GrpcStatusCode.Cancelled, "The caller went away."), null);
                break;
            case BadHttpRequestException bad:
                End(new GrpcStatus(GrpcStatusCode.Internal, bad.Message), null);
                break;
            default:
                GrpcLog.HandlerFailed(_server.Logger, Method, failure!);
                End(new GrpcStatus(GrpcStatusCode.Unknown, "The server failed to carry out the call; its log says why."), null);
                break;
        }
    }

    private void End(GrpcStatus status, GrpcMetadata? trailers)
    {
        switch (Interlocked.CompareExchange(ref _output, Ended, Free))
        {
            case Free:
                WriteStatus(status, trailers);
                break;
            case Writing:
                // The handler went away from a write that still runs: nothing sound can follow it.
                Reset(ResetInternalError);
                break;
        }
    }

    private void WriteStatus(GrpcStatus status, GrpcMetadata? trailers)
    {
        IHeaderDictionary target = Http.Response.Headers;
        if (_bodyWritten || Http.Response.HasStarted)
        {
            target = Http.Features.GetRequiredFeature<IHttpResponseTrailersFeature>().Trailers;
        }
        else
        {
            BeginResponse();
        }

        target[GrpcProtocol.StatusHeader] = GrpcStatusText.Of(status.Code);
        if (status.Message.Length > 0)
        {
            target[GrpcProtocol.MessageHeader] = GrpcMessageText.Encode(status.Message);
        }

        Append(_responseTrailers, target);
        Append(trailers, target);
        if (status.Code != GrpcStatusCode.OK && !Streams && _server.Options.Outcome is { } outcome && !target.ContainsKey(outcome.Name))
        {
            target[outcome.Name] = _begun ? outcome.Begun : outcome.NotBegun;
        }
    }

    private void Reset(int errorCode) => Http.Features.Get<IHttpResetFeature>()?.Reset(errorCode);

    /// <summary>Takes the request away from the timer; waits for an end that the timer has begun.</summary>
    private async ValueTask FinishAsync()
    {
        if (_timer is not null)
        {
            lock (_lock)
            {
                _finished = true;
            }

            await _timer.DisposeAsync();
            await _forcedEnd;
        }

        _cancellation?.Dispose();
    }
}
