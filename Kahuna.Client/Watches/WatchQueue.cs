namespace Kahuna.Client.Watches;

/// <summary>
/// The events that wait for one consumer, up to a limit. The <see cref="WatchBook"/> adds them and never waits; the
/// consumer takes them. Beyond the limit the queue is left by its watch, and says so in order
/// (<see cref="WatchEventKind.Lagging"/>). Owned by a <see cref="Watch"/>; any thread. It is its own lock, because
/// there may be very many.
/// </summary>
/// <param name="reader">Is told when a consumer waits and something came.</param>
/// <param name="options">The limits.</param>
internal sealed class WatchQueue(IWatchReader reader, WatchOptions options)
{
    /// <summary>What an event takes up besides its key and value: about its size in the ring.</summary>
    private const int EventBytes = 96;

    /// <summary>A longer ring is dropped when it is empty, so that idle watches hold little.</summary>
    private const int RingKept = 16;

    private WatchEvent[] _ring = [];
    private int _first;
    private int _count;
    private long _bytes;
    private bool _isAwaited;
    private bool _isLagging;
    private bool _isCut;
    private WatchPosition? _lagsAt;
    private Exception? _end;
    private TaskCompletionSource? _begun;

    /// <summary>Changes up to here are not for this consumer; null: none is left to be left out. Of the book.</summary>
    public WatchPosition? Start { get; set; }

    /// <summary>
    /// <see cref="WatchEventKind.CurrentEnd"/> is due when everything up to here was added. Of the book.
    /// </summary>
    public WatchPosition? Target { get; set; }

    /// <summary>The server watch that adds to it; null while there is none. Of the book.</summary>
    public ServerWatch? Source { get; set; }

    /// <summary>It is told progress. Of the book.</summary>
    public bool IsReporting { get; set; }

    /// <summary>When progress is due again, as a timestamp. Of the book.</summary>
    public long ProgressAt { get; set; }

    /// <summary>The options.</summary>
    public WatchOptions Options => options;

    /// <summary>Events that wait.</summary>
    public int Count
    {
        get
        {
            lock (this)
            {
                return _count;
            }
        }
    }

    /// <summary>Completes when a node has begun the watch, or the queue has ended.</summary>
    public Task WhenBegun(bool isInline)
    {
        lock (this)
        {
            _begun ??= new TaskCompletionSource(
                isInline ? TaskCreationOptions.None : TaskCreationOptions.RunContinuationsAsynchronously);
            return _begun.Task;
        }
    }

    /// <summary>A node has begun the watch.</summary>
    public void OnBegun()
    {
        TaskCompletionSource? begun;
        lock (this)
        {
            begun = _begun;
            _begun = null;
        }

        begun?.TrySetResult();
    }

    /// <summary>
    /// Adds events that belong together. False: there is no room for them, and none was added. What is larger than the
    /// limit is taken when nothing else waits.
    /// </summary>
    public bool TryAdd(ReadOnlySpan<WatchEvent> events)
    {
        long bytes = 0;
        foreach (ref readonly WatchEvent one in events)
        {
            bytes += one.Bytes + EventBytes;
        }

        lock (this)
        {
            if (_count > 0
                && (_count + events.Length > options.BufferedEvents || _bytes + bytes > options.BufferedBytes))
            {
                return false;
            }

            foreach (ref readonly WatchEvent one in events)
            {
                Append(in one);
            }
        }

        Wake();
        return true;
    }

    /// <summary>Adds an event that is always told.</summary>
    public void Tell(in WatchEvent told)
    {
        lock (this)
        {
            Append(in told);
        }

        Wake();
    }

    /// <summary>Adds progress, unless the consumer has something to do. Newer progress replaces older.</summary>
    public void TellProgress(in WatchEvent told)
    {
        lock (this)
        {
            if (_count > 1 || (_count == 1 && _ring[_first].Kind != WatchEventKind.Progress))
            {
                return;
            }

            if (_count == 1)
            {
                _ring[_first] = told;
                return;
            }

            Append(in told);
        }

        Wake();
    }

    /// <summary>
    /// There was no room: the watch is to go on from a position when the consumer has taken what waits.
    /// </summary>
    public void Lag(WatchPosition at)
    {
        lock (this)
        {
            Append(new WatchEvent(WatchEventKind.Lagging, at));
            _isLagging = true;
            _lagsAt = at;
        }

        Wake();
    }

