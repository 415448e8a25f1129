using Kahuna.Client.Connection;

namespace Kahuna.Client.Locks;

/// <summary>
/// The handles of one client that hold a lock, and one timer for all of them: when the next one has to be renewed, or is to be told that its lease is about to end. A heap by that moment, in which a handle
/// knows its place, so that those that are soon given back leave nothing behind. Any thread; holds no lock while handles are told.
/// </summary>
internal sealed class LeaseKeeper : IDisposable
{
    private readonly Lock _lock = new();
    private readonly ConnectionClock _clock;
    private readonly ITimer _timer;
    private LockHandle[] _heap = new LockHandle[16];
    private int _count;
    private long _armedFor = long.MaxValue;
    private bool _isClosed;

    public LeaseKeeper(LockCalls calls)
    {
        _clock = calls.Clock;
        using (ExecutionContext.IsFlowSuppressed() ? default(AsyncFlowControl?) : ExecutionContext.SuppressFlow())
        {
            _timer = calls.Time.CreateTimer(static state => ((LeaseKeeper)state!).Tick(), this, Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan);
        }
    }

    /// <summary>Takes a handle on until it is removed; false when the client is disposed.</summary>
    public bool TryAdd(LockHandle handle, long due)
    {
        lock (_lock)
        {
            if (_isClosed)
            {
                return false;
            }

            if (++_count == _heap.Length)
            {
                Array.Resize(ref _heap, 2 * _heap.Length);
            }

            handle.Due = due;
            MoveUp(handle, _count);
            Arm();
            return true;
        }
    }

    /// <summary>The handle has another moment, which is read here, so that of several the newest counts; without effect when it is not here any more.</summary>
    public void Move(LockHandle handle)
    {
        lock (_lock)
        {
            if (handle.Place != 0)
            {
                handle.Due = handle.NextDue;
                Settle(handle);
                Arm();
            }
        }
    }

    public void Remove(LockHandle handle)
    {
        lock (_lock)
        {
            int place = handle.Place;
            if (place == 0)
            {
                return;
            }

            handle.Place = 0;
            LockHandle last = _heap[_count];
            _heap[_count--] = null!;
            if (last != handle)
            {
                last.Place = place;
                _heap[place] = last;
                Settle(last);
            }
        }
    }

    /// <summary>The client is disposed and renews nothing any more: every holder is told.</summary>
    public void Dispose()
    {
        LockHandle[] held;
        lock (_lock)
        {
            _isClosed = true;
            held = _heap[1..(_count + 1)];
        }

        _timer.Dispose();
        foreach (LockHandle handle in held)
        {
            handle.Lose();
        }
    }

    private void Tick()
    {
        long now = _clock.Now;
        List<LockHandle> due = [];
        lock (_lock)
        {
            _armedFor = long.MaxValue;
            while (_count > 0 && _heap[1].Due <= now)
            {
                LockHandle handle = _heap[1];
                due.Add(handle);
                handle.Due = long.MaxValue;
                MoveDown(handle, 1);
            }
        }

        foreach (LockHandle handle in due)
        {
            handle.OnDue(now);
        }

        lock (_lock)
        {
            Arm();
        }
    }

    /// <summary>Sets the timer for the earliest handle, unless it comes before that anyway.</summary>
    private void Arm()
    {
        if (_count > 0 && !_isClosed && _heap[1].Due < _armedFor)
        {
            _armedFor = _heap[1].Due;

            // A whole number of milliseconds, so that it does not come before its time and has to be set again.
            _timer.Change(TimeSpan.FromMilliseconds(Math.Max(0, _clock.Ms(_armedFor - _clock.Now)) + 1), Timeout.InfiniteTimeSpan);
        }
    }

    private void Settle(LockHandle handle)
    {
        MoveUp(handle, handle.Place);
        MoveDown(handle, handle.Place);
    }

    private void MoveUp(LockHandle handle, int place)
    {
        for (; place > 1 && _heap[place / 2].Due > handle.Due; place /= 2)
        {
            Put(_heap[place / 2], place);
        }

        Put(handle, place);
    }

    private void MoveDown(LockHandle handle, int place)
    {
        while (2 * place <= _count)
        {
            int child = 2 * place;
            if (child < _count && _heap[child + 1].Due < _heap[child].Due)
            {
                child++;
            }

            if (_heap[child].Due >= handle.Due)
            {
                break;
            }

            Put(_heap[child], place);
            place = child;
        }

        Put(handle, place);
    }

    private void Put(LockHandle handle, int place)
    {
        _heap[place] = handle;
        handle.Place = place;
    }
}
