using System.Runtime.CompilerServices;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// The nodes of an <see cref="OrderedIndex"/>: four kinds, for up to 4, 16, 48 and 256 children, in tables of structs.
/// A node that is full becomes one of the next kind, and one that is nearly empty one of the kind before; its number
/// changes then, and the caller stores the new one. Owned by its index; not thread-safe.
/// </summary>
internal sealed class RadixNodes
{
    private readonly NodeTable<Node4> _four = new(rowsLog2: 9);
    private readonly NodeTable<Node16> _sixteen = new(rowsLog2: 8);
    private readonly NodeTable<Node48> _fortyEight = new(rowsLog2: 6);
    private readonly NodeTable<Node256> _full = new(rowsLog2: 5);

    /// <summary>Bytes of all tables.</summary>
    public long Bytes => _four.Bytes + _sixteen.Bytes + _fortyEight.Bytes + _full.Bytes;

    /// <summary>A node without children.</summary>
    public NodeRef Create(int depth)
    {
        int index = _four.Take();
        _four[index] = new Node4 { Head = new NodeHead { Depth = checked((ushort)depth) } };
        return new NodeRef(NodeKind.Four, index);
    }

    /// <summary>What all kinds of nodes have.</summary>
    public ref NodeHead Head(NodeRef node)
    {
        switch (node.Kind)
        {
            case NodeKind.Four:
                return ref _four[node.Index].Head;
            case NodeKind.Sixteen:
                return ref _sixteen[node.Index].Head;
            case NodeKind.FortyEight:
                return ref _fortyEight[node.Index].Head;
            default:
                return ref _full[node.Index].Head;
        }
    }

    /// <summary>The child of a label; none when there is none.</summary>
    public NodeRef Find(NodeRef node, byte label)
    {
        ref NodeRef child = ref Child(node, label);
        return Unsafe.IsNullRef(ref child) ? default : child;
    }

    /// <summary>Where the child of a label is stored; a null reference when there is none.</summary>
    public ref NodeRef Child(NodeRef node, byte label)
    {
        switch (node.Kind)
        {
            case NodeKind.Four:
                {
                    ref Node4 four = ref _four[node.Index];
                    int place = four.Used.IndexOf(label);
                    return ref place < 0 ? ref Unsafe.NullRef<NodeRef>() : ref four.Children[place];
                }

            case NodeKind.Sixteen:
                {
                    ref Node16 sixteen = ref _sixteen[node.Index];
                    int place = sixteen.IndexOf(label);
                    return ref place < 0 ? ref Unsafe.NullRef<NodeRef>() : ref sixteen.Children[place];
                }

            case NodeKind.FortyEight:
                {
                    ref Node48 fortyEight = ref _fortyEight[node.Index];
                    int place = fortyEight.Places[label];
                    return ref place == 0 ? ref Unsafe.NullRef<NodeRef>() : ref fortyEight.Children[place - 1];
                }

            default:
                {
                    ref NodeRef child = ref _full[node.Index].Children[label];
                    return ref child.IsNone ? ref Unsafe.NullRef<NodeRef>() : ref child;
                }
        }
    }

    /// <summary>The child with the lowest label from one on. False when there is none.</summary>
    public bool TryNext(NodeRef node, int from, out int label, out NodeRef child)
    {
        switch (node.Kind)
        {
            case NodeKind.Four:
                return TryNext(_four[node.Index].Used, _four[node.Index].Children, from, out label, out child);
            case NodeKind.Sixteen:
                return TryNext(_sixteen[node.Index].Used, _sixteen[node.Index].Children, from, out label, out child);
            default:
                for (label = from; label <= byte.MaxValue; label++)
                {
                    child = Find(node, (byte)label);
                    if (!child.IsNone)
                    {
                        return true;
                    }
                }

                child = default;
                return false;
        }
    }

