using System.Buffers;
using System.Runtime.CompilerServices;

namespace Kahuna.Wire.Buffers;

/// <summary>
/// A growable byte buffer over a rented array. It has exactly one owner at a time; an owner hands it on as a whole, and
/// the last one calls <see cref="Return"/>. Not thread-safe.
/// </summary>
internal sealed class ByteBuffer : IBufferWriter<byte>
{
    // The idle buffers are bounded in total, because each grows over time to the largest use it ever had.
    private static readonly BufferPool s_pool = new(capacity: 256, retainBytesMax: 1 << 20, totalBytesMax: 8 << 20);

    private byte[] _array;

    private ByteBuffer(int capacity) => _array = BufferArrays.Rent(capacity);

    /// <summary>Bytes written so far; may be set back or forward within the capacity.</summary>
    public int Length { get; set; }

    /// <summary>The underlying array; valid until the buffer grows or is returned.</summary>
    public byte[] Array => _array;

    /// <summary>The written bytes.</summary>
    public ReadOnlySpan<byte> Written => _array.AsSpan(0, Length);

    /// <summary>The written bytes, as memory.</summary>
    public ReadOnlyMemory<byte> WrittenMemory => _array.AsMemory(0, Length);

    /// <summary>Takes an empty buffer from the pool.</summary>
    public static ByteBuffer Rent(int capacity = 4096)
    {
        ByteBuffer buffer = s_pool.TryTake() ?? new ByteBuffer(capacity);
        buffer.Length = 0;
        buffer.Reserve(capacity);
        return buffer;
    }

    /// <summary>Drops the idle buffers, so that they can be collected.</summary>
    public static void ForgetIdle() => s_pool.Clear();

    /// <summary>Returns the buffer to the pool; it must not be touched afterwards.</summary>
    public void Return()
    {
        if (_array.Length > s_pool.RetainBytesMax || !s_pool.TryGive(this))
        {
            byte[] array = _array;
            _array = [];
            BufferArrays.Return(array);
        }
    }

    /// <summary>
    /// Replaces an array of more than twice <paramref name="capacity"/> bytes by a smaller one, if nothing is written.
    /// </summary>
    public void ShrinkTo(int capacity)
    {
        if (Length == 0 && _array.Length / 2 > capacity)
        {
            BufferArrays.Return(_array);
            _array = BufferArrays.Rent(capacity);
        }
    }

    /// <summary>Makes room for <paramref name="count"/> more bytes.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    public void Reserve(int count)
    {
        if (_array.Length - Length < count)
        {
            Grow(count);
        }
    }

    /// <summary>Appends <paramref name="count"/> uninitialized bytes and returns them.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    public Span<byte> Take(int count)
    {
        Reserve(count);
        Span<byte> span = _array.AsSpan(Length, count);
        Length += count;
        return span;
    }

    /// <summary>Appends a copy of <paramref name="bytes"/>.</summary>
    public void Append(ReadOnlySpan<byte> bytes) => bytes.CopyTo(Take(bytes.Length));

    /// <inheritdoc/>
    public void Advance(int count) => Length += count;

    /// <inheritdoc/>
    public Memory<byte> GetMemory(int sizeHint = 0)
    {
        Reserve(Math.Max(sizeHint, 1));
        return _array.AsMemory(Length);
    }

    /// <inheritdoc/>
    public Span<byte> GetSpan(int sizeHint = 0)
    {
        Reserve(Math.Max(sizeHint, 1));
        return _array.AsSpan(Length);
    }

    private void Grow(int count)
    {
        int wanted = checked(Length + count);
        byte[] larger = BufferArrays.Rent(
            Math.Max(wanted, (int)Math.Min((long)_array.Length * 2, System.Array.MaxLength)));
        _array.AsSpan(0, Length).CopyTo(larger);
        BufferArrays.Return(_array);
        _array = larger;
    }

    /// <summary>A bounded stack of idle buffers. Any thread.</summary>
    private sealed class BufferPool(int capacity, int retainBytesMax, long totalBytesMax)
    {
        private readonly Stack<ByteBuffer> _idle = new(capacity);
        private readonly Lock _lock = new();
        private long _bytes;

        public int RetainBytesMax => retainBytesMax;

        public ByteBuffer? TryTake()
        {
            lock (_lock)
            {
                if (!_idle.TryPop(out ByteBuffer? buffer))
                {
                    return null;
                }

                _bytes -= buffer._array.Length;
                return buffer;
            }
        }

        public void Clear()
        {
            lock (_lock)
            {
                _idle.Clear();
                _bytes = 0;
            }
        }

        public bool TryGive(ByteBuffer buffer)
        {
            lock (_lock)
            {
                if (_idle.Count >= capacity || _bytes + buffer._array.Length > totalBytesMax)
                {
                    return false;
                }

                _bytes += buffer._array.Length;
                _idle.Push(buffer);
                return true;
            }
        }
    }
}
