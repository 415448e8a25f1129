using System.Diagnostics;
using System.Runtime.CompilerServices;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// The keys of a partition in the order of their bytes: an adaptive radix tree (Leis, Kemper, Neumann 2013) whose
/// leaves are rows. It holds no bytes of keys: a node says at which byte its keys differ, and the bytes are read from
/// the table. Owned by one <see cref="KeyStore"/>; not thread-safe.
/// </summary>
/// <remarks>
/// All keys below a node are equal up to its depth, and differ there; a key that ends there is the node's own row. So a
/// lookup looks at one byte per node, and compares whole keys once, at the leaf. The shape of the tree follows from the
/// keys in it alone, but for the kinds of nodes that have become emptier.
/// </remarks>
internal sealed class OrderedIndex
{
    private readonly KeyTable _keys;
    private readonly RadixNodes _nodes = new();
    private NodeRef _root;

    public OrderedIndex(KeyTable keys) => _keys = keys;

    /// <summary>Keys in the index.</summary>
    public int Count { get; private set; }

    /// <summary>Bytes of all nodes.</summary>
    public long Bytes => _nodes.Bytes;

    /// <summary>Adds a row whose key is not in the index.</summary>
    public void Add(Row row)
    {
        ReadOnlySpan<byte> key = KeyOf(row);
        Count++;
        if (_root.IsNone)
        {
            _root = NodeRef.Leaf(row);
            return;
        }

        ReadOnlySpan<byte> near = KeyOf(LeafNear(key));
        int shared = key.CommonPrefixLength(near);
        InvariantException.Require(
            shared < key.Length || shared < near.Length, "a key is in the index once");
        ref NodeRef link = ref _root;
        while (!link.IsLeaf && _nodes.Head(link).Depth < shared)
        {
            // Leaf near shares more than this node's keys with the new key, so it lies below the same child.
            link = ref _nodes.Child(link, key[_nodes.Head(link).Depth]);
            Debug.Assert(!Unsafe.IsNullRef(ref link), "the near leaf is below this child");
        }

        if (link.IsLeaf || _nodes.Head(link).Depth > shared)
        {
            link = Split(link, near, shared);
        }

        ref NodeHead head = ref _nodes.Head(link);
        if (key.Length == shared)
        {
            InvariantException.Require(head.Ends.IsNone, "one key ends at a node");
            head.Ends = row;
        }
        else
        {
            link = _nodes.Add(link, key[shared], NodeRef.Leaf(row));
        }
    }

    /// <summary>Takes a row away whose key is in the index.</summary>
    public void Remove(Row row)
    {
        ReadOnlySpan<byte> key = KeyOf(row);
        Count--;
        ref NodeRef parent = ref Unsafe.NullRef<NodeRef>();
        ref NodeRef link = ref _root;
        while (!link.IsNone && !link.IsLeaf)
        {
            ref NodeHead head = ref _nodes.Head(link);
            if (key.Length == head.Depth)
            {
                InvariantException.Require(head.Ends == row, "a row is found by its key");
                head.Ends = Row.None;
                link = _nodes.Collapsed(link);
                return;
            }

            InvariantException.Require(key.Length > head.Depth, "a row is found by its key");
            parent = ref link;
            link = ref _nodes.Child(link, key[head.Depth]);
            InvariantException.Require(!Unsafe.IsNullRef(ref link), "a row is found by its key");
        }

        InvariantException.Require(link.IsLeaf && link.Row == row, "a row is found by its key");
        if (Unsafe.IsNullRef(ref parent))
        {
            _root = default;
            return;
        }

        parent = _nodes.Remove(parent, key[_nodes.Head(parent).Depth]);
        parent = _nodes.Collapsed(parent);
    }

    /// <summary>Fills <paramref name="rows"/> with the rows of the next keys, in ascending order.</summary>
    /// <param name="from">The first key that counts.</param>
    /// <param name="isInclusive">False: only keys after <paramref name="from"/>.</param>
    /// <returns>How many rows were filled; fewer than asked for: there are no more keys.</returns>
    public int Ascend(ReadOnlySpan<byte> from, bool isInclusive, Span<Row> rows)
    {
        Reading reading = new(from, isInclusive, rows);
        if (!_root.IsNone && rows.Length > 0)
        {
            Seek(ref reading);
            Ascend(_root, isEdge: true, ref reading);
        }

        return reading.Filled;
    }

    /// <summary>The same in descending order, from a key downwards; an empty key stands for the end of all.</summary>
    public int Descend(ReadOnlySpan<byte> from, bool isInclusive, Span<Row> rows)
    {
        Reading reading = new(from, isInclusive, rows);
        if (!_root.IsNone && rows.Length > 0)
        {
            Seek(ref reading);
            Descend(_root, isEdge: from.Length > 0, ref reading);
        }

        return reading.Filled;
    }

    private ReadOnlySpan<byte> KeyOf(Row row) => _keys.Key(in _keys[row]);

