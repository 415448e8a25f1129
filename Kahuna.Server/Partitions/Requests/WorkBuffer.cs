using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// A buffer that is filled and cleared again and again, and grows to its largest use. What only a busy time has needed
/// goes back when it is over: at the end of a span of <see cref="SpanTicks"/> it keeps room for the largest use within
/// it. Owned by one partition or loop; not thread-safe.
/// </summary>
/// <param name="capacity">Bytes that it keeps room for in any case.</param>
internal sealed class WorkBuffer(int capacity)
{
    /// <summary>15 s in ticks of the default length.</summary>
    public const int SpanTicks = 300;

    private int _mark;
    private int _ticks;

    /// <summary>The buffer, to write to and to read from.</summary>
    public ByteBuffer Bytes { get; } = ByteBuffer.Rent(capacity);

    /// <summary>Drops the content.</summary>
    public void Clear()
    {
        _mark = Math.Max(_mark, Bytes.Length);
        Bytes.Length = 0;
    }

    /// <summary>A tick of the owner's clock.</summary>
    public void Tick()
    {
        if (++_ticks < SpanTicks)
        {
            return;
        }

        Bytes.ShrinkTo(Math.Max(capacity, _mark));
        _ticks = 0;
        _mark = 0;
    }
}
