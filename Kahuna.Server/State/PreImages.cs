using Kahuna.Wire.Buffers;

namespace Kahuna.Server.State;

/// <summary>
/// Pre-images of rows: records as they were before a change, in chunks that are handed on as they are, so that nothing
/// is copied twice. Chunks come from the pool that the process shares, so that no partition keeps what one view needed.
/// Owned by one <see cref="StateView"/>; not thread-safe.
/// </summary>
internal sealed class PreImages
{
    /// <summary>The largest arrays that the pool keeps in numbers (<see cref="ByteBuffer"/>).</summary>
    private const int ChunkBytes = 128 << 10;

    private readonly List<ArraySegment<byte>> _full = [];
    private byte[] _last = [];
    private int _lastBytes;
    private int _lastCount;

    /// <summary>Records that wait.</summary>
    public int Count { get; private set; }

    /// <summary>Bytes of the records that wait.</summary>
    public long Bytes { get; private set; }

    public void Add(ReadOnlySpan<byte> record)
    {
        if (_last.Length - _lastBytes < record.Length)
        {
            EndLast();
            _last = BufferArrays.Rent(Math.Max(ChunkBytes, record.Length));
        }

        record.CopyTo(_last.AsSpan(_lastBytes));
        _lastBytes += record.Length;
        _lastCount++;
        Bytes += record.Length;
        Count++;
        if (_lastBytes > ChunkBytes)
        {
            // One that is too large for a chunk goes alone.
            EndLast();
        }
    }

    /// <summary>Hands on the chunks that are full, or all.</summary>
    public void MoveTo(ViewSlice slice, bool all)
    {
        if (all)
        {
            EndLast();
        }

        foreach (ArraySegment<byte> chunk in _full)
        {
            slice.AddPreImages(chunk);
        }

        _full.Clear();
        Count = _lastCount;
        Bytes = _lastBytes;
    }

    /// <summary>Lets everything go.</summary>
    public void Clear()
    {
        EndLast();
        foreach (ArraySegment<byte> chunk in _full)
        {
            BufferArrays.Return(chunk.Array!);
        }

        _full.Clear();
        Count = 0;
        Bytes = 0;
    }

    private void EndLast()
    {
        if (_last.Length > 0)
        {
            _full.Add(new ArraySegment<byte>(_last, 0, _lastBytes));
        }

        _last = [];
        _lastBytes = 0;
        _lastCount = 0;
    }
}
