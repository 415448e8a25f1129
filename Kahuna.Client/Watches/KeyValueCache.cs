using System.Collections;
using System.Collections.Concurrent;
using System.Diagnostics.CodeAnalysis;
using Kahuna.Client.Outcomes;

namespace Kahuna.Client.Watches;

/// <summary>
/// A local view of keys that a watch keeps current, which knows how old it may be. Lost changes and lost epochs only
/// delay it: it reads the state again, and tells the differences as changes. Dispose it at the end. Any thread.
/// </summary>
/// <remarks>
/// The view is not linearizable: it shows what the cluster held at most <see cref="Staleness"/> ago. The changes of a
/// transaction become visible one after the other.
/// </remarks>
public sealed class KeyValueCache : IReadOnlyCollection<KeyValuePair<string, CacheEntry>>, IAsyncDisposable
{
    private readonly ConcurrentDictionary<string, CacheEntry> _entries = new(StringComparer.Ordinal);
    private readonly ClientWatches _watches;
    private readonly CacheOptions _options;
    private readonly CacheHandlers _handlers;
    private readonly string _name;
    private readonly CancellationTokenSource _stop = new();
    private readonly List<(WatchPosition Position, TaskCompletionSource Reached)> _waiters = [];

    /// <summary>Guards the waiters and the newest event.</summary>
    private readonly Lock _lock = new();

    /// <summary>While the state is read: the keys that it has shown. Of the loop.</summary>
    private HashSet<string>? _shown = new(StringComparer.Ordinal);
    private Task _loop = Task.CompletedTask;
    private WatchEvent _newest;
    private volatile KahunaException? _failure;
    private long _bytes;
    private long _readSince;
    private long _asOf = long.MinValue;

    internal KeyValueCache(ClientWatches watches, string name, CacheOptions options)
    {
        _watches = watches;
        _name = name;
        _options = options;
        _handlers = new CacheHandlers(watches.Logger);
    }

    /// <summary>How many keys there are.</summary>
    public int Count => _entries.Count;

    /// <summary>
    /// The view shows every change up to here; null while the state is read again. A cache that waits for the position
    /// of a read (<see cref="WaitForAsync"/>) shows what the read has seen.
    /// </summary>
    public WatchPosition? Position
    {
        get
        {
            lock (_lock)
            {
                return _newest.Position;
            }
        }
    }

    /// <summary>
    /// How old the view may be: no change that was acknowledged longer ago is missing, the time on the network not
    /// counted. It grows while no node can be reached. <see cref="TimeSpan.MaxValue"/> while that is not known.
    /// </summary>
    public TimeSpan Staleness => Volatile.Read(ref _asOf) is var asOf && asOf == long.MinValue
        ? TimeSpan.MaxValue
        : _watches.Clock.Span(Math.Max(0, _watches.Clock.Now - asOf));

    /// <summary>Why the cache has ended by itself: it would be larger than it may be. Null: it has not.</summary>
    public KahunaException? Failure => _failure;

    private bool Captures => _watches.Connection.CapturesContext;

    /// <summary>
    /// Adds a handler of changes. Handlers are called one after the other, in the order of the changes, outside of
    /// locks, when the view shows the change already. A slow handler delays the view; what it throws is logged.
    /// </summary>
    /// <param name="handler">The handler.</param>
    /// <returns>Removes the handler when it is disposed; a call that is under way goes on.</returns>
    public IDisposable OnChange(Action<CacheChange> handler)
    {
        ArgumentNullException.ThrowIfNull(handler);
        return _handlers.Add(handler);
    }

    /// <summary>Looks a key up.</summary>
    /// <param name="key">The key.</param>
    /// <param name="entry">Its value and revision.</param>
    /// <exception cref="KahunaException">The cache has ended: <see cref="Failure"/>.</exception>
    public bool TryGetValue(string key, [MaybeNullWhen(false)] out CacheEntry entry)
    {
        ThrowIfEnded();
        return _entries.TryGetValue(key, out entry);
    }

