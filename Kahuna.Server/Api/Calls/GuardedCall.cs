using System.Diagnostics;
using System.IO.Pipelines;
using Google.Protobuf.Reflection;
using Grpc.Core;
using Kahuna.Server.Api.Json;
using Microsoft.AspNetCore.Http.Features;

namespace Kahuna.Server.Api.Calls;

/// <summary>
/// What a call may take of the node, and how long: its request, its deadline, the reply that its caller does not take. A feature of the request, made by the
/// <see cref="CallGuard"/>; the handler uses it from one thread at a time, while the timer looks at it from another.
/// </summary>
/// <remarks>
/// The gRPC package ends calls at their deadline. The timer here ends what the package would wait for: a request that does not arrive, by cancelling the read of it, and a
/// reply that is not taken, by resetting the call, and the connection if even that does not leave. It touches the request only under <see cref="_lock"/> and before
/// <see cref="_finished"/>, because requests are reused.
/// </remarks>
internal sealed class GuardedCall
{
    /// <summary>HTTP/2 error code (RFC 9113, section 7).</summary>
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

    private readonly CallLimits _limits;
    private readonly ILogger _log;
    private readonly long _startedAt = Stopwatch.GetTimestamp();
    private readonly Lock _lock = new();
    private readonly CancellationToken _aborted;
    private CancellationTokenSource? _end;
    private ConnectionShare? _openStream;
    private TimeSpan? _timeout;
    private Timer? _timer;
    private ReplyWait _reply;
    private bool _hasReply;
    private bool _finished;
    private volatile bool _begun;
    private volatile bool _cut;
    private long _flushingSince;

    public GuardedCall(HttpContext http, CallLimits limits, MethodType kind, MessageDescriptor? request, ILogger log, bool isJson = false)
    {
        Http = http;
        IsJson = isJson;
        _limits = limits;
        _log = log;
        Streams = kind != MethodType.Unary;
        _aborted = http.RequestAborted;
        if (Streams)
        {
            // Streams have no end of their own: the stop of the node is as good as their caller's.
            _end = CancellationTokenSource.CreateLinkedTokenSource(_aborted, limits.Stop);
            http.RequestAborted = _end.Token;
        }

        Body = new RequestBody(http.Request, limits, isOnly: kind is MethodType.Unary or MethodType.ServerStreaming, request);
        http.Features.Set(this);
        if (!isJson)
        {
            http.Features.Set<IRequestBodyPipeFeature>(Body);
        }
    }

    /// <summary>The request and response below.</summary>
    public HttpContext Http { get; }

    /// <summary>The messages of the request.</summary>
    public RequestBody Body { get; }

    /// <summary>The call comes as JSON over HTTP.</summary>
    public bool IsJson { get; }

    /// <summary>How the call ended, if it is one of JSON and ended with an error.</summary>
    public RpcException? Failure { get; private set; }

    /// <summary>The call has no end of its own.</summary>
    public bool Streams { get; }

    /// <summary>What is left until the deadline, by a clock that nobody sets; null when the caller set none, zero when it has passed.</summary>
    public TimeSpan? TimeLeft
    {
        get
        {
            TimeSpan? left = _timeout - Stopwatch.GetElapsedTime(_startedAt);
            return left < TimeSpan.Zero ? TimeSpan.Zero : left;
        }
    }

    /// <summary>The caller has gone, or was cut off.</summary>
    public bool IsLost => _cut || Loss is not null || _aborted.IsCancellationRequested;

    /// <summary>By what the handler learned that its caller has gone; null: by nothing.</summary>
    public Exception? Loss { get; private set; }

    /// <summary>The request is whole and well-formed: the call may have an effect.</summary>
    public bool Begun => _begun;

    /// <summary>The call is a stream, and the node stops.</summary>
    public bool IsStopping => Streams && _limits.Stop.IsCancellationRequested && !_aborted.IsCancellationRequested;

    /// <summary>The guard of a call that a service carries out.</summary>
    public static GuardedCall Of(ServerCallContext context) => context.GetHttpContext().Features.GetRequiredFeature<GuardedCall>();

