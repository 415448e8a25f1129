using System.Numerics;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Raft;

/// <summary>
/// The part of a log that is in memory: consecutive encoded entries in recycled chunks, indexed by a ring of small
/// structs. Entries are added at the end, dropped from the front and cut from the end. In steady state nothing is
/// allocated; only a burst that exceeds the idle chunks allocates. Owned by one <see cref="EntryLog"/>; not
/// thread-safe.
/// </summary>
internal sealed class EntryMemory(LogIndex first)
{
    /// <summary>Some hundred entries of a busy group, yet small enough for a node with a hundred idle groups.</summary>
    public const int ChunkBytes = 256 << 10;

    /// <summary>Idle chunks to keep. Usually as much is dropped as is added; the chunks of a burst are freed.</summary>
    private const int IdleChunksMax = 4;

    private const int SlotsMin = 256;

    private readonly Stack<Chunk> _idle = new();
    private Slot[] _slots = new Slot[SlotsMin];

    // The most entries, and the fewest idle chunks, since the last call of LetGo.
    private int _countMost;
    private int _idleFewest;
    private int _head;
    private int _count;
    private Chunk? _current;
    private ulong _droppedBytes;

    /// <summary>First index in memory. When memory is empty: the next index to add.</summary>
    public LogIndex First { get; private set; } = first;

    /// <summary>Index of the next entry to add.</summary>
    public LogIndex End => First + (ulong)_count;

    /// <summary>Bytes of all entries in memory, encoded.</summary>
    public long Bytes => (long)(EndPosition - _droppedBytes);

    /// <summary>Bytes of all entries added since the start, minus those cut off at the end.</summary>
    public long AddedBytes => (long)EndPosition;

    private ulong EndPosition => _count == 0 ? _droppedBytes : SlotAt(_count - 1).End;

    /// <summary>Reserves space for the next entry. The caller fills all of it with the encoded entry.</summary>
    public Span<byte> Add(int bytes)
    {
        Chunk chunk = ChunkFor(bytes);
        if (_count == _slots.Length)
        {
            Resize(_slots.Length * 2);
        }

        ulong end = EndPosition + (ulong)bytes;
        int offset = chunk.Used;
        _slots[(_head + _count) & (_slots.Length - 1)] = new Slot(chunk, end, offset, bytes);
        _count++;
        _countMost = Math.Max(_countMost, _count);
        chunk.Used = offset + bytes;
        chunk.Entries++;
        return chunk.Bytes.AsSpan(offset, bytes);
    }

    /// <summary>The encoded entry at <paramref name="index"/>.</summary>
    public ReadOnlySpan<byte> Encoded(LogIndex index)
    {
        ref readonly Slot slot = ref SlotAt(Position(index));
        return slot.Chunk.Bytes.AsSpan(slot.Offset, slot.Length);
    }

    /// <summary>Appends <paramref name="count"/> encoded entries to <paramref name="target"/>.</summary>
    public void CopyTo(LogIndex from, int count, ByteBuffer target) =>
        CopyTo(from, count, target.Take(checked((int)BytesBetween(from, from + (ulong)(count - 1)))));

    /// <summary>
    /// Copies <paramref name="count"/> encoded entries, which fill <paramref name="target"/>. Neighbours in one chunk
    /// are copied together.
    /// </summary>
    public void CopyTo(LogIndex from, int count, Span<byte> target)
    {
        int position = Position(from);
        InvariantException.Require(count >= 0 && position + count <= _count, "copied entries are in memory");
        int end = position + count;
        while (position < end)
        {
            Slot slot = SlotAt(position++);
            int length = slot.Length;
            while (position < end
                && SlotAt(position) is var next
                && next.Chunk == slot.Chunk
                && next.Offset == slot.Offset + length)
            {
                length += next.Length;
                position++;
            }

            slot.Chunk.Bytes.AsSpan(slot.Offset, length).CopyTo(target);
            target = target[length..];
        }

        InvariantException.Require(target.IsEmpty, "copied entries fill their room");
    }

    /// <summary>Encoded bytes of entries [from, through]; 0 when the range is empty.</summary>
    public long BytesBetween(LogIndex from, LogIndex through)
    {
        if (through < from)
        {
            return 0;
        }

        int position = Position(from);
        ulong before = position == 0 ? _droppedBytes : SlotAt(position - 1).End;
        return (long)(SlotAt(Position(through)).End - before);
    }

