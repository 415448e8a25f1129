using System.Threading.Tasks.Sources;
using Kahuna.Client.Outcomes;

namespace Kahuna.Client.Watches;

/// <summary>
/// One enumeration of a watch: begins it, hands the events to its consumer, and goes on where it was. The consumer
/// calls it, one call at a time; a wait allocates nothing.
/// </summary>
internal sealed class Watch : IAsyncEnumerator<WatchEvent>, IWatchReader, IValueTaskSource<bool>, IThreadPoolWorkItem
{
    private static readonly WatchEvent[] s_none = new WatchEvent[1];

    private readonly ClientWatches _watches;
    private readonly WatchFilter _filter;
    private readonly WatchOptions _options;
    private readonly CancellationToken _ct;
    private readonly WatchQueue _queue;
    private readonly PreviousValues? _previous;
    private ManualResetValueTaskSourceCore<bool> _core;
    private CancellationTokenRegistration _registration;
    private StateRead? _state;
    private WatchPhase _phase;
    private WatchEvent[] _slot = s_none;

    public Watch(ClientWatches watches, in WatchFilter filter, WatchOptions options, CancellationToken ct)
    {
        _watches = watches;
        _filter = filter;
        _options = options;
        _ct = ct;
        _queue = new WatchQueue(this, options);
        _previous = options.PreviousValues ? new PreviousValues(watches, filter.Durability) : null;
    }

    /// <inheritdoc/>
    public WatchEvent Current => _slot[0];

    private bool Captures => _watches.Connection.CapturesContext;

    /// <inheritdoc/>
    public ValueTask<bool> MoveNextAsync()
    {
        if (_options.WithState && _slot[0].Kind is WatchEventKind.Compacted or WatchEventKind.EpochBegan)
        {
            _phase = WatchPhase.Beginning;
        }

        if (_phase == WatchPhase.New && !_options.WithState && _previous is null)
        {
            // An idle watch is to hold no more than itself: what begins it ends when it has begun.
            _core.Reset();
            _ = BeginAndAwaitAsync();
            return new ValueTask<bool>(this, _core.Version);
        }

        return _phase == WatchPhase.Live && _previous is null ? NextQueuedAsync()
            : _phase == WatchPhase.Over ? new ValueTask<bool>(false)
            : new ValueTask<bool>(NextAsync());
    }

    /// <inheritdoc/>
    public ValueTask DisposeAsync()
    {
        _registration.Dispose();
        _watches.End(_queue);
        _queue.Clear();
        _phase = WatchPhase.Over;
        return ValueTask.CompletedTask;
    }

    /// <inheritdoc/>
    public void OnReady()
    {
        if (Captures)
        {
            _core.SetResult(true);
        }
        else
        {
            // Posting to the consumer's context or scheduler runs foreign code.
            ThreadPool.UnsafeQueueUserWorkItem(this, preferLocal: false);
        }
    }

    /// <inheritdoc/>
    void IThreadPoolWorkItem.Execute()
    {
        try
        {
            _core.SetResult(true);
        }
        catch (Exception)
        {
            // The consumer's context accepts no more work, and the code after its await must not run elsewhere.
        }
    }

    /// <inheritdoc/>
    bool IValueTaskSource<bool>.GetResult(short token)
    {
        _core.GetResult(token);
        return TryTake() ? true : throw new InvalidOperationException("A watch was enumerated by two callers at once.");
    }

    /// <inheritdoc/>
    ValueTaskSourceStatus IValueTaskSource<bool>.GetStatus(short token) => _core.GetStatus(token);

    /// <inheritdoc/>
    void IValueTaskSource<bool>.OnCompleted(
        Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags) =>
        _core.OnCompleted(continuation, state, token, flags);

