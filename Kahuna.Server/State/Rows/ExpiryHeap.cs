using Kahuna.Server.Primitives;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// The keys that expire, by deadline: a heap with four children per node in a table of structs. Each key's row knows
/// its place, so a deadline is changed or removed without a search. Equal deadlines are ordered by row, which is the
/// same on every node, so that every node removes the same keys in the same order. Place 0 is not used. Owned by one
/// <see cref="KeyStore"/>; not thread-safe.
/// </summary>
internal sealed class ExpiryHeap(KeyTable keys)
{
    private const int Children = 4;

    private readonly ChunkedTable<Node> _nodes = new();
    private int _count;

    /// <summary>Keys that expire.</summary>
    public int Count => _count;

    /// <summary>Bytes of the table.</summary>
    public long Bytes => _nodes.Bytes;

    /// <summary>The key with the earliest deadline; 0 when none expires.</summary>
    public int First => _count == 0 ? 0 : _nodes[1].Key;

    /// <summary>Deadline of a key that expires, in cluster time.</summary>
    public long DeadlineOf(in KeyEntry entry) => _nodes[entry.ExpirySlot].DeadlineMs;

    /// <summary>True when the key expires and its deadline is not after <paramref name="timeMs"/>.</summary>
    public bool HasPassed(in KeyEntry entry, long timeMs) =>
        entry.ExpirySlot != 0 && _nodes[entry.ExpirySlot].DeadlineMs <= timeMs;

    /// <summary>True when some key's deadline is not after <paramref name="timeMs"/>.</summary>
    public bool AnyPassed(long timeMs) => _count > 0 && _nodes[1].DeadlineMs <= timeMs;

    /// <summary>
    /// How many keys' deadlines have passed, counted up to <paramref name="countMax"/>: linear in the result.
    /// </summary>
    public int CountPassed(long timeMs, int countMax) => CountPassed(1, timeMs, countMax);

    /// <summary>Adds keys whose deadline has passed, in no order, until there are so many.</summary>
    public void CollectPassed(long timeMs, int countMax, List<int> passed) =>
        CollectPassed(1, timeMs, countMax, passed);

    /// <summary>Gives a key a deadline, or another one.</summary>
    public void Set(int key, long deadlineMs)
    {
        ref KeyEntry entry = ref keys[key];
        int slot = entry.ExpirySlot;
        if (slot == 0)
        {
            slot = ++_count;
            while (_nodes.Count <= slot)
            {
                _nodes.Add();
            }
        }
        else
        {
            InvariantException.Require(slot <= _count && _nodes[slot].Key == key, "a row knows its place in its heap");
        }

        Place(new Node { DeadlineMs = deadlineMs, Key = key }, slot);
    }

    /// <summary>Takes a key out that expires.</summary>
    public void Remove(int key)
    {
        ref KeyEntry entry = ref keys[key];
        int slot = entry.ExpirySlot;
        InvariantException.Require(
            slot > 0 && slot <= _count && _nodes[slot].Key == key, "a row knows its place in its heap");
        entry.ExpirySlot = 0;
        Node last = _nodes[_count--];
        if (slot <= _count)
        {
            Place(last, slot);
        }
    }

    private int CountPassed(int slot, long timeMs, int countMax)
    {
        if (countMax <= 0 || slot > _count || _nodes[slot].DeadlineMs > timeMs)
        {
            return 0;
        }

        int counted = 1;
        int child = ((slot - 1) * Children) + 2;
        for (int i = 0; i < Children; i++)
        {
            counted += CountPassed(child + i, timeMs, countMax - counted);
        }

        return counted;
    }

    /// <summary>What is below a place is not earlier than the place.</summary>
    private void CollectPassed(int slot, long timeMs, int countMax, List<int> passed)
    {
        if (slot > _count || passed.Count >= countMax || _nodes[slot].DeadlineMs > timeMs)
        {
            return;
        }

        passed.Add(_nodes[slot].Key);
        int child = ((slot - 1) * Children) + 2;
        for (int i = 0; i < Children; i++)
        {
            CollectPassed(child + i, timeMs, countMax, passed);
        }
    }

    /// <summary>Puts a node at a free place or above or below it, wherever the order wants it.</summary>
    private void Place(Node node, int slot)
    {
        int start = slot;
        while (slot > 1)
        {
            int parent = ((slot - 2) / Children) + 1;
            Node above = _nodes[parent];
            if (!IsBefore(in node, in above))
            {
                break;
            }

            Put(above, slot);
            slot = parent;
        }

        if (slot == start)
        {
            slot = SinkHole(in node, slot);
        }

        Put(node, slot);
    }

    /// <summary>Moves the free place down until <paramref name="node"/> may stand there.</summary>
    private int SinkHole(in Node node, int slot)
    {
        while (true)
        {
            int child = ((slot - 1) * Children) + 2;
            int end = Math.Min(child + Children - 1, _count);
            if (child > _count)
            {
                return slot;
            }

            int least = child;
            while (++child <= end)
            {
                if (IsBefore(in _nodes[child], in _nodes[least]))
                {
                    least = child;
                }
            }

            if (!IsBefore(in _nodes[least], in node))
            {
                return slot;
            }

            Put(_nodes[least], slot);
            slot = least;
        }
    }

    private void Put(Node node, int slot)
    {
        _nodes[slot] = node;
        keys[node.Key].ExpirySlot = slot;
    }

    private static bool IsBefore(in Node a, in Node b) =>
        a.DeadlineMs != b.DeadlineMs ? a.DeadlineMs < b.DeadlineMs : a.Key < b.Key;

    private struct Node
    {
        public long DeadlineMs;
        public int Key;
    }
}
