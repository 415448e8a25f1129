using Kahuna.Client.Connection;
using Kahuna.Client.Connection.Access;
using Kahuna.Client.Outcomes;
using Microsoft.Extensions.Logging;

namespace Kahuna.Client.Watches;

/// <summary>
/// Keeps one stream of watches to one node while there are watches. Any node serves them, so that followers share the
/// load. It moves on when the node stops, is silent, falls behind, or has lost what another one may have. Owned by the
/// <see cref="ClientWatches"/>; runs one loop, any thread calls it.
/// </summary>
internal sealed class WatchLink : IWatchStreamOwner
{
    /// <summary>Nodes tell their progress every second; five seconds without are not by chance.</summary>
    private const int SilencePerPatience = 5;

    /// <summary>A node that is further behind than this is left for another one.</summary>
    private static readonly TimeSpan s_behindMax = TimeSpan.FromSeconds(5);

    /// <summary>Another node may be behind as well: it is tried this often.</summary>
    private static readonly TimeSpan s_stayMin = TimeSpan.FromSeconds(30);

    /// <summary>How long a stream without watches stays open.</summary>
    private static readonly TimeSpan s_idleMax = TimeSpan.FromSeconds(10);

    /// <summary>How often the stream is looked at.</summary>
    private static readonly TimeSpan s_look = TimeSpan.FromMilliseconds(500);

    private readonly Lock _lock = new();
    private readonly ClusterConnection _connection;
    private readonly WatchBook _book;
    private readonly ConnectionSettings _settings;
    private readonly ConnectionPorts _ports;
    private readonly ILogger _logger;
    private readonly DetachedLoops _loops;
    private readonly ConnectionClock _clock;
    private readonly Backoff _backoff;
    private readonly Random _random;
    private readonly CancellationTokenSource _stop = new();

    /// <summary>Nodes that have lost changes which a watch needs; they are asked last. Of the loop.</summary>
    private readonly HashSet<Uri> _lacking = [];

    /// <summary>Nodes that do not let the client in, one after the other. Of the loop.</summary>
    private readonly HashSet<Uri> _refusing = [];

    /// <summary>Why the last stream ended, if because of who the client is. Of the loop.</summary>
    private AccessRefusal? _refusal;

    /// <summary>The version of the credentials of the last stream. Of the loop.</summary>
    private int _credentials;

    /// <summary>Streams in a row that did not last. Of the loop; kept while it does not run.</summary>
    private int _failures;
    private volatile WatchStream? _stream;
    private volatile string? _lastFailure;
    private Task _loop = Task.CompletedTask;
    private bool _isRunning;
    private bool _isStopped;
    private long _idleSince;

    public WatchLink(
        ClusterConnection connection,
        WatchBook book,
        ConnectionSettings settings,
        ConnectionPorts ports,
        ILogger logger)
    {
        _connection = connection;
        _book = book;
        _settings = settings;
        _ports = ports;
        _logger = logger;
        _loops = new DetachedLoops(ports.Context);
        _clock = new ConnectionClock(ports.Time);
        _backoff = new Backoff(settings.BackoffMin, settings.BackoffMax, ports.Seed);
        _random = new Random(ports.Seed);
    }

    /// <summary>Why the last stream ended, or could not be opened; null before.</summary>
    public string? LastFailure => _lastFailure;

    private bool Captures => _ports.Context is not null;

    /// <summary>There are watches to be carried. False: the client is disposed.</summary>
    public bool TryCarry()
    {
        lock (_lock)
        {
            if (_isStopped)
            {
                return false;
            }

            if (!_isRunning)
            {
                _isRunning = true;
                _loop = _loops.Start(RunAsync);
            }
        }

        OnRequests();
        return true;
    }

    /// <summary>The book has requests.</summary>
    public void OnRequests() => _stream?.Wake();

    /// <summary>Ends the loop and all watches; the task completes with the loop.</summary>
    public Task StopAsync()
    {
        Task loop;
        lock (_lock)
        {
            _isStopped = true;
            loop = _loop;
        }

        _book.EndAll(static () => OperationErrors.Disposed(mayHaveHappened: false));
        _stop.Cancel();
        _stream?.Abort("the client was disposed");
        return loop;
    }

    /// <inheritdoc/>
    public void OnLacking(WatchStream stream)
    {
        if (_clock.Now - stream.OpenedAt > _clock.Of(s_stayMin))
        {
            // What the others lacked then says nothing of what is needed now.
            _lacking.Clear();
        }

        _lacking.Add(stream.Endpoint);
    }

    private async Task RunAsync()
    {
        Uri? left = null;
        while (IsNeeded())
        {
            if (await ChooseAsync(left).ConfigureAwait(Captures) is not { } endpoint)
            {
                await PauseAsync(_backoff.After(++_failures)).ConfigureAwait(Captures);
                continue;
            }

            long begun = _clock.Now;
            _refusal = null;
            string reason = await ConnectOnceAsync(endpoint).ConfigureAwait(Captures);
            _book.OnStreamEnded();
            left = endpoint;
            if (_stop.IsCancellationRequested)
            {
                continue;
            }

            bool hasLasted = _clock.Now - begun > _clock.Of(_settings.BackoffMax);
            EndWhenRefused(endpoint, hasLasted);

            if (reason != _lastFailure)
            {
                WatchLog.Moves(_logger, endpoint, reason);
            }

            _lastFailure = reason;
            _failures = hasLasted ? 0 : _failures + 1;
            if (_failures > 1)
            {
                await PauseAsync(_backoff.After(_failures - 1)).ConfigureAwait(Captures);
            }
        }
    }