    /// <summary>
    /// Waits until the view shows every change up to a position, such as that of a read or of
    /// <c>GetPositionAsync</c>.
    /// </summary>
    /// <param name="position">The position, of the cache's durability.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <exception cref="KahunaException">
    /// The cache has ended, or the position is of another cluster or durability.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async Task WaitForAsync(WatchPosition position, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(position);
        ThrowIfEnded();
        Task? reached = AddWaiter(position);
        try
        {
            if (reached is not null)
            {
                await reached.WaitAsync(ct).ConfigureAwait(Captures);
            }
        }
        catch (OperationCanceledException) when (ct.IsCancellationRequested)
        {
            throw new KahunaCanceledException(OperationOutcome.DidNotHappen, ct);
        }

        ThrowIfEnded();
    }

    /// <summary>The keys as they are while they are enumerated.</summary>
    /// <exception cref="KahunaException">The cache has ended: <see cref="Failure"/>.</exception>
    public IEnumerator<KeyValuePair<string, CacheEntry>> GetEnumerator()
    {
        ThrowIfEnded();
        return _entries.GetEnumerator();
    }

    /// <inheritdoc/>
    IEnumerator IEnumerable.GetEnumerator() => GetEnumerator();

    /// <summary>
    /// Ends the cache, which keeps what it has. No handler is called after it has returned, unless a handler calls it.
    /// </summary>
    public async ValueTask DisposeAsync()
    {
        bool isHandling = _handlers.IsCalling;
        _stop.Cancel();
        if (!isHandling)
        {
            await _loop.ConfigureAwait(Captures);
        }
    }

    /// <summary>Starts the cache; completes when the view is complete.</summary>
    internal async Task BeginAsync(Durability durability, CancellationToken ct)
    {
        WatchOptions options = new()
        {
            Scope = _options.Scope,
            Durability = _options.Durability ?? durability,
            KeysOnly = _options.KeysOnly,
            WithState = true,
            ProgressInterval = TimeSpan.Zero,
        };
        _readSince = _watches.Clock.Now;
        IAsyncEnumerable<WatchEvent> watch = _watches.Of(durability, _name, options, CancellationToken.None);
        TaskCompletionSource complete = NewSource();
        _loop = _watches.Connection.Start(() => RunAsync(watch, complete));
        try
        {
            await complete.Task.WaitAsync(ct).ConfigureAwait(Captures);
        }
        catch (Exception failure)
        {
            await DisposeAsync().ConfigureAwait(Captures);
            if (failure is OperationCanceledException && ct.IsCancellationRequested)
            {
                throw new KahunaCanceledException(OperationOutcome.DidNotHappen, ct);
            }

            throw;
        }
    }

    private TaskCompletionSource NewSource() =>
        new(Captures ? TaskCreationOptions.None : TaskCreationOptions.RunContinuationsAsynchronously);

    private void ThrowIfEnded()
    {
        if (_failure is { } failure)
        {
            throw new KahunaException(failure.Code, failure.Outcome, failure.Message, failure);
        }
    }

    /// <summary>Null: the view shows the position already.</summary>
    private Task? AddWaiter(WatchPosition position)
    {
        lock (_lock)
        {
            if (_newest.Position is { } shown)
            {
                if (shown.Durability != position.Durability)
                {
                    throw OperationErrors.PositionOfAnotherLevel(position.Durability);
                }

                if (shown.Cluster != position.Cluster)
                {
                    throw OperationErrors.PositionOfAnotherCluster();
                }

                if (shown.Covers(position))
                {
                    return null;
                }
            }

            TaskCompletionSource reached = NewSource();
            _waiters.Add((position, reached));
            return reached.Task;
        }
    }

    /// <summary>Tells those who wait for what the view shows by now; at the end, all.</summary>
    private void TellWaiters(bool isEnd)
    {
        List<TaskCompletionSource> told = [];
        lock (_lock)
        {
            if (_waiters.Count == 0)
            {
                return;
            }

            WatchPosition? shown = _newest.Position;
            for (int i = _waiters.Count - 1; i >= 0; i--)
            {
                if (isEnd || shown?.Covers(_waiters[i].Position) is true)
                {
                    told.Add(_waiters[i].Reached);
                    _waiters.RemoveAt(i);
                }
            }
        }

        told.ForEach(static reached => reached.TrySetResult());
    }

    /// <summary>Applies the events of the watch until it ends. Never throws.</summary>
    private async Task<bool> RunAsync(IAsyncEnumerable<WatchEvent> watch, TaskCompletionSource complete)
    {
        try
        {
            await foreach (WatchEvent told in watch.WithCancellation(_stop.Token).ConfigureAwait(Captures))
            {
                Apply(in told);
                if (_shown is null)
                {
                    complete.TrySetResult();
                }
            }
        }
        catch (KahunaCanceledException) when (_stop.IsCancellationRequested)
        {
            complete.TrySetCanceled(_stop.Token);
        }
        catch (KahunaException failure)
        {
            _failure = failure;
            complete.TrySetException(failure);
        }
        catch (ObjectDisposedException closed)
        {
            _failure = OperationErrors.Disposed(mayHaveHappened: false);
            complete.TrySetException(closed);
        }

        TellWaiters(isEnd: true);
        return true;
    }

    private void Apply(in WatchEvent told)
    {
        switch (told.Kind)
        {
            case WatchEventKind.Current or WatchEventKind.Set:
                _shown?.Add(told.Key);
                Put(told.Key, new CacheEntry(told.Value, told.Revision));
                break;
            case WatchEventKind.Deleted or WatchEventKind.Expired or WatchEventKind.Evicted:
                _shown?.Remove(told.Key);
                Remove(told.Key);
                break;
            case WatchEventKind.CurrentEnd:
                RemoveAllBut(_shown!);
                _shown = null;
                Volatile.Write(ref _asOf, Math.Max(_asOf, _readSince));
                break;
            case WatchEventKind.Progress:
                Volatile.Write(ref _asOf, Math.Max(_asOf, told.AsOf ?? _asOf));
                break;
            case WatchEventKind.Compacted or WatchEventKind.EpochBegan:
                _shown = new HashSet<string>(StringComparer.Ordinal);
                _readSince = _watches.Clock.Now;
                break;
        }

        lock (_lock)
        {
            _newest = _shown is null ? told : default;
        }

        TellWaiters(isEnd: false);
    }

    private void Put(string key, CacheEntry entry)
    {
        CacheEntry? before = _entries.TryGetValue(key, out CacheEntry known) ? known : null;
        if (before?.Revision == entry.Revision)
        {
            return;
        }

        _bytes += BytesOf(key, entry) - (before is { } old ? BytesOf(key, old) : 0);
        if ((before is null && _entries.Count >= _options.MaxKeys) || _bytes > _options.MaxBytes)
        {
            throw OperationErrors.CacheTooLarge(_name, _options.MaxKeys, _options.MaxBytes);
        }

        _entries[key] = entry;
        _handlers.Tell(new CacheChange(key, before, entry), _stop.Token);
    }

    private void Remove(string key)
    {
        if (_entries.TryRemove(key, out CacheEntry before))
        {
            _bytes -= BytesOf(key, before);
            _handlers.Tell(new CacheChange(key, before, null), _stop.Token);
        }
    }

    private void RemoveAllBut(HashSet<string> shown)
    {
        foreach (KeyValuePair<string, CacheEntry> entry in _entries)
        {
            if (!shown.Contains(entry.Key))
            {
                Remove(entry.Key);
            }
        }
    }

    private static long BytesOf(string key, CacheEntry entry) => (2L * key.Length) + entry.Value.Memory.Length;
}
