using Kahuna.Client.Wire.Commands;

namespace Kahuna.Client.Connection.Sessions;

/// <summary>
/// The sessions of one client. Each stream that sends mutations has one of them to itself, so that it numbers them under its own lock; it comes here only for another one, when the window of its own is full
/// (more mutations under way than a window holds, or one that takes very long) or a partition has forgotten it. What a stream gives back goes on with the next, so that there are hardly more sessions than streams. Owned by
/// the <see cref="ClusterConnection"/>; any thread.
/// </summary>
/// <param name="newId">Gives ids for sessions.</param>
/// <param name="routes">Gives the number of routes of the cluster, as far as it is known.</param>
internal sealed class SessionPool(Func<ulong> newId, Func<int> routes)
{
    private readonly Lock _lock = new();
    private readonly List<ClientSession> _idle = [];

    /// <summary>Takes a session that has room, or a new one, and its next number.</summary>
    /// <param name="given">The session that the caller has had, and gives back; null: none.</param>
    /// <param name="number">The number.</param>
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

    /// <summary>A stream has ended: its session is for another one.</summary>
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
