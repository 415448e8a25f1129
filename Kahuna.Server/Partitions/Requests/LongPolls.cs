using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// Long polls by what they wait for, and those among them for which it has happened. Adding one, taking one out and
/// noting a change take the same time however many there are. Owned by one <see cref="HeldPolls"/>; not thread-safe.
/// </summary>
internal sealed class LongPolls
{
    /// <summary>First of those that wait for one thing.</summary>
    private readonly Dictionary<long, LongPoll> _first = [];

    /// <summary>
    /// First of each list whose thing has changed. The lists are whole but for what was taken out since; their first
    /// ones stay until it is their turn.
    /// </summary>
    private readonly Queue<LongPoll> _changed = new();

    /// <summary>The rest of the list that is being taken.</summary>
    private LongPoll? _next;

    /// <summary>Some are to be looked at.</summary>
    public bool HasChanged => _next is not null || _changed.Count > 0;

    /// <summary>Adds one that is in no list, as the first of its list.</summary>
    public void Add(LongPoll read)
    {
        InvariantException.Require(read.Before is null && read.After is null && !read.HasEnded,
            "a long poll that is added is in no list");
        if (_first.TryGetValue(read.Key, out LongPoll? after))
        {
            after.Before = read;
            read.After = after;
        }

        _first[read.Key] = read;
    }

    /// <summary>What a key stands for has changed: those that wait for it are to be looked at.</summary>
    public void Change(long key)
    {
        if (_first.Remove(key, out LongPoll? first))
        {
            _changed.Enqueue(first);
        }
    }

    /// <summary>Takes the next one that is to be looked at out of its list. It may have ended.</summary>
    public bool TryTakeChanged(out LongPoll read)
    {
        LongPoll? next = _next ?? (_changed.TryDequeue(out LongPoll? first) ? first : null);
        read = next!;
        if (next is null)
        {
            return false;
        }

        InvariantException.Require(next.Before is null, "a list is taken from its first on");

        _next = next.After;
        _next?.Before = null;
        next.After = null;
        return true;
    }

    /// <summary>The first of those that wait for one thing, which has not changed; null when there is none.</summary>
    public LongPoll? First(long key) => _first.GetValueOrDefault(key);

    /// <summary>Takes one out of its list that has ended.</summary>
    public void Remove(LongPoll read)
    {
        InvariantException.Require(read.HasEnded, "a long poll leaves its list when it has ended");
        if (read.Before is not null)
        {
            read.Before.After = read.After;
        }
        else if (_first.TryGetValue(read.Key, out LongPoll? first) && first == read)
        {
            if (read.After is null)
            {
                _first.Remove(read.Key);
            }
            else
            {
                _first[read.Key] = read.After;
            }
        }
        else if (_next == read)
        {
            _next = read.After;
        }
        else
        {
            // The first of a list that waits for its turn: it keeps the others.
            return;
        }

        read.After?.Before = read.Before;
        read.Before = null;
        read.After = null;
    }

    /// <summary>Forgets all.</summary>
    public void Clear()
    {
        _first.Clear();
        _changed.Clear();
        _next = null;
    }
}
