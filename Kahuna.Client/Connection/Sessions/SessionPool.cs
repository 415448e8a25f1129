namespace Kahuna.Client.Connection.Sessions;

/// <summary>
/// The sessions of one client: one, as long as its window has room, and further ones while more mutations are under way than a window holds, or one of them takes very long. Owned by the
/// <see cref="ClusterConnection"/>; any thread.
/// </summary>
/// <param name="newId">Gives ids for sessions.</param>
/// <param name="routes">Gives the number of routes of the cluster, as far as it is known.</param>
internal sealed class SessionPool(Func<ulong> newId, Func<int> routes)
{
    private readonly Lock _lock = new();
    private readonly List<ClientSession> _sessions = [];
    private ClientSession? _current;

    /// <summary>Gives a mutation the number that all its attempts carry.</summary>
    /// <param name="operation">The mutation; its caller has the right to write to it.</param>
    public void Number(Operation operation)
    {
        lock (_lock)
        {
            if (_current is null || !_current.TryTake(out ulong number))
            {
                number = Switch();
            }

            operation.Session = _current;
            operation.SessionId = _current!.Id;
            operation.Sequence = number;
        }
    }

    /// <summary>Goes on with another session that has room, or a new one.</summary>
    private ulong Switch()
    {
        _sessions.RemoveAll(static session => session.IsForgotten);
        foreach (ClientSession session in _sessions)
        {
            if (session.TryTake(out ulong number))
            {
                _current = session;
                return number;
            }
        }

        _current = new ClientSession(newId(), routes());
        _sessions.Add(_current);
        _current.TryTake(out ulong first);
        return first;
    }
}