    /// <summary>Ends the queue: the consumer gets what waits, then the exception.</summary>
    /// <param name="end">Why.</param>
    /// <param name="atOnce">What waits is dropped.</param>
    public void End(Exception end, bool atOnce = false)
    {
        lock (this)
        {
            _end ??= end;
            if (atOnce)
            {
                // Without what is dropped nothing that comes later is to be told.
                _isCut = true;
                _end = end;
                (_ring, _first, _count, _bytes, _isLagging) = ([], 0, 0, 0, false);
            }
        }

        Wake();
    }

    /// <summary>Drops what waits: the watch begins anew.</summary>
    public void Clear()
    {
        lock (this)
        {
            (_ring, _first, _count, _bytes, _isLagging, _lagsAt) = ([], 0, 0, 0, false, null);
        }
    }

    /// <summary>Takes the next event.</summary>
    /// <param name="taken">The event.</param>
    /// <param name="resumesAt">Where the watch has to go on now that all was taken; null: it is not behind.</param>
    /// <returns>False: nothing waits.</returns>
    /// <exception cref="Exception">The queue has ended, and nothing waits.</exception>
    public bool TryTake(out WatchEvent taken, out WatchPosition? resumesAt)
    {
        resumesAt = null;
        lock (this)
        {
            if (_count > 0)
            {
                taken = TakeFirst();
                return true;
            }

            taken = default;
            if (_end is not null)
            {
                throw _end;
            }

            if (_isLagging)
            {
                resumesAt = _lagsAt;
                (_isLagging, _lagsAt) = (false, null);
            }

            return false;
        }
    }

    /// <summary>Takes the next event, if one waits.</summary>
    public bool TryTakeMore(out WatchEvent taken)
    {
        lock (this)
        {
            taken = _count > 0 ? TakeFirst() : default;
            return taken.Kind != WatchEventKind.None;
        }
    }

    /// <summary>
    /// True when any event of the transaction of the one that was taken last, which has more, meets a condition.
    /// </summary>
    public bool HasMoreOfTransaction(Func<WatchEvent, bool> condition)
    {
        lock (this)
        {
            for (int i = 0; i < _count; i++)
            {
                ref WatchEvent next = ref _ring[(_first + i) % _ring.Length];
                if (condition(next))
                {
                    return true;
                }

                if (!next.HasMore)
                {
                    return false;
                }
            }

            return false;
        }
    }

    /// <summary>
    /// The consumer waits from now on: its reader is told once. False when there is something already.
    /// </summary>
    public bool TryAwait()
    {
        lock (this)
        {
            _isAwaited = _count == 0 && _end is null;
            return _isAwaited;
        }
    }

    /// <summary>
    /// Tells the reader that there is something. The consumer may have taken it meanwhile and wait again: then there is
    /// nothing to tell.
    /// </summary>
    private void Wake()
    {
        lock (this)
        {
            if (!_isAwaited || (_count == 0 && _end is null))
            {
                return;
            }

            _isAwaited = false;
        }

        reader.OnReady();
    }

    private void Append(in WatchEvent added)
    {
        if (_isCut)
        {
            return;
        }

        if (_count == _ring.Length)
        {
            WatchEvent[] larger = new WatchEvent[Math.Max(1, 2 * _count)];
            for (int i = 0; i < _count; i++)
            {
                larger[i] = _ring[(_first + i) % _ring.Length];
            }

            (_ring, _first) = (larger, 0);
        }

        _ring[(_first + _count) % _ring.Length] = added;
        _count++;
        _bytes += added.Bytes + EventBytes;
    }

    private WatchEvent TakeFirst()
    {
        WatchEvent taken = _ring[_first];
        _ring[_first] = default;
        _first = (_first + 1) % _ring.Length;
        _count--;
        _bytes -= taken.Bytes + EventBytes;
        if (_count == 0 && _ring.Length > RingKept)
        {
            (_ring, _first) = ([], 0);
        }

        return taken;
    }
}

/// <summary>
/// Is told that a consumer need no longer wait. Called by any thread, also under locks: it only hands over.
/// </summary>
internal interface IWatchReader
{
    /// <summary>There is an event, or an end.</summary>
    void OnReady();
}
