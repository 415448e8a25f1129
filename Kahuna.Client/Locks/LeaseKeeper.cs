using Kahuna.Client.Connection;

namespace Kahuna.Client.Locks;

/// <summary>
/// The leases that one client holds, with one alarm for all: it fires when the next lease must be renewed or is about
/// to end. A heap by that moment in which each lease knows its index, so that short leases leave nothing behind. Any
/// thread; holds no lock while holders are told. With the real clock the alarm is a thread of its own, so that holders
/// are told in time even when every pool thread is blocked.
/// </summary>
internal sealed class LeaseKeeper : IDisposable
{
    private readonly Lock _lock = new();
    private readonly ConnectionClock _clock;
    private readonly ILeaseAlarm _alarm;
    private HeldLease[] _heap = new HeldLease[16];
    private int _count;
    private long _armedFor = long.MaxValue;
    private bool _isClosed;

    public LeaseKeeper(LockOperations calls)
    {
        _clock = calls.Clock;
        HasThread = calls.HasThreads;
        _alarm = HasThread ? new LeaseThread(_clock, Tick) : new LeaseTimer(_clock, calls.Time, Tick);
    }

    /// <summary>Leases fall due on the keeper's own thread.</summary>
    public bool HasThread { get; }

    /// <summary>Adds a lease until it is removed; false when the client is disposed.</summary>
    public bool TryAdd(HeldLease lease, long due)
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

            lease.Due = due;
            MoveUp(lease, _count);
            Arm();
            return true;
        }
    }

    /// <summary>
    /// The lease's due time changed. Reads it under the lock, so that the latest value wins; no effect when the lease
    /// was removed.
    /// </summary>
    public void Move(HeldLease lease)
    {
        lock (_lock)
        {
            if (lease.Place != 0)
            {
                lease.Due = lease.NextDue;
                Settle(lease);
                Arm();
            }
        }
    }

    public void Remove(HeldLease lease)
    {
        lock (_lock)
        {
            int place = lease.Place;
            if (place == 0)
            {
                return;
            }

            lease.Place = 0;
            HeldLease last = _heap[_count];
            _heap[_count--] = null!;
            if (last != lease)
            {
                last.Place = place;
                _heap[place] = last;
                Settle(last);
            }
        }
    }

    /// <summary>The client is disposed and renews nothing more: every holder is told.</summary>
    public void Dispose()
    {
        HeldLease[] held;
        lock (_lock)
        {
            _isClosed = true;
            held = _heap[1..(_count + 1)];
        }

        _alarm.Dispose();
        foreach (HeldLease lease in held)
        {
            lease.Lose();
        }
    }

    private void Tick()
    {
        long now = _clock.Now;
        List<HeldLease> due = [];
        lock (_lock)
        {
            _armedFor = long.MaxValue;
            while (_count > 0 && _heap[1].Due <= now)
            {
                HeldLease lease = _heap[1];
                due.Add(lease);
                lease.Due = long.MaxValue;
                MoveDown(lease, 1);
            }
        }

        foreach (HeldLease lease in due)
        {
            lease.OnDue(now);
        }

        lock (_lock)
        {
            Arm();
        }
    }

    /// <summary>Sets the alarm for the earliest lease, unless it fires before that anyway.</summary>
    private void Arm()
    {
        if (_count > 0 && !_isClosed && _heap[1].Due < _armedFor)
        {
            _armedFor = _heap[1].Due;
            _alarm.Set(_armedFor);
        }
    }

    private void Settle(HeldLease lease)
    {
        MoveUp(lease, lease.Place);
        MoveDown(lease, lease.Place);
    }

    private void MoveUp(HeldLease lease, int place)
    {
        for (; place > 1 && _heap[place / 2].Due > lease.Due; place /= 2)
        {
            Put(_heap[place / 2], place);
        }

        Put(lease, place);
    }

    private void MoveDown(HeldLease lease, int place)
    {
        while (2 * place <= _count)
        {
            int child = 2 * place;
            if (child < _count && _heap[child + 1].Due < _heap[child].Due)
            {
                child++;
            }

            if (_heap[child].Due >= lease.Due)
            {
                break;
            }

            Put(_heap[child], place);
            place = child;
        }

        Put(lease, place);
    }

    private void Put(HeldLease lease, int place)
    {
        _heap[place] = lease;
        lease.Place = place;
    }
}