    /// <summary>Reads what the headers say of the call, and counts it against its connection if it is a stream. What is wrong is the call's end.</summary>
    public void Open()
    {
        try
        {
            _timeout = CallHeaders.ReadTimeout(Http.Request.Headers);
            CallHeaders.CheckEncoding(Http);
            OpenStream();
            if (IsJson && _timeout is { } timeout)
            {
                // The gRPC package knows of no deadline here.
                _end = CancellationTokenSource.CreateLinkedTokenSource(_aborted);
                _end.CancelAfter(timeout < s_longest ? timeout : s_longest);
                Http.RequestAborted = _end.Token;
            }
        }
        catch (RpcException refusal)
        {
            Body.Refusal = refusal;
        }
    }

    /// <summary>The handler is about to begin.</summary>
    /// <exception cref="RpcException">The call was refused.</exception>
    public void Begin()
    {
        ThrowIfRefused();
        _begun = true;
    }

    /// <summary>Throws what <see cref="Open"/> found wrong.</summary>
    public void ThrowIfRefused()
    {
        if (Body.Refusal is { } refusal)
        {
            throw refusal;
        }
    }

    /// <summary>Counts the reply of a call that has one among the answers that wait, if its caller must have taken it before the call is over.</summary>
    /// <exception cref="RpcException">RESOURCE_EXHAUSTED: the caller's connection has as many replies waiting as it may; this one is dropped.</exception>
    public void CountReply(int bytes)
    {
        if (bytes >= UnseenBytes)
        {
            _reply = ReplyWait.Begin(Http.Features.Get<ConnectionShare>(), _limits.Room, bytes);
            _hasReply = true;
            if (IsJson)
            {
                // The gRPC package sends it by itself.
                BeginFlush();
            }
        }
    }

    /// <summary>Waits until the connection has taken a reply that counts.</summary>
    public async ValueTask SeeReplyAsync()
    {
        if (_hasReply && !_aborted.IsCancellationRequested)
        {
            await FlushAsync().ConfigureAwait(false);
        }
    }

    /// <summary>Sends what was written, by its one writer; the timer cuts a caller off that does not take it.</summary>
    public ValueTask<FlushResult> FlushAsync()
    {
        ValueTask<FlushResult> flush = Http.Response.BodyWriter.FlushAsync();
        return flush.IsCompleted ? flush : WaitForFlushAsync(flush);
    }

    /// <summary>Something is about to be sent that its caller may not take.</summary>
    public void BeginFlush()
    {
        Volatile.Write(ref _flushingSince, Stopwatch.GetTimestamp());
        if (!Streams)
        {
            Watch();
        }
    }

    /// <summary>It was taken.</summary>
    public void EndFlush() => Volatile.Write(ref _flushingSince, 0);

    /// <summary>The status of a call that has ended with an exception.</summary>
    public RpcException Fail(Exception failure)
    {
        RpcException error = failure as RpcException ?? Translate(failure);
        if (!IsJson)
        {
            return error;
        }

        Failure = error;
        return JsonError.Detailed(error, _begun);
    }

    /// <summary>What the end of a handler by an exception that is no status means to the caller. The log has the rest.</summary>
    private RpcException Translate(Exception failure)
    {
        switch (failure)
        {
            case OperationCanceledException when Body.IsOverdue:
                return Body.Overdue();
            case OperationCanceledException when IsStopping:
                return Stopping();
            case OperationCanceledException when _timeout is not null && !_aborted.IsCancellationRequested:
                return new RpcException(new Status(StatusCode.DeadlineExceeded, "The deadline passed."));
            case BadHttpRequestException bad:
                return new RpcException(new Status(StatusCode.Internal, bad.Message));
            // The web server says so of a stream that its client has reset, maybe before it cancels the token; handlers use no files.
            case not null when failure is IOException || IsLost:
                Loss = failure;
                return new RpcException(new Status(StatusCode.Cancelled, "The caller went away."));
            default:
                CallLog.HandlerFailed(_log, Http.Request.Path, failure!);
                return new RpcException(new Status(StatusCode.Unknown, "The server failed to carry out the call; its log says why."));
        }
    }

