namespace Kahuna.Client.Connection;

/// <summary>
/// The operations that no stream has: they wait for a node, a leader or the end of a pause. Owned by the
/// <see cref="ClusterConnection"/>; any thread.
/// </summary>
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

    /// <summary>
    /// Adds an operation. False after <see cref="Close"/>, and when <paramref name="countMax"/> operations wait.
    /// </summary>
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

    /// <summary>Removes operations that are due, past their deadline or ended by their callers.</summary>
    /// <param name="now">The current timestamp.</param>
    /// <param name="isRouteNew">
    /// True when operations that wait for a node or a leader are due before their pause is over.
    /// </param>
    /// <param name="due">Receives the operations to try again.</param>
    /// <param name="expired">Receives the operations past their deadline.</param>
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
                if (operation.Attempt.Deadline <= now)
                {
                    expired.Add(reference);
                }
                else if (operation.Attempt.NotBefore <= now || (isRouteNew && operation.WaitsForRoute))
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

    /// <summary>Removes all operations.</summary>
    public List<OperationRef> TakeAll()
    {
        lock (_lock)
        {
            List<OperationRef> all = _parked;
            _parked = [];
            return all;
        }
    }

    /// <summary>Removes all operations; later ones are rejected.</summary>
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