    /// <summary>Makes the next event of the queue the current one.</summary>
    private ValueTask<bool> NextQueuedAsync()
    {
        try
        {
            while (!TryTake())
            {
                _core.Reset();
                if (_queue.TryAwait())
                {
                    return new ValueTask<bool>(this, _core.Version);
                }
            }

            return new ValueTask<bool>(true);
        }
        catch (Exception end)
        {
            return ValueTask.FromException<bool>(end);
        }
    }

    /// <summary>An idle watch has no room for an event until the first one comes.</summary>
    private void SetCurrent(in WatchEvent current)
    {
        if (ReferenceEquals(_slot, s_none))
        {
            _slot = new WatchEvent[1];
        }

        _slot[0] = current;
    }

    private bool TryTake()
    {
        if (_queue.TryTake(out WatchEvent taken, out WatchPosition? resumesAt))
        {
            SetCurrent(_options.KeysOnly ? taken with { Value = KahunaValue.Null } : taken);
            return true;
        }

        if (resumesAt is not null)
        {
            _watches.Begin(_queue, in _filter, resumesAt, WatchOrigin.Lagging);
        }

        return false;
    }

    /// <summary>Begins the watch, and wakes the consumer when there is an event or an end. Never throws.</summary>
    private async Task BeginAndAwaitAsync()
    {
        try
        {
            await BeginAsync().ConfigureAwait(Captures);
        }
        catch (Exception failure)
        {
            _phase = WatchPhase.Over;
            _queue.End(failure, atOnce: true);
        }

        if (!_queue.TryAwait())
        {
            OnReady();
        }
    }

    private async Task<bool> NextAsync()
    {
        try
        {
            while (!await TryNextAsync().ConfigureAwait(Captures))
            {
            }

            return true;
        }
        catch (Exception)
        {
            _phase = WatchPhase.Over;
            throw;
        }
    }

    /// <summary>Goes on by one step. True: there is an event.</summary>
    private async Task<bool> TryNextAsync()
    {
        switch (_phase)
        {
            case WatchPhase.New:
                await BeginAsync().ConfigureAwait(Captures);
                return false;
            case WatchPhase.Beginning:
                await BeginAgainAsync().ConfigureAwait(Captures);
                return false;
            case WatchPhase.State:
                return await NextOfStateAsync().ConfigureAwait(Captures);
            case WatchPhase.CatchUp:
                await NextQueuedAsync().ConfigureAwait(Captures);
                return await TakeBeforeEndAsync().ConfigureAwait(Captures);
            default:
                if (_previous is null)
                {
                    return await NextQueuedAsync().ConfigureAwait(Captures);
                }

                if (!_previous.TryTake(out WatchEvent ready))
                {
                    await NextQueuedAsync().ConfigureAwait(Captures);
                    ready = await _previous.ReadAsync(Current, _queue, _ct).ConfigureAwait(Captures);
                }

                SetCurrent(in ready);
                return true;
        }
    }

    private async Task BeginAsync()
    {
        if (_ct.CanBeCanceled)
        {
            _registration = _ct.UnsafeRegister(
                static (state, token) => ((Watch)state!)._queue.End(
                    new KahunaCanceledException(OperationOutcome.DidNotHappen, token), atOnce: true),
                this);
        }

        if (_options.WithState)
        {
            await BeginStateAsync(_watches.WaitBegunAsync).ConfigureAwait(Captures);
            return;
        }

        WatchPosition now = await _watches.NowAsync(_filter.Durability, _ct).ConfigureAwait(Captures);
        WatchPosition from = _options.From is { } given ? Checked(given, now) : now;
        Task begun = _queue.WhenBegun(Captures);
        if (_options.ProgressInterval is not null)
        {
            // In front of what comes from here on; the consumer gets it when a node has begun the watch.
            _queue.Tell(new WatchEvent(WatchEventKind.Progress, from));
        }

        _watches.Begin(_queue, in _filter, from, _options.From is null ? WatchOrigin.Now : WatchOrigin.Given);
        await _watches.WaitBegunAsync(begun, _ct).ConfigureAwait(Captures);
        _phase = WatchPhase.Live;
    }

