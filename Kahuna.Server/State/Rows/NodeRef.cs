using System.Diagnostics.CodeAnalysis;
using System.Numerics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Runtime.Intrinsics;

namespace Kahuna.Server.State.Rows;

/// <summary>The kinds of nodes, by how many children there may be.</summary>
internal enum NodeKind
{
    Leaf,
    Four,
    Sixteen,
    FortyEight,
    Full,
}

/// <summary>A row, or a node by its kind and its place in the table of it; neither by default. A value.</summary>
internal readonly record struct NodeRef(uint Value)
{
    private const int KindShift = 29;

    public NodeRef(NodeKind kind, int index)
        : this(((uint)kind << KindShift) | (uint)index)
    {
    }

    public bool IsNone => Value == 0;

    public bool IsLeaf => Value is > 0 and < 1u << KindShift;

    public NodeKind Kind => (NodeKind)(Value >> KindShift);

    public int Index => (int)(Value & ((1u << KindShift) - 1));

    public Row Row => new(Index);

    public static NodeRef Leaf(Row row) => new((uint)row.Value);
}

/// <summary>What every node has.</summary>
internal record struct NodeHead
{
    /// <summary>The key that ends at the node's depth; none when there is none.</summary>
    public Row Ends;

    /// <summary>Bytes that all keys below have in common; the next one is the label of a child.</summary>
    public ushort Depth;

    /// <summary>Children.</summary>
    public ushort Count;
}

/// <summary>A node with at most 4 children, in the order of their labels.</summary>
internal struct Node4
{
    public NodeHead Head;
    public LabelArray Labels;
    public ChildArray Children;

    [UnscopedRef]
    public ReadOnlySpan<byte> Used => ((ReadOnlySpan<byte>)Labels)[..Head.Count];

    [InlineArray(4)]
    public struct LabelArray
    {
        private byte _first;
    }

    [InlineArray(4)]
    public struct ChildArray
    {
        private NodeRef _first;
    }
}

/// <summary>A node with at most 16 children, in the order of their labels.</summary>
internal struct Node16
{
    public NodeHead Head;
    public LabelArray Labels;
    public ChildArray Children;

    [UnscopedRef]
    public ReadOnlySpan<byte> Used => ((ReadOnlySpan<byte>)Labels)[..Head.Count];

    public readonly int IndexOf(byte label)
    {
        uint equal = Vector128.Equals(
            Vector128.LoadUnsafe(in MemoryMarshal.GetReference((ReadOnlySpan<byte>)Labels)), Vector128.Create(label))
            .ExtractMostSignificantBits() & ((1u << Head.Count) - 1);
        return equal == 0 ? -1 : BitOperations.TrailingZeroCount(equal);
    }

    [InlineArray(16)]
    public struct LabelArray
    {
        private byte _first;
    }

    [InlineArray(16)]
    public struct ChildArray
    {
        private NodeRef _first;
    }
}

/// <summary>A node with at most 48 children: for each label the place of its child + 1, or 0.</summary>
internal struct Node48
{
    public NodeHead Head;
    public PlaceArray Places;
    public ChildArray Children;

    [InlineArray(256)]
    public struct PlaceArray
    {
        private byte _first;
    }

    [InlineArray(48)]
    public struct ChildArray
    {
        private NodeRef _first;
    }
}

/// <summary>A node with a place for each label.</summary>
internal struct Node256
{
    public NodeHead Head;
    public ChildArray Children;

    [InlineArray(256)]
    public struct ChildArray
    {
        private NodeRef _first;
    }
}
