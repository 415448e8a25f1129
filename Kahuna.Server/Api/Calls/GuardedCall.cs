using System.Diagnostics;
using System.IO.Pipelines;
using Google.Protobuf.Reflection;
using Grpc.Core;
using Kahuna.Server.Api.Json;
using Microsoft.AspNetCore.Http.Features;

namespace Kahuna.Server.Api.Calls;

/// <summary>
/// Limits what a call takes of the node, and for how long: its request, its deadline, its unread reply. A feature of
/// the request, created by the <see cref="CallGuard"/>. One thread at a time uses it; the timer runs on another.
/// </summary>
/// <remarks>
/// The gRPC package ends calls at their deadline. The <see cref="CallTimer"/> ends what the package would wait for
/// without limit.
/// </remarks>
internal sealed class GuardedCall
{
    /// <summary>
    /// Replies of at least this size are tracked until the connection has taken them. The web server buffers 4 KiB per
    /// response without reporting whether the client reads. A thousand calls of one connection keep at most 4 MB in
    /// smaller replies.
    /// </summary>
    private const int TrackedReplyBytes = 4_000;

    /// <summary>Longest time that a timer accepts, about 24 days.</summary>
    private static readonly TimeSpan s_longest = TimeSpan.FromMilliseconds(int.MaxValue);

    private readonly CallLimits _limits;
    private readonly ILogger _log;
    private readonly long _startedAt = Stopwatch.GetTimestamp();
    private readonly CancellationToken _aborted;
    private readonly CallTimer _timer;
    private CancellationTokenSource? _end;
    private ConnectionQuota? _openStream;
    private TimeSpan? _timeout;
    private ReplyReservation _reply;
    private bool _hasReply;
    private volatile bool _begun;

    public GuardedCall(
        HttpContext http,
        CallLimits limits,
        MethodType kind,
        MessageDescriptor? request,
        ILogger log,
        bool isJson = false)
    {
        Http = http;
        IsJson = isJson;
        _limits = limits;
        _log = log;
        Streams = kind != MethodType.Unary;
        _aborted = http.RequestAborted;
        if (Streams)
        {
            // Streams end when the node stops, as if their caller had cancelled them.
            _end = CancellationTokenSource.CreateLinkedTokenSource(_aborted, limits.Stop);
            http.RequestAborted = _end.Token;
        }

        Body = new RequestBody(
            http.Request, limits, isOnly: kind is MethodType.Unary or MethodType.ServerStreaming, request);
        _timer = new CallTimer(http, Body, limits, Streams, log);
        http.Features.Set(this);
        if (!isJson)
        {
            http.Features.Set<IRequestBodyPipeFeature>(Body);
        }
    }

    /// <summary>The underlying request and response.</summary>
    public HttpContext Http { get; }

    /// <summary>The messages of the request.</summary>
    public RequestBody Body { get; }

    /// <summary>Whether the call is JSON over HTTP.</summary>
    public bool IsJson { get; }

    /// <summary>The error of a JSON call that failed; else null.</summary>
    public RpcException? Failure { get; private set; }

    /// <summary>Whether the call is a stream.</summary>
    public bool Streams { get; }

    /// <summary>
    /// Time until the deadline on the monotonic clock; null without a deadline, zero when it has passed.
    /// </summary>
    public TimeSpan? TimeLeft
    {
        get
        {
            TimeSpan? left = _timeout - Stopwatch.GetElapsedTime(_startedAt);
            return left < TimeSpan.Zero ? TimeSpan.Zero : left;
        }
    }

    /// <summary>Whether the caller has disconnected or was reset.</summary>
    public bool IsLost => _timer.HasReset || Loss is not null || _aborted.IsCancellationRequested;

    /// <summary>The exception by which the handler noticed that the caller is gone; null: none.</summary>
    public Exception? Loss { get; private set; }

    /// <summary>Whether the handler has started, so that the call may have an effect.</summary>
    public bool Begun => _begun;

    /// <summary>Whether the call is a stream that ends because the node stops.</summary>
    public bool IsStopping => Streams && _limits.Stop.IsCancellationRequested && !_aborted.IsCancellationRequested;

    /// <summary>The guard of a service's call.</summary>
    public static GuardedCall Of(ServerCallContext context) =>
        context.GetHttpContext().Features.GetRequiredFeature<GuardedCall>();

