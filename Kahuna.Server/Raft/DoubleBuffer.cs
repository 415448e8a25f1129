namespace Kahuna.Server.Raft;

/// <summary>
/// A double buffer for one kind of output. Items gather until a Ready opens and freezes them; new items then gather in
/// the second list until the Ready is carried out. Reuses both lists. Owned by one core; not thread-safe.
/// </summary>
internal sealed class DoubleBuffer<T>
{
    private List<T> _gathering = new(16);
    private List<T> _open = new(16);

    public bool HasGathered => _gathering.Count > 0;

    public void Add(T item) => _gathering.Add(item);

    public void RemoveGathered(Predicate<T> match) => _gathering.RemoveAll(match);

    /// <summary>Swaps the lists: the gathered items become the content of the Ready, which is returned.</summary>
    public List<T> OpenReady()
    {
        (_open, _gathering) = (_gathering, _open);
        return _open;
    }

    /// <summary>Clears the content of the Ready, which has been carried out.</summary>
    public void CloseReady() => _open.Clear();
}