    /// <summary>The status of a stream that the stop of the node ends.</summary>
    public static RpcException Stopping() => new(new Status(StatusCode.Unavailable, "The server is stopping."));

    /// <summary>Sets the timer for what a call waits for; one that waits for nothing but its handler needs none.</summary>
    public void Watch()
    {
        if (NextDue() is { } due)
        {
            lock (_lock)
            {
                if (_timer is null)
                {
                    _timer = new Timer(static state => ((GuardedCall)state!).OnTimer(), this, due, Timeout.InfiniteTimeSpan);
                }
                else if (!_cut)
                {
                    _timer.Change(due, Timeout.InfiniteTimeSpan);
                }
            }
        }
    }

    /// <summary>The call is over: takes the request away from the timer and gives back what the call had.</summary>
    public async ValueTask CloseAsync()
    {
        Body.End();
        _reply.Dispose();
        _openStream?.CloseStream();
        if (_timer is not null)
        {
            lock (_lock)
            {
                _finished = true;
            }

            await _timer.DisposeAsync().ConfigureAwait(false);
        }

        _end?.Dispose();
    }

    /// <summary>A stream that the stop of the node has ended, before its handler said how, is UNAVAILABLE.</summary>
    public void TellStop()
    {
        if (IsStopping && Http.Response.HasStarted && Http.Features.Get<IHttpResponseTrailersFeature>()?.Trailers is { IsReadOnly: false } trailers && trailers.GrpcStatus.Count == 0)
        {
            trailers.GrpcStatus = ((int)StatusCode.Unavailable).ToString(System.Globalization.CultureInfo.InvariantCulture);
        }
    }

    private async ValueTask<FlushResult> WaitForFlushAsync(ValueTask<FlushResult> flush)
    {
        BeginFlush();
        try
        {
            return await flush.ConfigureAwait(false);
        }
        finally
        {
            EndFlush();
        }
    }

    private void OpenStream()
    {
        ConnectionShare? share = Streams ? Http.Features.Get<ConnectionShare>() : null;
        if (share is not null && !share.TryOpenStream(_limits.StreamsPerConnectionMax))
        {
            throw new RpcException(new Status(
                StatusCode.ResourceExhausted,
                $"The connection has {_limits.StreamsPerConnectionMax} open streams, its limit; this one was not opened. End others first, or use another connection."));
        }

        _openStream = share;
    }

    /// <summary>When the timer has something to do: the end of patience with a request that does not arrive or an answer that is not taken.</summary>
    private TimeSpan? NextDue()
    {
        if (Streams)
        {
            // Waits begin and end with each message: they are looked at now and then instead of with a timer each.
            return Min(_limits.RequestPatience, _limits.ReplyPatience) / LooksPerPatience;
        }

        return Volatile.Read(ref _flushingSince) is var since and > 0
            ? NotNegative(_limits.ReplyPatience - Stopwatch.GetElapsedTime(since))
            : Body.PatienceLeft;
    }

    private void OnTimer()
    {
        try
        {
            EndIfOverdue();
        }
        catch (Exception e)
        {
            // A connection that breaks at this moment must not reach the timer: it would end the process.
            CallLog.CallLost(_log, Http.Request.Path, e);
        }
    }

    private void EndIfOverdue()
    {
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

            if (since > 0 && Stopwatch.GetElapsedTime(since) >= _limits.ReplyPatience)
            {
                // Neither a status nor anything else would reach a caller that does not read.
                _cut = true;
                _timer!.Change(_limits.ResetPatience, Timeout.InfiniteTimeSpan);
                Cut();
                return;
            }

            if (Body.PatienceLeft == TimeSpan.Zero)
            {
                Body.GiveUp();
                return;
            }

            _timer!.Change(NextDue() ?? Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan);
        }
    }

    private void Cut()
    {
        if (Http.Features.Get<IHttpResetFeature>() is { } reset)
        {
            reset.Reset(ResetCancel);
        }
        else
        {
            Http.Abort();
        }
    }

    private static TimeSpan Min(TimeSpan a, TimeSpan b) => a < b ? a : b;

    private static TimeSpan NotNegative(TimeSpan time) => time > TimeSpan.Zero ? time : TimeSpan.Zero;
}