    /// <summary>Reads the first pages and begins the watch at their points.</summary>
    /// <param name="settle">Waits until a node has begun the watch.</param>
    private async Task BeginStateAsync(Func<Task, CancellationToken, Task> settle)
    {
        StateRead state = new(_watches.Connection, in _filter);
        WatchPosition from = await state.BeginAsync(_ct).ConfigureAwait(Captures);
        Task begun = _queue.WhenBegun(Captures);
        _watches.Begin(_queue, in _filter, from, WatchOrigin.Given);
        await settle(begun, _ct).ConfigureAwait(Captures);
        _state = state;
        _phase = WatchPhase.State;
    }

    /// <summary>The state is read again, after changes were lost. An outage only delays that.</summary>
    private async Task BeginAgainAsync()
    {
        _watches.End(_queue);
        _queue.Clear();
        SetCurrent(default);
        await _watches.PersistAsync(
            () => BeginStateAsync(static (_, _) => Task.CompletedTask), _ct).ConfigureAwait(Captures);
    }

    private async Task<bool> NextOfStateAsync()
    {
        StateRead state = _state!;
        WatchEvent next;
        while (!state.TryNext(out next))
        {
            bool hasMore = false;
            await _watches.PersistAsync(
                async () => hasMore = await state.ReadMoreAsync(_ct).ConfigureAwait(Captures), _ct)
                .ConfigureAwait(Captures);
            if (!hasMore)
            {
                _phase = WatchPhase.CatchUp;
                _watches.Book.TellWhenAt(_queue, state.End);
                return false;
            }
        }

        SetCurrent(in next);
        return true;
    }

    /// <summary>
    /// What comes before the end of the state: changes that a page does not show. True: it is told.
    /// </summary>
    private async Task<bool> TakeBeforeEndAsync()
    {
        switch (_slot[0].Kind)
        {
            case WatchEventKind.CurrentEnd:
                _phase = WatchPhase.Live;
                _state = null;
                return true;
            case WatchEventKind.Compacted or WatchEventKind.EpochBegan:
                return true;
            case WatchEventKind.Lagging:
                SetCurrent(new WatchEvent(WatchEventKind.Lagging, null));
                return true;
            case WatchEventKind.Progress:
                return false;
        }

        if (_state!.Shows(Current))
        {
            return false;
        }

        bool hasMore = Current.HasMore && _queue.HasMoreOfTransaction(next => !_state.Shows(in next));
        WatchEvent told = Current.Told(null, hasMore);
        SetCurrent(_previous is null
            ? told
            : await _previous.ReadAsync(told, null, _ct).ConfigureAwait(Captures));
        return true;
    }

    private WatchPosition Checked(WatchPosition given, WatchPosition now)
    {
        if (given.Cluster != now.Cluster)
        {
            throw OperationErrors.PositionOfAnotherCluster();
        }

        foreach (ref readonly Wire.Watches.ChangePoint point in given.Points)
        {
            if (!now.Covers(in point))
            {
                throw OperationErrors.PositionFromTheFuture();
            }
        }

        WatchPosition from = now;
        foreach (ref readonly Wire.Watches.ChangePoint point in given.Points)
        {
            from = from.With(in point);
        }

        return from;
    }
}

/// <summary>Where a <see cref="Watch"/> is. Not stored.</summary>
internal enum WatchPhase
{
    /// <summary>Not begun.</summary>
    New,

    /// <summary>The state is to be read again.</summary>
    Beginning,

    /// <summary>The keys are being returned as they are.</summary>
    State,

    /// <summary>All keys were returned; the changes up to the last page come next.</summary>
    CatchUp,

    /// <summary>Changes are returned as they come.</summary>
    Live,

    /// <summary>The watch has ended.</summary>
    Over,
}
