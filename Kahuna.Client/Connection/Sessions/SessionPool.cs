using Kahuna.Wire.Commands;

namespace Kahuna.Client.Connection.Sessions;

/// <summary>
/// The sessions of one client. Each stream that sends mutations owns one and numbers them under its own lock. It
/// exchanges its session only when the window is full or a partition has forgotten the session. Returned sessions are
/// reused, so there are hardly more sessions than streams. Owned by the <see cref="ClusterConnection"/>; any thread.
/// </summary>
/// <param name="newId">Returns a new session id.</param>
/// <param name="routes">Returns the known number of routes of the cluster.</param>
internal sealed class SessionPool(Func<ulong> newId, Func<int> routes)
{
    private readonly Lock _lock = new();
    private readonly List<ClientSession> _idle = [];

    /// <summary>Takes a session with room, or a new one, and its next number.</summary>
    /// <param name="given">The caller's former session, which it returns; null for none.</param>
    /// <param name="number">The next number of the session.</param>
    public ClientSession Exchange(ClientSession? given, out ulong number)
    {
        lock (_lock)
        {
            _idle.RemoveAll(static session => session.IsForgotten);
            ClientSession? taken = null;
            number = 0;
            for (int i = 0; i < _idle.Count; i++)
            {
                if (_idle[i].TryTake(out number))
                {
                    taken = _idle[i];
                    _idle.RemoveAt(i);
                    break;
                }
            }

            Keep(given);
            if (taken is null)
            {
                taken = new ClientSession(IdempotencyKey.AsSession(newId()), routes());
                taken.TryTake(out number);
            }

            return taken;
        }
    }

    /// <summary>Takes back the session of a stream that has ended.</summary>
    public void Return(ClientSession given)
    {
        lock (_lock)
        {
            Keep(given);
        }
    }

    private void Keep(ClientSession? given)
    {
        if (given is { IsForgotten: false })
        {
            _idle.Add(given);
        }
    }
}
