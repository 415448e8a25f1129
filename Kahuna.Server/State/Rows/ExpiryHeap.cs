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
    public Row First => _count == 0 ? Row.None : _nodes[1].Key;

    /// <summary>Deadline of a key that expires, in cluster time.</summary>
    public ClusterTime DeadlineOf(in KeyEntry entry) => _nodes[entry.ExpirySlot].Deadline;

    /// <summary>True when the key expires and its deadline is not after <paramref name="time"/>.</summary>
    public bool HasPassed(in KeyEntry entry, ClusterTime time) =>
        entry.ExpirySlot != 0 && _nodes[entry.ExpirySlot].Deadline <= time;

    /// <summary>True when some key's deadline is not after <paramref name="time"/>.</summary>
    public bool AnyPassed(ClusterTime time) => _count > 0 && _nodes[1].Deadline <= time;

    /// <summary>
    /// How many keys' deadlines have passed, counted up to <paramref name="countMax"/>: linear in the result.
    /// </summary>
    public int CountPassed(ClusterTime time, int countMax) => CountPassed(1, time, countMax);

    /// <summary>Adds keys whose deadline has passed, in no order, up to this many.</summary>
    public void CollectPassed(ClusterTime time, int countMax, List<Row> passed) =>
        CollectPassed(1, time, countMax, passed);

    /// <summary>Gives a key a deadline, or another one.</summary>
    public void Set(Row key, ClusterTime deadline)
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

        Place(new Node { Deadline = deadline, Key = key }, slot);
    }

    /// <summary>Takes a key out that expires.</summary>
    public void Remove(Row key)
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

    private int CountPassed(int slot, ClusterTime time, int countMax)
    {
        if (countMax <= 0 || slot > _count || _nodes[slot].Deadline > time)
        {
            return 0;
        }

        int counted = 1;
        int child = ((slot - 1) * Children) + 2;
        for (int i = 0; i < Children; i++)
        {
            counted += CountPassed(child + i, time, countMax - counted);
        }

        return counted;
    }

    /// <summary>What is below a place is not earlier than the place.</summary>
    private void CollectPassed(int slot, ClusterTime time, int countMax, List<Row> passed)
    {
        if (slot > _count || passed.Count >= countMax || _nodes[slot].Deadline > time)
        {
            return;
        }

        passed.Add(_nodes[slot].Key);
        int child = ((slot - 1) * Children) + 2;
        for (int i = 0; i < Children; i++)
        {
            CollectPassed(child + i, time, countMax, passed);
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
        a.Deadline != b.Deadline ? a.Deadline < b.Deadline : a.Key < b.Key;

    private struct Node
    {
        public ClusterTime Deadline;
        public Row Key;
    }
}

/// <summary>Which rows stand in one order of time. Values are not stored.</summary>
internal enum RowHeap : byte
{
    /// <summary>Keys that expire, by their deadline.</summary>
    Deadlines,

    /// <summary>Sessions that remember outcomes, by the time of their last command.</summary>
    LiveSessions,

    /// <summary>Sessions that have no more than their number left, by the time of their last command.</summary>
    IdleSessions,

    /// <summary>Idempotency keys, by the time of their last use.</summary>
    IdempotencyKeys,

    /// <summary>Claims that hold a lock, by the end of their lease.</summary>
    Leases,

    /// <summary>Claims that wait for a lock, by the time at which somebody has to look whether they still do.</summary>
    Waiters,

    /// <summary>Locks whose next claims are still to be granted, by the time since when.</summary>
    Grants,

    /// <summary>Prepared parts of transactions, by the time after which they may be aborted.</summary>
    PreparedParts,

    /// <summary>Decisions about transactions, by the time at which somebody looks after them.</summary>
    Decisions,
}

/// <summary>
/// The rows that have a time, one order for each <see cref="RowHeap"/>. Owned by one <see cref="KeyStore"/>; not
/// thread-safe.
/// </summary>
internal sealed class RowHeaps
{
    private readonly ExpiryHeap[] _heaps;

    public RowHeaps(KeyTable keys)
    {
        _heaps = new ExpiryHeap[(int)RowHeap.Decisions + 1];
        for (int i = 0; i < _heaps.Length; i++)
        {
            _heaps[i] = new ExpiryHeap(keys);
        }

        Deadlines = this[RowHeap.Deadlines];
    }

    /// <summary>The heap of keys that expire, which every write asks.</summary>
    public ExpiryHeap Deadlines { get; }

    /// <summary>Bytes of all of them.</summary>
    public long Bytes
    {
        get
        {
            long bytes = 0;
            foreach (ExpiryHeap heap in _heaps)
            {
                bytes += heap.Bytes;
            }

            return bytes;
        }
    }

    public ExpiryHeap this[RowHeap heap] => _heaps[(int)heap];
}
