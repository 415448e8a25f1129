using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// Long polls that are held back: by what they wait for, and by when their hold ends. It knows nothing of what they
/// ask. Owned by one group; not thread-safe.
/// </summary>
internal sealed class HeldPolls
{
    /// <summary>Fewer ended polls than this are not worth a walk over all.</summary>
    private const int EndedMin = 1024;

    private readonly LongPolls _byKey = new();
    private readonly PriorityQueue<LongPoll, long> _byEnd = new();
    private int _ended;

    /// <summary>Polls that are held.</summary>
    public int Held => _byEnd.Count - _ended;

    /// <summary>Places that polls take up here, also those that have ended.</summary>
    public int Places => _byEnd.Count;

    /// <summary>Some are to be looked at, because what they wait for has changed.</summary>
    public bool HasChanged => _byKey.HasChanged;

    /// <summary>Holds a poll until what it waits for changes, at the longest until its hold ends.</summary>
    public void Hold(LongPoll poll, long endMs)
    {
        poll.Sink.HoldBack(1, poll.Bytes);
        _byKey.Add(poll);
        _byEnd.Enqueue(poll, endMs);
    }

    /// <summary>What a key stands for has changed: the polls that wait for it are to be looked at.</summary>
    public void Change(long key) => _byKey.Change(key);

    /// <summary>Takes the next poll that is to be looked at out of its list. It may have ended.</summary>
    public bool TryTakeChanged(out LongPoll poll) => _byKey.TryTakeChanged(out poll);

    /// <summary>A poll that was looked at waits on: nothing has happened that it would be told.</summary>
    public void Keep(LongPoll poll) => _byKey.Add(poll);

    /// <summary>The first poll that waits for this; null when there is none.</summary>
    public LongPoll? First(long key) => _byKey.First(key);

    /// <summary>The hold of some poll is over.</summary>
    public bool IsOverdue(long nowMs) => _byEnd.TryPeek(out _, out long endMs) && endMs <= nowMs;

    /// <summary>Takes the poll whose hold ends first. False when it has ended already.</summary>
    public bool TryTakeOverdue(out LongPoll poll)
    {
        poll = _byEnd.Dequeue();
        if (poll.HasEnded)
        {
            _ended--;
            InvariantException.Require(_ended >= 0 && _ended <= _byEnd.Count, "ended polls are counted");
            return false;
        }

        return true;
    }

    /// <summary>The hold of a poll is over, and it was answered.</summary>
    public void EndOverdue(LongPoll poll)
    {
        MarkEnded(poll);
        _byKey.Remove(poll);
    }

    /// <summary>A poll that was taken out of its list was answered, or its caller has gone.</summary>
    public void End(LongPoll poll)
    {
        MarkEnded(poll);
        _ended++;
    }

    /// <summary>As <see cref="End"/>, for a poll that is in its list.</summary>
    public void EndListed(LongPoll poll)
    {
        End(poll);
        _byKey.Remove(poll);
    }

    /// <summary>Forgets all polls. Returns those that had not ended; they have now.</summary>
    public IReadOnlyList<LongPoll> EndAll()
    {
        _byKey.Clear();
        if (_byEnd.Count == 0)
        {
            return [];
        }

        List<LongPoll> open = [];
        foreach ((LongPoll poll, long _) in _byEnd.UnorderedItems)
        {
            if (!poll.HasEnded)
            {
                MarkEnded(poll);
                open.Add(poll);
            }
        }

        _byEnd.Clear();
        _ended = 0;
        return open;
    }

    /// <summary>Gives the places of ended polls back when they are most of all.</summary>
    public void Tidy()
    {
        if (_ended <= EndedMin || _ended <= _byEnd.Count / 2)
        {
            return;
        }

        (LongPoll, long)[] left = [.. _byEnd.UnorderedItems.Where(static item => !item.Element.HasEnded)];
        InvariantException.Require(left.Length == Held, "ended polls are counted");
        _byEnd.Clear();
        _byEnd.EnqueueRange(left);
        _ended = 0;
    }

    private static void MarkEnded(LongPoll poll)
    {
        InvariantException.Require(!poll.HasEnded, "a long poll ends once");
        poll.HasEnded = true;
        poll.Sink.HoldBack(-1, -poll.Bytes);
    }
}
