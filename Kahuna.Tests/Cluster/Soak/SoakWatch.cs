using System.Globalization;
using Kahuna.Client;
using Kahuna.Client.Watches;
using Kahuna.Tests.WatchStreams;
using WatchStream = Kahuna.Tests.WatchStreams.WatchStream;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>
/// Watches all keys by the SDK, through all faults. A key that is complete waits until its newest acknowledged write
/// was told; then it goes on to be checked, with what was told of it. Any thread; owned by one run.
/// </summary>
internal sealed class SoakWatch : IAsyncDisposable
{
    /// <summary>All keys of <see cref="SoakKeys"/> begin with it, and some others.</summary>
    private const string Prefix = "soak";

    private readonly KahunaClient _client;
    private readonly SoakClock _clock;
    private readonly Func<SoakKey, ValueTask> _check;
    private readonly Lock _gate = new();
    private readonly Dictionary<string, List<StreamEvent>> _told = [];
    private readonly Dictionary<string, (SoakKey Key, long Newest)> _waiting = [];

    /// <summary>When the watch said that changes are missing.</summary>
    private readonly List<StreamEvent> _losses = [];
    private readonly CancellationTokenSource _stop = new();
    private readonly TaskCompletionSource _begun = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private long _callNs;
    private long _begunNs;
    private long _changes;

    /// <param name="client">Watches; the watch owns it.</param>
    /// <param name="clock">The clock of the operations.</param>
    /// <param name="check">Takes a key that is complete, with its <see cref="SoakKey.Watch"/>.</param>
    public SoakWatch(KahunaClient client, SoakClock clock, Func<SoakKey, ValueTask> check) =>
        (_client, _clock, _check) = (client, clock, check);

    /// <summary>Ends before the run does only when something is wrong.</summary>
    public Task Broken { get; private set; } = Task.CompletedTask;

    /// <summary>Changes that were told.</summary>
    public long Changes => Volatile.Read(ref _changes);

    /// <summary>Begins, before anything is written.</summary>
    public async Task StartAsync(TimeSpan within)
    {
        _callNs = _clock.NowNs;
        Broken = Task.Run(RunAsync);
        await await Task.WhenAny(_begun.Task, Broken).WaitAsync(within);
    }

    /// <summary>Nothing more is done to a key.</summary>
    public ValueTask AddAsync(SoakKey key)
    {
        long newest = new WrittenChanges(key.Operations).Known(key.Name).LastOrDefault()?.Revision ?? 0;
        lock (_gate)
        {
            if (!TryComplete(key, newest))
            {
                _waiting.Add(key.Name, (key, newest));
                return ValueTask.CompletedTask;
            }
        }

        return _check(key);
    }

    /// <summary>Waits until every acknowledged write was told of all keys that were added.</summary>
    /// <param name="within">The longest wait.</param>
    /// <param name="found">Something is wrong, so that it need not be waited for what may never come.</param>
    /// <exception cref="SoakException">Some writes are not told.</exception>
    public async Task FinishAsync(TimeSpan within, Task found)
    {
        try
        {
            await Eventually.TrueAsync(
                within, "every acknowledged write is told", () => found.IsCompleted || Waiting().Length == 0);
        }
        catch (TimeoutException)
        {
            throw new SoakException($"the watch was not told of {string.Join(", ", Waiting())}");
        }
    }

    public async ValueTask DisposeAsync()
    {
        await _stop.CancelAsync();
        await _client.DisposeAsync();
        _stop.Dispose();
    }

    private string[] Waiting()
    {
        lock (_gate)
        {
            return
            [
                .. _waiting.Select(static pair =>
                    string.Create(CultureInfo.InvariantCulture, $"{pair.Key} at {pair.Value.Newest}")),
            ];
        }
    }

    private async Task RunAsync()
    {
        WatchPosition? from = null;
        while (!_stop.IsCancellationRequested)
        {
            WatchOptions options = new() { From = from, ProgressInterval = TimeSpan.FromSeconds(1) };
            try
            {
                await foreach (WatchEvent told in _client.KeyValues.WatchAsync(Prefix, options, _stop.Token))
                {
                    from = told.Position ?? from;
                    foreach (SoakKey key in Take(in told))
                    {
                        await _check(key);
                    }
                }
            }
            catch (KahunaCanceledException) when (_stop.IsCancellationRequested)
            {
                return;
            }
            catch (KahunaException error) when (from is not null && error.Code != KahunaErrorCode.InvalidArgument)
            {
                // It goes on where it was.
            }
        }
    }

    /// <summary>Notes an event. Returns the keys that waited for it.</summary>
    private SoakKey[] Take(in WatchEvent told)
    {
        long now = _clock.NowNs;
        lock (_gate)
        {
            if (_begun.TrySetResult())
            {
                _begunNs = now;
            }

            switch (told.Kind)
            {
                case WatchEventKind.Set or WatchEventKind.Deleted or WatchEventKind.Expired:
                    Volatile.Write(ref _changes, _changes + 1);
                    EventsOf(told.Key).Add(Change(in told, now));
                    return _waiting.TryGetValue(told.Key, out (SoakKey Key, long Newest) waits)
                        && TryComplete(waits.Key, waits.Newest) ? [waits.Key] : [];
                case WatchEventKind.Compacted:
                    _losses.Add(new StreamEvent { Kind = StreamEventKind.Compacted, AtNs = now });
                    return
                    [
                        .. _waiting.Values.ToArray().Where(each => TryComplete(each.Key, each.Newest))
                            .Select(static each => each.Key),
                    ];
                default:
                    return [];
            }
        }
    }

    private static StreamEvent Change(in WatchEvent told, long now)
    {
        bool isSet = told.Kind == WatchEventKind.Set;
        return new StreamEvent
        {
            Kind = isSet ? StreamEventKind.Set
                : told.Kind == WatchEventKind.Deleted ? StreamEventKind.Deleted
                : StreamEventKind.Expired,
            AtNs = now,
            Key = told.Key,
            Revision = told.Revision.Value,
            HasValue = isSet,
            Value = isSet ? told.Value.AsString() : null,
        };
    }

    private List<StreamEvent> EventsOf(string key) =>
        _told.TryGetValue(key, out List<StreamEvent>? events) ? events : _told[key] = [];

    /// <summary>Whether a key's newest write was told, or a later loss of changes explains why it was not.</summary>
    private bool TryComplete(SoakKey key, long newest)
    {
        List<StreamEvent> events = EventsOf(key.Name);
        bool isTold = events.Count > 0 && events[^1].Revision >= newest;
        long? lastNs = key.Operations.Max(static each => each.ReturnNs);
        if (newest > 0 && !isTold && !_losses.Exists(loss => loss.AtNs > lastNs))
        {
            return false;
        }

        StreamEvent begun = new() { Kind = StreamEventKind.Progress, AtNs = _begunNs };
        key.Watch = new WatchStream
        {
            Name = key.Name,
            Scope = WatchScopeKind.Key,
            From = WatchStream.Now,
            CallNs = _callNs,
            Events = [begun, .. events.Concat(_losses).OrderBy(static each => each.AtNs)],
            Line = 0,
        };
        _told.Remove(key.Name);
        _waiting.Remove(key.Name);
        return true;
    }
}