    /// <summary>
    /// A node may not know yet what the others do. When none lets the client in, all watches end; the next one tries
    /// again.
    /// </summary>
    private void EndWhenRefused(Uri endpoint, bool hasLasted)
    {
        if (_refusal is not { } refusal)
        {
            _refusing.Clear();
            return;
        }

        if (refusal.IsUnauthenticated && _connection.Links.Authorization.Refuse(_credentials, hasLasted))
        {
            return;
        }

        _refusing.Add(endpoint);
        if (Ready().All(_refusing.Contains))
        {
            _refusing.Clear();
            _book.EndAll(() => refusal.ToException(mayHaveHappened: false));
        }
    }

    /// <summary>There are watches; otherwise the loop ends, and the next watch starts it again.</summary>
    private bool IsNeeded()
    {
        lock (_lock)
        {
            _isRunning = !_isStopped && _book.Count > 0;
            return _isRunning;
        }
    }

    /// <summary>
    /// A node at random, but not the one that was just left, nor one that lacks changes, if there is another. Null: no
    /// node is known.
    /// </summary>
    private async Task<Uri?> ChooseAsync(Uri? left)
    {
        try
        {
            await _connection.DescribeAsync(_stop.Token).ConfigureAwait(Captures);
        }
        catch (KahunaException failure)
        {
            _lastFailure = failure.Message;
            if (failure.Code is KahunaErrorCode.Unauthenticated or KahunaErrorCode.PermissionDenied)
            {
                _book.EndAll(() => new KahunaException(failure.Code, failure.Outcome, failure.Message));
            }

            return null;
        }
        catch (Exception closed) when (closed is ObjectDisposedException or OperationCanceledException)
        {
            return null;
        }

        Uri[] ready = Ready();
        Uri[] best = [.. ready.Where(node => node != left && !_lacking.Contains(node))];
        if (best.Length == 0)
        {
            best = [.. ready.Where(node => !_lacking.Contains(node))];
        }

        if (best.Length == 0)
        {
            // All have been asked: what none of them has is told as lost.
            _lacking.Clear();
            _lacking.UnionWith(ready);
            best = ready;
        }

        return best.Length == 0 ? null : best[_random.Next(best.Length)];
    }

    private Uri[] Ready() =>
        [.. _connection.Routes.Links.Where(static link => link.Ready is not null).Select(static link => link.Endpoint)];

    private async Task<string> ConnectOnceAsync(Uri endpoint)
    {
        IFrameStream? bytes = null;
        using CancellationTokenSource timeout = new(_settings.ConnectTimeout, _ports.Time);
        try
        {
            using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(
                timeout.Token, _stop.Token);
            AuthorizationHeader header = await _connection.Links.Authorization.GetAsync(limit.Token)
                .ConfigureAwait(Captures);
            _credentials = header.Version;
            bytes = await _ports.Channel.OpenWatchAsync(endpoint, header.Text, limit.Token).ConfigureAwait(Captures);
            _book.TriesOthers = Ready().Any(node => node != endpoint && !_lacking.Contains(node));
            _book.OnStreamBegan(_connection.Routes.Map.ClusterTag);
            WatchStream stream = new(this, endpoint, bytes, _book, _clock, _ports.Context);
            _stream = stream;
            _idleSince = _clock.Now;
            if (_stop.IsCancellationRequested)
            {
                return "the client was disposed";
            }

            string reason = await RunAsync(stream).ConfigureAwait(Captures);
            _refusal = stream.AccessRefusal;
            return reason;
        }
        catch (Exception failure)
        {
            _refusal = AccessRefusal.Find(failure);
            return timeout.IsCancellationRequested && failure is OperationCanceledException
                ? FormattableString.Invariant($"no connection within {_settings.ConnectTimeout.TotalSeconds:0.###} s")
                : DisconnectReasons.Of(failure);
        }
        finally
        {
            _stream = null;
            if (bytes is not null)
            {
                await bytes.DisposeAsync().ConfigureAwait(Captures);
            }
        }
    }

    /// <summary>Runs a stream to its end, and looks after it from time to time.</summary>
    private async Task<string> RunAsync(WatchStream stream)
    {
        ITimer? looks = null;
        looks = _ports.Time.CreateTimer(
            _ =>
            {
                Look(stream);
                looks?.Change(s_look, Timeout.InfiniteTimeSpan);
            },
            null,
            Timeout.InfiniteTimeSpan,
            Timeout.InfiniteTimeSpan);
        looks.Change(s_look, Timeout.InfiniteTimeSpan);
        await using (looks.ConfigureAwait(Captures))
        {
            return await stream.RunAsync(_loops).ConfigureAwait(Captures);
        }
    }

    /// <summary>Leaves a node that no longer serves well.</summary>
    private void Look(WatchStream stream)
    {
        long now = _clock.Now;
        if (_book.Count > 0)
        {
            _idleSince = now;
        }

        _book.AskAgain();
        stream.Wake();
        long silence = now - stream.LastHeard;
        if (silence > SilencePerPatience * _clock.Of(_ports.Patience))
        {
            stream.Abort("the node was silent");
        }
        else if (now - _idleSince > _clock.Of(s_idleMax))
        {
            stream.Abort("no watch needs the stream");
        }
        else if (now - stream.OpenedAt > _clock.Of(s_stayMin)
            && _book.OldestAsOf() is { } asOf
            && now - asOf > _clock.Of(s_behindMax)
            && Ready().Any(node => node != stream.Endpoint))
        {
            stream.Abort("the node is behind the others");
        }
    }

    private async ValueTask PauseAsync(TimeSpan pause)
    {
        try
        {
            await Task.Delay(pause, _ports.Time, _stop.Token).ConfigureAwait(Captures);
        }
        catch (OperationCanceledException)
        {
            // The loop's condition ends it.
        }
    }
}
