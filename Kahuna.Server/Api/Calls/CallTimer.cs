using System.Diagnostics;
using Microsoft.AspNetCore.Http.Features;

namespace Kahuna.Server.Api.Calls;

/// <summary>
/// The timeouts of one call. Cancels the read of a request that does not arrive. Resets a call whose reply is not read,
/// and closes the connection if not even the reset is sent. Owned by a <see cref="GuardedCall"/>, one thread at a time;
/// the timer runs on another.
/// </summary>
/// <remarks>
/// It touches the request only under <see cref="_lock"/> and before <see cref="_finished"/>, because the web server
/// reuses requests.
/// </remarks>
/// <param name="http">The request and response.</param>
/// <param name="body">The messages of the request.</param>
/// <param name="limits">The limits of a call.</param>
/// <param name="isStream">Whether the call is a stream.</param>
/// <param name="log">Receives the errors of breaking connections.</param>
internal sealed class CallTimer(HttpContext http, RequestBody body, CallLimits limits, bool isStream, ILogger log)
    : IAsyncDisposable
{
    /// <summary>HTTP/2 error code CANCEL (RFC 9113, section 7).</summary>
    private const int ResetCancel = 8;

    /// <summary>
    /// Checks of a stream per timeout: a stalled stream is ended at most a quarter of the timeout late.
    /// </summary>
    private const int ChecksPerTimeout = 4;

    private readonly Lock _lock = new();
    private Timer? _timer;
    private bool _finished;
    private volatile bool _hasReset;
    private long _flushingSince;

    /// <summary>Whether the call was reset because its reply was not read.</summary>
    public bool HasReset => _hasReset;

    /// <summary>Marks the start of a flush that may block.</summary>
    public void BeginFlush()
    {
        Volatile.Write(ref _flushingSince, Stopwatch.GetTimestamp());
        if (!isStream)
        {
            Start();
        }
    }

    /// <summary>Marks the end of the flush.</summary>
    public void EndFlush() => Volatile.Write(ref _flushingSince, 0);

    /// <summary>Starts or moves the timer. A call that waits only for its handler needs none.</summary>
    public void Start()
    {
        if (NextDue() is { } due)
        {
            lock (_lock)
            {
                if (_timer is null)
                {
                    _timer = new Timer(
                        static state => ((CallTimer)state!).OnTimer(), this, due, Timeout.InfiniteTimeSpan);
                }
                else if (!_hasReset)
                {
                    _timer.Change(due, Timeout.InfiniteTimeSpan);
                }
            }
        }
    }

    /// <summary>Detaches the timer from the request.</summary>
    public async ValueTask DisposeAsync()
    {
        if (_timer is not null)
        {
            lock (_lock)
            {
                _finished = true;
            }

            await _timer.DisposeAsync().ConfigureAwait(false);
        }
    }

    /// <summary>
    /// Time until the timer must run: the timeout of a request that does not arrive or of a reply that is not read.
    /// </summary>
    private TimeSpan? NextDue()
    {
        if (isStream)
        {
            // Waits begin and end with each message, so they are checked periodically instead of by a timer each.
            return Min(limits.RequestTimeout, limits.ReplyTimeout) / ChecksPerTimeout;
        }

        return Volatile.Read(ref _flushingSince) is var since and > 0
            ? NotNegative(limits.ReplyTimeout - Stopwatch.GetElapsedTime(since))
            : body.TimeoutLeft;
    }

    private void OnTimer()
    {
        try
        {
            EndIfTimedOut();
        }
        catch (Exception e)
        {
            // An exception of a breaking connection must not leave the timer callback: it would end the process.
            CallLog.CallLost(log, http.Request.Path, e);
        }
    }

    private void EndIfTimedOut()
    {
        lock (_lock)
        {
            if (_finished)
            {
                return;
            }

            long since = Volatile.Read(ref _flushingSince);
            if (_hasReset)
            {
                if (since > 0)
                {
                    // Not even the reset was sent: the connection accepts nothing, so that resets free no memory.
                    http.Features.Get<ConnectionQuota>()
                        ?.Close("The client reads nothing, not even the resets of its calls.");
                }

                return;
            }

            if (since > 0 && Stopwatch.GetElapsedTime(since) >= limits.ReplyTimeout)
            {
                // No status would reach a caller that does not read.
                _hasReset = true;
                _timer!.Change(limits.ResetTimeout, Timeout.InfiniteTimeSpan);
                Reset();
                return;
            }

            if (body.TimeoutLeft == TimeSpan.Zero)
            {
                body.TimeOut();
                return;
            }

            _timer!.Change(NextDue() ?? Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan);
        }
    }

    private void Reset()
    {
        if (http.Features.Get<IHttpResetFeature>() is { } reset)
        {
            reset.Reset(ResetCancel);
        }
        else
        {
            http.Abort();
        }
    }

    private static TimeSpan Min(TimeSpan a, TimeSpan b) => a < b ? a : b;

    private static TimeSpan NotNegative(TimeSpan time) => time > TimeSpan.Zero ? time : TimeSpan.Zero;
}
