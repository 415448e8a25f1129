using Kahuna.Server.Primitives;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// Which keys go when there is no room: SIEVE (Zhang et al., "SIEVE is Simpler than LRU", 2024). Keys stand in the
/// order in which they were added; a hand goes from the oldest to the newest, lets those stay that were used since it
/// came by last, and points at the first that was not. Known to this node only: a leader proposes the keys by name.
/// Owned by one <see cref="KeyStore"/>; not thread-safe.
/// </summary>
internal sealed class EvictionQueue
{
    /// <summary>Rows that the hand passes at most in one search: bounded work per tick.</summary>
    private const int StepsMax = 1 << 16;

    private readonly ChunkedTable<Node> _nodes = new();
    private Row _newest;
    private Row _oldest;
    private Row _hand;

    /// <summary>Bytes of the table.</summary>
    public long Bytes => _nodes.Bytes;

    /// <summary>Keys in the queue.</summary>
    public int Count { get; private set; }

    /// <summary>A key is there; it counts as not used.</summary>
    public void Add(Row row)
    {
        while (_nodes.Count <= row.Value)
        {
            _nodes.Add();
        }

        InvariantException.Require(!_nodes[row.Value].IsIn, "a key stands in the queue once");
        _nodes[row.Value] = new Node { Older = _newest, IsIn = true };
        if (!_newest.IsNone)
        {
            _nodes[_newest.Value].Newer = row;
        }
        else
        {
            _oldest = row;
        }

        _newest = row;
        Count++;
    }

    /// <summary>A key was read or written.</summary>
    public void Touch(Row row)
    {
        if (row.Value < _nodes.Count)
        {
            _nodes[row.Value].IsUsed = true;
        }
    }

    /// <summary>A key is gone.</summary>
    public void Remove(Row row)
    {
        if (row.Value >= _nodes.Count || !_nodes[row.Value].IsIn)
        {
            return;
        }

        Node node = _nodes[row.Value];
        InvariantException.Require(
            node.Newer.IsNone ? _newest == row : _nodes[node.Newer.Value].Older == row,
            "the newer neighbour names the key");
        InvariantException.Require(
            node.Older.IsNone ? _oldest == row : _nodes[node.Older.Value].Newer == row,
            "the older neighbour names the key");
        if (!node.Newer.IsNone)
        {
            _nodes[node.Newer.Value].Older = node.Older;
        }
        else
        {
            _newest = node.Older;
        }

        if (!node.Older.IsNone)
        {
            _nodes[node.Older.Value].Newer = node.Newer;
        }
        else
        {
            _oldest = node.Newer;
        }

        _hand = _hand == row ? node.Newer : _hand;
        _nodes[row.Value] = default;
        Count--;
    }

    /// <summary>
    /// The next key that should go, which stays in the queue until it has; 0 when none was found this time.
    /// </summary>
    public Row Next()
    {
        for (int step = 0; step < StepsMax && Count > 0; step++)
        {
            Row row = !_hand.IsNone ? _hand : _oldest;
            ref Node node = ref _nodes[row.Value];
            _hand = node.Newer;
            if (!node.IsUsed)
            {
                return row;
            }

            node.IsUsed = false;
        }

        return Row.None;
    }

    private struct Node
    {
        public Row Newer;
        public Row Older;
        public bool IsIn;
        public bool IsUsed;
    }
}
