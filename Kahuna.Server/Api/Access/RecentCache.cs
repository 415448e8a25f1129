using System.Diagnostics.CodeAnalysis;

namespace Kahuna.Server.Api.Access;

/// <summary>A table of a bounded size: the entry that was not used for the longest makes room. Any thread.</summary>
/// <param name="max">Number of entries.</param>
internal sealed class RecentCache<TKey, TValue>(int max)
    where TKey : notnull
{
    private readonly Lock _lock = new();
    private readonly Dictionary<TKey, LinkedListNode<(TKey Key, TValue Value)>> _entries = [];
    private readonly LinkedList<(TKey Key, TValue Value)> _byUse = [];

    /// <summary>Number of entries.</summary>
    public int Count
    {
        get
        {
            lock (_lock)
            {
                return _entries.Count;
            }
        }
    }

    /// <summary>Finds an entry, which then counts as used.</summary>
    public bool TryGet(TKey key, [MaybeNullWhen(false)] out TValue value)
    {
        lock (_lock)
        {
            if (!_entries.TryGetValue(key, out LinkedListNode<(TKey Key, TValue Value)>? node))
            {
                value = default;
                return false;
            }

            _byUse.Remove(node);
            _byUse.AddFirst(node);
            value = node.Value.Value;
            return true;
        }
    }

    /// <summary>Adds or replaces an entry.</summary>
    public void Set(TKey key, TValue value)
    {
        lock (_lock)
        {
            if (_entries.Remove(key, out LinkedListNode<(TKey Key, TValue Value)>? before))
            {
                _byUse.Remove(before);
            }
            else if (_entries.Count >= max)
            {
                _entries.Remove(_byUse.Last!.Value.Key);
                _byUse.RemoveLast();
            }

            _entries.Add(key, _byUse.AddFirst((key, value)));
        }
    }
}