    /// <summary>
    /// Number of entries from <paramref name="from"/> on that fit into <paramref name="bytesMax"/>; at least one.
    /// </summary>
    public int CountWithin(LogIndex from, int bytesMax)
    {
        int position = Position(from);
        ulong limit = (position == 0 ? _droppedBytes : SlotAt(position - 1).End) + (ulong)bytesMax;
        if (EndPosition <= limit)
        {
            return _count - position;
        }

        int low = position + 1;
        int high = _count;
        while (low < high)
        {
            int middle = (low + high) >>> 1;
            if (SlotAt(middle).End <= limit)
            {
                low = middle + 1;
            }
            else
            {
                high = middle;
            }
        }

        return low - position;
    }

    /// <summary>Drops entries up to and including <paramref name="through"/>.</summary>
    public void DropThrough(LogIndex through)
    {
        InvariantException.Require(through < End, "dropped entries are in memory");
        while (First <= through)
        {
            ref Slot slot = ref _slots[_head];
            _droppedBytes = slot.End;
            Release(slot.Chunk);
            slot = default;
            _head = (_head + 1) & (_slots.Length - 1);
            _count--;
            First = First.Next();
        }
    }

    /// <summary>Drops all entries. The next entry to add is <paramref name="first"/>.</summary>
    public void Restart(LogIndex first)
    {
        if (_count > 0)
        {
            DropThrough(End.Previous());
        }

        First = first;
    }

    /// <summary>Removes entries from <paramref name="from"/> on.</summary>
    public void CutFrom(LogIndex from)
    {
        InvariantException.Require(from >= First, "cut entries are in memory");
        while (End > from)
        {
            ref Slot slot = ref _slots[(_head + _count - 1) & (_slots.Length - 1)];
            slot.Chunk.Used = slot.Offset;
            Release(slot.Chunk);
            slot = default;
            _count--;
        }
    }

    /// <summary>
    /// Frees idle chunks that were not needed since the last call, and shrinks a ring that was never a quarter full.
    /// </summary>
    public void LetGo()
    {
        for (; _idleFewest > 0; _idleFewest--)
        {
            _idle.Pop();
        }

        _idleFewest = _idle.Count;
        if (_countMost < _slots.Length / 4 && _slots.Length > SlotsMin)
        {
            Resize(Math.Max(SlotsMin, (int)BitOperations.RoundUpToPowerOf2((uint)_countMost * 2)));
        }

        _countMost = _count;
    }

    private int Position(LogIndex index)
    {
        InvariantException.Require(index >= First && index < End, "the entry is in memory");
        return (int)(index.Value - First.Value);
    }

    private ref readonly Slot SlotAt(int position) => ref _slots[(_head + position) & (_slots.Length - 1)];

    private Chunk ChunkFor(int bytes)
    {
        if (bytes > ChunkBytes)
        {
            return new Chunk(BufferArrays.Rent(bytes), single: true);
        }

        if (_current is null || ChunkBytes - _current.Used < bytes)
        {
            if (_current is { Entries: 0 })
            {
                _current.Used = 0;
            }
            else
            {
                _current = _idle.TryPop(out Chunk? idle)
                    ? idle
                    : new Chunk(PinnedMemory.Allocate<byte>(ChunkBytes), single: false);
                _idleFewest = Math.Min(_idleFewest, _idle.Count);
            }
        }

        return _current;
    }

    private void Release(Chunk chunk)
    {
        if (--chunk.Entries > 0 || chunk == _current)
        {
            return;
        }

        chunk.Used = 0;
        if (chunk.Single)
        {
            BufferArrays.Return(chunk.Bytes);
        }
        else if (_idle.Count < IdleChunksMax)
        {
            _idle.Push(chunk);
        }
    }

    private void Resize(int length)
    {
        var slots = new Slot[length];
        for (int i = 0; i < _count; i++)
        {
            slots[i] = SlotAt(i);
        }

        _slots = slots;
        _head = 0;
    }

    /// <summary>
    /// Position of an entry. End is the sum of all bytes ever added up to and including it, so that the size of a range
    /// is a difference.
    /// </summary>
    private readonly record struct Slot(Chunk Chunk, ulong End, int Offset, int Length);

    /// <summary>A block of consecutive encoded entries.</summary>
    private sealed class Chunk(byte[] bytes, bool single)
    {
        public byte[] Bytes { get; } = bytes;

        /// <summary>The block holds one large entry and belongs to the array pool.</summary>
        public bool Single { get; } = single;

        /// <summary>Bytes used, from the start.</summary>
        public int Used { get; set; }

        /// <summary>Entries of this block that memory still holds.</summary>
        public int Entries { get; set; }
    }
}
