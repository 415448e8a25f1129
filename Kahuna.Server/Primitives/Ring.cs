using System.Numerics;
using System.Runtime.CompilerServices;

namespace Kahuna.Server.Primitives;

/// <summary>A growable queue of structs over one array; allocates only when it grows. Owned by one loop.</summary>
internal sealed class Ring<T>(int capacity = 64)
    where T : struct
{
    private T[] _items = new T[(int)BitOperations.RoundUpToPowerOf2((uint)capacity)];
    private int _head;

    public int Count { get; private set; }

    /// <summary>The item that would be taken <paramref name="offset"/> places after the next one.</summary>
    public ref T this[int offset] => ref _items[(_head + offset) & (_items.Length - 1)];

    public void Add(in T item)
    {
        if (Count == _items.Length)
        {
            Grow();
        }

        _items[(_head + Count) & (_items.Length - 1)] = item;
        Count++;
    }

    public T Take()
    {
        InvariantException.Require(Count > 0, "nothing is taken from an empty queue");
        ref T slot = ref _items[_head];
        T item = slot;
        if (RuntimeHelpers.IsReferenceOrContainsReferences<T>())
        {
            slot = default;
        }

        _head = (_head + 1) & (_items.Length - 1);
        Count--;
        return item;
    }

    /// <summary>Drops the <paramref name="count"/> items that were added last.</summary>
    public void RemoveLast(int count)
    {
        InvariantException.Require(count >= 0 && count <= Count, "only what is there is removed");
        for (int i = Count - count; i < Count; i++)
        {
            this[i] = default;
        }

        Count -= count;
    }

    private void Grow()
    {
        T[] larger = new T[_items.Length * 2];
        for (int i = 0; i < Count; i++)
        {
            larger[i] = this[i];
        }

        _items = larger;
        _head = 0;
    }
}