    /// <summary>The child with the highest label up to one. False when there is none.</summary>
    public bool TryPrevious(NodeRef node, int to, out int label, out NodeRef child)
    {
        switch (node.Kind)
        {
            case NodeKind.Four:
                return TryPrevious(_four[node.Index].Used, _four[node.Index].Children, to, out label, out child);
            case NodeKind.Sixteen:
                return TryPrevious(_sixteen[node.Index].Used, _sixteen[node.Index].Children, to, out label, out child);
            default:
                for (label = to; label >= 0; label--)
                {
                    child = Find(node, (byte)label);
                    if (!child.IsNone)
                    {
                        return true;
                    }
                }

                child = default;
                return false;
        }
    }

    /// <summary>Adds a child whose label is not in use. Returns the node, which may be another one.</summary>
    public NodeRef Add(NodeRef node, byte label, NodeRef child)
    {
        if (Head(node).Count == CapacityOf(node.Kind))
        {
            node = Moved(node, node.Kind + 1);
        }

        switch (node.Kind)
        {
            case NodeKind.Four:
                Insert(_four[node.Index].Labels, _four[node.Index].Children, Head(node).Count, label, child);
                break;
            case NodeKind.Sixteen:
                Insert(_sixteen[node.Index].Labels, _sixteen[node.Index].Children, Head(node).Count, label, child);
                break;
            case NodeKind.FortyEight:
                {
                    ref Node48 fortyEight = ref _fortyEight[node.Index];
                    int place = ((ReadOnlySpan<NodeRef>)fortyEight.Children).IndexOf(default(NodeRef));
                    InvariantException.Require(place >= 0 && fortyEight.Places[label] == 0, "a label has one child");
                    fortyEight.Children[place] = child;
                    fortyEight.Places[label] = (byte)(place + 1);
                    break;
                }

            default:
                InvariantException.Require(_full[node.Index].Children[label].IsNone, "a label has one child");
                _full[node.Index].Children[label] = child;
                break;
        }

        Head(node).Count++;
        return node;
    }

    /// <summary>Takes a child away. Returns the node, which may be another one.</summary>
    public NodeRef Remove(NodeRef node, byte label)
    {
        switch (node.Kind)
        {
            case NodeKind.Four:
                Delete(_four[node.Index].Labels, _four[node.Index].Children, Head(node).Count, label);
                break;
            case NodeKind.Sixteen:
                Delete(_sixteen[node.Index].Labels, _sixteen[node.Index].Children, Head(node).Count, label);
                break;
            case NodeKind.FortyEight:
                {
                    ref Node48 fortyEight = ref _fortyEight[node.Index];
                    int place = fortyEight.Places[label];
                    InvariantException.Require(place > 0, "a child that goes is there");
                    fortyEight.Children[place - 1] = default;
                    fortyEight.Places[label] = 0;
                    break;
                }

            default:
                InvariantException.Require(!_full[node.Index].Children[label].IsNone, "a child that goes is there");
                _full[node.Index].Children[label] = default;
                break;
        }

        int count = --Head(node).Count;
        return node.Kind > NodeKind.Four && count <= CapacityOf(node.Kind - 1) * 3 / 4
            ? Moved(node, node.Kind - 1)
            : node;
    }

    /// <summary>
    /// The node, or, where it has one child or one row left, that instead: a node tells at least two keys apart.
    /// </summary>
    public NodeRef Collapsed(NodeRef node)
    {
        ref NodeHead head = ref Head(node);
        if (head.Count + (head.Ends.IsNone ? 0 : 1) > 1)
        {
            return node;
        }

        NodeRef left = NodeRef.Leaf(head.Ends);
        if (head.Ends.IsNone)
        {
            InvariantException.Require(TryNext(node, 0, out _, out left), "a node is not empty");
        }

        Free(node);
        return left;
    }

    private static int CapacityOf(NodeKind kind) => kind switch
    {
        NodeKind.Four => 4,
        NodeKind.Sixteen => 16,
        NodeKind.FortyEight => 48,
        _ => 256,
    };

