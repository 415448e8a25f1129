namespace Kahuna.Server.Storage;

/// <summary>Wakes one waiting thread. Rung by any thread; rings between two waits count once. Blocks in the system at once, without spinning.</summary>
internal sealed class Bell
{
    private readonly object _gate = new();
    private bool _rung;
    private bool _waiting;

    public void Ring()
    {
        lock (_gate)
        {
            _rung = true;
            if (_waiting)
            {
                Monitor.Pulse(_gate);
            }
        }
    }

    /// <summary>Waits for a ring; false when there was none within the time.</summary>
    public bool Wait(TimeSpan timeout)
    {
        lock (_gate)
        {
            if (!_rung)
            {
                _waiting = true;
                Monitor.Wait(_gate, timeout);
                _waiting = false;
            }

            bool rung = _rung;
            _rung = false;
            return rung;
        }
    }
}