    /// <summary>
    /// A key in the index that may share the longest prefix with this key. Bytes that all keys below a node share are
    /// not compared; the caller compares the whole key.
    /// </summary>
    private Row LeafNear(ReadOnlySpan<byte> key)
    {
        NodeRef node = _root;
        while (!node.IsLeaf)
        {
            ref NodeHead head = ref _nodes.Head(node);
            if (key.Length > head.Depth && !_nodes.Find(node, key[head.Depth]).IsNone)
            {
                node = _nodes.Find(node, key[head.Depth]);
            }
            else if (!head.Ends.IsNone)
            {
                return head.Ends;
            }
            else
            {
                _nodes.TryNext(node, 0, out _, out node);
            }
        }

        return node.Row;
    }

    /// <summary>A new node above what lies below a link, at the byte at which another key differs.</summary>
    private NodeRef Split(NodeRef below, ReadOnlySpan<byte> near, int depth)
    {
        NodeRef node = _nodes.Create(depth);
        if (near.Length > depth)
        {
            return _nodes.Add(node, near[depth], below);
        }

        InvariantException.Require(below.IsLeaf, "only a leaf ends before its node");
        _nodes.Head(node).Ends = below.Row;
        return node;
    }

    /// <summary>Finds out how far the key of a reading agrees with any key.</summary>
    private void Seek(ref Reading reading)
    {
        ReadOnlySpan<byte> near = KeyOf(LeafNear(reading.From));
        reading.Shared = reading.From.CommonPrefixLength(near);
        reading.Sign = reading.From.SequenceCompareTo(near);
    }

    /// <summary>False when the reading is full.</summary>
    /// <param name="node">What is read.</param>
    /// <param name="isEdge">All nodes above are on the way to the first key that counts.</param>
    /// <param name="reading">What is read so far.</param>
    private bool Ascend(NodeRef node, bool isEdge, ref Reading reading)
    {
        if (node.IsLeaf)
        {
            if (isEdge)
            {
                int sign = KeyOf(node.Row).SequenceCompareTo(reading.From);
                return sign < 0 || (sign == 0 && !reading.IsInclusive) || reading.Take(node.Row);
            }

            return reading.Take(node.Row);
        }

        ref NodeHead head = ref _nodes.Head(node);
        int depth = head.Depth;
        int first = 0;
        if (isEdge)
        {
            if (depth > reading.Shared)
            {
                // All keys below agree with the near key further than the first key does.
                if (reading.Sign > 0)
                {
                    return true;
                }

                isEdge = false;
            }
            else if (depth < reading.From.Length)
            {
                first = reading.From[depth];
            }
        }

        bool endsBefore = isEdge && (depth < reading.From.Length || !reading.IsInclusive);
        if (!head.Ends.IsNone && !endsBefore && !reading.Take(head.Ends))
        {
            return false;
        }

        bool hasEdge = isEdge && depth < reading.From.Length;
        while (_nodes.TryNext(node, first, out int label, out NodeRef child))
        {
            if (!Ascend(child, hasEdge && label == reading.From[depth], ref reading))
            {
                return false;
            }

            first = label + 1;
        }

        return true;
    }

    private bool Descend(NodeRef node, bool isEdge, ref Reading reading)
    {
        if (node.IsLeaf)
        {
            if (isEdge)
            {
                int sign = KeyOf(node.Row).SequenceCompareTo(reading.From);
                return sign > 0 || (sign == 0 && !reading.IsInclusive) || reading.Take(node.Row);
            }

            return reading.Take(node.Row);
        }

        ref NodeHead head = ref _nodes.Head(node);
        int depth = head.Depth;
        int last = byte.MaxValue;
        bool endsAfter = false;
        if (isEdge)
        {
            if (depth > reading.Shared)
            {
                if (reading.Sign < 0)
                {
                    return true;
                }

                isEdge = false;
            }
            else if (depth < reading.From.Length)
            {
                last = reading.From[depth];
            }
            else
            {
                // The keys below begin with the first key and go on: they come after it.
                last = -1;
                endsAfter = !reading.IsInclusive;
            }
        }

        while (_nodes.TryPrevious(node, last, out int label, out NodeRef child))
        {
            if (!Descend(child, isEdge && label == reading.From[depth], ref reading))
            {
                return false;
            }

            last = label - 1;
        }

        return head.Ends.IsNone || endsAfter || reading.Take(head.Ends);
    }

    /// <summary>What one call has read.</summary>
    private ref struct Reading(ReadOnlySpan<byte> from, bool isInclusive, Span<Row> rows)
    {
        private readonly Span<Row> _rows = rows;

        public readonly ReadOnlySpan<byte> From = from;

        public readonly bool IsInclusive = isInclusive;

        /// <summary>Bytes of the first key that some key agrees with.</summary>
        public int Shared;

        /// <summary>The order of the first key and that key.</summary>
        public int Sign;

        public int Filled;

        /// <summary>False when this was the last row that fits.</summary>
        public bool Take(Row row)
        {
            _rows[Filled++] = row;
            return Filled < _rows.Length;
        }
    }
}
