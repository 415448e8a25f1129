using System.Runtime.InteropServices;

namespace Kahuna.Server.Raft;

/// <summary>
/// What one kind of output waits in: items gather until a Ready is opened, then they stand still until it is carried out
/// while new ones gather behind them. Reuses its two lists. Owned by one core; not thread-safe.
/// </summary>
internal sealed class Handover<T>
{
    private List<T> _gathering = new(16);
    private List<T> _open = new(16);

    public bool HasGathered => _gathering.Count > 0;

    public ReadOnlySpan<T> Open => CollectionsMarshal.AsSpan(_open);

    public void Add(T item) => _gathering.Add(item);

    public void RemoveGathered(Predicate<T> match) => _gathering.RemoveAll(match);

    /// <summary>What gathered becomes the content of the Ready.</summary>
    public void OpenReady() => (_open, _gathering) = (_gathering, _open);

    /// <summary>The content of the Ready has been carried out.</summary>
    public void CloseReady() => _open.Clear();
}
