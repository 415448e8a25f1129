namespace Kahuna.Client.Connection;

/// <summary>The operations that are in no stream: they wait for a node, a leader or the end of a pause. Owned by the <see cref="ClusterConnection"/>; any thread.</summary>
internal sealed class ParkedOperations
{
    private readonly Lock _lock = new();
    private List<OperationRef> _parked = [];
    private bool _isClosed;

    public int Count
    {
        get
        {
            lock (_lock)
            {
                return _parked.Count;
            }
        }
    }

    /// <summary>Adds an operation; false after <see cref="Close"/>, and when as many are here as is said.</summary>
    public bool TryAdd(OperationRef reference, int countMax)
    {
        lock (_lock)
        {
            if (_isClosed || _parked.Count >= countMax)
            {
                return false;
            }

            _parked.Add(reference);
            return true;
        }
    }

    /// <summary>Takes out what is to be tried again or has passed its deadline, and forgets what its caller has ended.</summary>
    /// <param name="now">This moment.</param>
    /// <param name="isRouteNew">Those that wait for a node or a leader are due before their pause is over.</param>
    /// <param name="due">Receives what is to be tried again.</param>
    /// <param name="expired">Receives what has passed its deadline.</param>
    public void TakeDue(long now, bool isRouteNew, List<OperationRef> due, List<OperationRef> expired)
    {
        lock (_lock)
        {
            int kept = 0;
            for (int i = 0; i < _parked.Count; i++)
            {
                OperationRef reference = _parked[i];
                if (!reference.IsPending)
                {
                    continue;
                }

                Operation operation = reference.Operation;
                if (operation.Deadline <= now)
                {
                    expired.Add(reference);
                }
                else if (operation.NotBefore <= now || (isRouteNew && operation.WaitsForRoute))
                {
                    due.Add(reference);
                }
                else
                {
                    _parked[kept++] = reference;
                }
            }

            _parked.RemoveRange(kept, _parked.Count - kept);
        }
    }

    /// <summary>Takes out everything.</summary>
    public List<OperationRef> TakeAll()
    {
        lock (_lock)
        {
            List<OperationRef> all = _parked;
            _parked = [];
            return all;
        }
    }

    /// <summary>Takes out everything; from now on nothing is added.</summary>
    public List<OperationRef> Close()
    {
        lock (_lock)
        {
            _isClosed = true;
            List<OperationRef> all = _parked;
            _parked = [];
            return all;
        }
    }
}
