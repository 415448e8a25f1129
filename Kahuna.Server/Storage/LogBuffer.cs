using System.Runtime.InteropServices;

namespace Kahuna.Server.Storage;

/// <summary>
/// Records on their way to the log, with room kept in front for the record that begins a batch. The array is pinned, so that
/// the system can write from it as it is. Owned by one writer while open, by the log thread once submitted.
/// </summary>
internal sealed class LogBuffer
{
    /// <summary>Bytes of a new buffer.</summary>
    public const int CapacityFirst = 64 * 1024;

    private byte[] _array = GC.AllocateUninitializedArray<byte>(CapacityFirst, pinned: true);

    /// <summary>Bytes in use, the kept room included.</summary>
    public int Length { get; private set; } = LogRecord.BatchBytes;

    public int Capacity => _array.Length;

    /// <summary>No record was added.</summary>
    public bool IsEmpty => Length == LogRecord.BatchBytes;

    /// <summary>The room kept in front.</summary>
    public Span<byte> Front => _array.AsSpan(0, LogRecord.BatchBytes);

    /// <summary>The records.</summary>
    public Span<byte> Body => _array.AsSpan(LogRecord.BatchBytes, Length - LogRecord.BatchBytes);

    /// <summary>The records, to be written.</summary>
    public ReadOnlyMemory<byte> BodyMemory => MemoryMarshal.CreateFromPinnedArray(_array, LogRecord.BatchBytes, Length - LogRecord.BatchBytes);

    /// <summary>The kept room and the records, to be written.</summary>
    public ReadOnlyMemory<byte> WholeMemory => MemoryMarshal.CreateFromPinnedArray(_array, 0, Length);

    /// <summary>Room for exactly <paramref name="count"/> more bytes, counted as used.</summary>
    public Span<byte> Take(int count)
    {
        if (_array.Length - Length < count)
        {
            Grow(count);
        }

        Span<byte> span = _array.AsSpan(Length, count);
        Length += count;
        return span;
    }

    public void Clear() => Length = LogRecord.BatchBytes;

    private void Grow(int count)
    {
        int wanted = (int)Math.Max(checked(Length + count), Math.Min(_array.Length * 2L, Array.MaxLength));
        byte[] larger = GC.AllocateUninitializedArray<byte>(wanted, pinned: true);
        _array.AsSpan(0, Length).CopyTo(larger);
        _array = larger;
    }
}