    /// <summary>
    /// Reads the headers and counts a stream against its connection. Errors are kept and end the call.
    /// </summary>
    public void Open()
    {
        try
        {
            _timeout = CallHeaders.ReadTimeout(Http.Request.Headers);
            CallHeaders.CheckEncoding(Http);
            OpenStream();
            if (IsJson && _timeout is { } timeout)
            {
                // The gRPC package does not apply the deadline of JSON calls.
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

    /// <summary>Marks the handler as started.</summary>
    /// <exception cref="RpcException">The call was refused.</exception>
    public void Begin()
    {
        ThrowIfRefused();
        _begun = true;
    }

    /// <summary>Throws the error that <see cref="Open"/> kept.</summary>
    public void ThrowIfRefused()
    {
        if (Body.Refusal is { } refusal)
        {
            throw refusal;
        }
    }

    /// <summary>Counts the reply of a unary call as unread if it is large enough to be tracked.</summary>
    /// <exception cref="RpcException">RESOURCE_EXHAUSTED: the connection has its maximum of unread replies; this one is
    /// dropped.</exception>
    public void CountReply(int bytes)
    {
        if (bytes >= TrackedReplyBytes)
        {
            _reply = ReplyReservation.Begin(Http.Features.Get<ConnectionQuota>(), _limits.Room, bytes);
            _hasReply = true;
            if (IsJson)
            {
                // The gRPC package flushes JSON replies itself.
                BeginFlush();
            }
        }
    }

    /// <summary>Waits until the connection has taken a tracked reply.</summary>
    public async ValueTask AwaitReplyAsync()
    {
        if (_hasReply && !_aborted.IsCancellationRequested)
        {
            await FlushAsync().ConfigureAwait(false);
        }
    }

    /// <summary>
    /// Flushes the response, from its one writer. The timer resets the call if the caller does not read.
    /// </summary>
    public ValueTask<FlushResult> FlushAsync()
    {
        ValueTask<FlushResult> flush = Http.Response.BodyWriter.FlushAsync();
        return flush.IsCompleted ? flush : WaitForFlushAsync(flush);
    }

    /// <summary>Marks the start of a flush that may block.</summary>
    public void BeginFlush() => _timer.BeginFlush();

    /// <summary>Marks the end of the flush.</summary>
    public void EndFlush() => _timer.EndFlush();

    /// <summary>Maps the exception that ended a call to a status.</summary>
    public RpcException ToError(Exception failure)
    {
        RpcException error = failure as RpcException ?? Translate(failure);
        if (!IsJson)
        {
            return error;
        }

        Failure = error;
        return JsonError.Detailed(error, _begun);
    }

    /// <summary>Maps an exception other than a status, for the caller. The log gets the details.</summary>
    private RpcException Translate(Exception failure)
    {
        switch (failure)
        {
            case OperationCanceledException when Body.IsTimedOut:
                return Body.TimedOut();
            case OperationCanceledException when IsStopping:
                return Stopping();
            case OperationCanceledException when _timeout is not null && !_aborted.IsCancellationRequested:
                return new RpcException(new Status(StatusCode.DeadlineExceeded, "The deadline passed."));
            case BadHttpRequestException bad:
                return new RpcException(new Status(StatusCode.Internal, bad.Message));
            // The web server throws this for a stream that the client reset, possibly before it cancels the token.
            // Handlers use no files.
            case not null when failure is IOException || IsLost:
                Loss = failure;
                return new RpcException(new Status(StatusCode.Cancelled, "The caller has disconnected."));
            default:
                CallLog.HandlerFailed(_log, Http.Request.Path, failure!);
                return new RpcException(
                    new Status(StatusCode.Unknown, "The server failed to execute the call; its log has the reason."));
        }
    }

    /// <summary>The status of streams that end because the node stops.</summary>
    public static RpcException Stopping() => new(new Status(StatusCode.Unavailable, "The server is stopping."));

    /// <summary>Starts or moves the timer. A call that waits only for its handler needs none.</summary>
    public void StartTimer() => _timer.Start();

    /// <summary>Ends the guard: detaches the timer from the request and releases what the call holds.</summary>
    public async ValueTask CloseAsync()
    {
        Body.End();
        _reply.Dispose();
        _openStream?.CloseStream();
        await _timer.DisposeAsync().ConfigureAwait(false);
        _end?.Dispose();
    }

    /// <summary>Sets UNAVAILABLE on a stream that ended because the node stops, if the handler set no status.</summary>
    public void SetStopStatus()
    {
        if (IsStopping
            && Http.Response.HasStarted
            && Http.Features.Get<IHttpResponseTrailersFeature>()?.Trailers is { IsReadOnly: false } trailers
            && trailers.GrpcStatus.Count == 0)
        {
            trailers.GrpcStatus = ((int)StatusCode.Unavailable).ToString(
                System.Globalization.CultureInfo.InvariantCulture);
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
        ConnectionQuota? quota = Streams ? Http.Features.Get<ConnectionQuota>() : null;
        if (quota is not null && !quota.TryOpenStream(_limits.StreamsPerConnectionMax))
        {
            throw new RpcException(new Status(
                StatusCode.ResourceExhausted,
                $"The connection has {_limits.StreamsPerConnectionMax} open streams, its limit; this one was not "
                    + $"opened. End others first, or use another connection."));
        }

        _openStream = quota;
    }
}