    /// <summary>The same node as one of another kind.</summary>
    private NodeRef Moved(NodeRef node, NodeKind kind)
    {
        NodeRef moved = new(kind, kind switch
        {
            NodeKind.Four => _four.Take(),
            NodeKind.Sixteen => _sixteen.Take(),
            NodeKind.FortyEight => _fortyEight.Take(),
            _ => _full.Take(),
        });
        Head(moved) = Head(node) with { Count = 0 };
        int label = -1;
        while (TryNext(node, label + 1, out label, out NodeRef child))
        {
            Add(moved, (byte)label, child);
        }

        Free(node);
        return moved;
    }

    private void Free(NodeRef node)
    {
        switch (node.Kind)
        {
            case NodeKind.Four:
                _four.Free(node.Index);
                break;
            case NodeKind.Sixteen:
                _sixteen.Free(node.Index);
                break;
            case NodeKind.FortyEight:
                _fortyEight.Free(node.Index);
                break;
            default:
                _full.Free(node.Index);
                break;
        }
    }

    private static bool TryNext(
        ReadOnlySpan<byte> labels, ReadOnlySpan<NodeRef> children, int from, out int label, out NodeRef child)
    {
        for (int i = 0; i < labels.Length; i++)
        {
            if (labels[i] >= from)
            {
                (label, child) = (labels[i], children[i]);
                return true;
            }
        }

        (label, child) = (byte.MaxValue + 1, default);
        return false;
    }

    private static bool TryPrevious(
        ReadOnlySpan<byte> labels, ReadOnlySpan<NodeRef> children, int to, out int label, out NodeRef child)
    {
        for (int i = labels.Length - 1; i >= 0; i--)
        {
            if (labels[i] <= to)
            {
                (label, child) = (labels[i], children[i]);
                return true;
            }
        }

        (label, child) = (-1, default);
        return false;
    }

    private static void Insert(Span<byte> labels, Span<NodeRef> children, int count, byte label, NodeRef child)
    {
        int place = 0;
        while (place < count && labels[place] < label)
        {
            place++;
        }

        InvariantException.Require(place == count || labels[place] != label, "a label has one child");
        labels[place..count].CopyTo(labels[(place + 1)..]);
        children[place..count].CopyTo(children[(place + 1)..]);
        labels[place] = label;
        children[place] = child;
    }

    private static void Delete(Span<byte> labels, Span<NodeRef> children, int count, byte label)
    {
        int place = labels[..count].IndexOf(label);
        InvariantException.Require(place >= 0, "a child that goes is there");
        labels[(place + 1)..count].CopyTo(labels[place..]);
        children[(place + 1)..count].CopyTo(children[place..]);
    }
}

/// <summary>
/// Nodes of one kind, in chunks that never move. Free nodes are reused. Owned by <see cref="RadixNodes"/>.
/// </summary>
internal sealed class NodeTable<T>(int rowsLog2)
    where T : unmanaged
{
    private readonly List<int> _free = [];
    private T[][] _chunks = [];
    private int _count;

    public long Bytes => ((long)_chunks.Length << rowsLog2) * Unsafe.SizeOf<T>();

    public ref T this[int index] => ref _chunks[index >> rowsLog2][index & ((1 << rowsLog2) - 1)];

    /// <summary>A node that holds zeros.</summary>
    public int Take()
    {
        int index;
        if (_free.Count > 0)
        {
            index = _free[^1];
            _free.RemoveAt(_free.Count - 1);
        }
        else
        {
            index = _count++;
            if (index >> rowsLog2 == _chunks.Length)
            {
                _chunks = [.. _chunks, PinnedMemory.Allocate<T>(1 << rowsLog2)];
            }
        }

        this[index] = default;
        return index;
    }

    public void Free(int index) => _free.Add(index);
}
