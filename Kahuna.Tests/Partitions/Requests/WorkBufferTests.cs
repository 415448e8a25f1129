using Kahuna.Server.Partitions.Requests;

namespace Kahuna.Tests.Partitions.Requests;

public sealed class WorkBufferTests
{
    private const int Capacity = 64 << 10;
    private readonly WorkBuffer _buffer = new(Capacity);

    [Fact]
    public void What_a_busy_time_needed_goes_back_when_it_is_over()
    {
        Fill(1 << 20);
        Span();
        Assert.InRange(Length, 1 << 20, int.MaxValue);
        Fill(1_000);
        Span();
        Assert.InRange(Length, Capacity, 2 * Capacity);
    }

    [Fact]
    public void What_is_needed_in_each_span_stays()
    {
        Fill(1 << 20);
        byte[] array = _buffer.Bytes.Array;
        for (int i = 0; i < 5; i++)
        {
            Fill(600_000);
            Span();
        }

        Assert.Same(array, _buffer.Bytes.Array);
    }

    [Fact]
    public void What_is_written_is_never_lost()
    {
        Fill(1 << 20);
        Span();
        _buffer.Bytes.Append("kept"u8);
        Span();
        Span();
        Assert.Equal("kept"u8, _buffer.Bytes.Written);
    }

    private int Length => _buffer.Bytes.Array.Length;

    private void Fill(int bytes)
    {
        _buffer.Bytes.Append(new byte[bytes]);
        _buffer.Clear();
    }

    private void Span()
    {
        for (int i = 0; i < WorkBuffer.SpanTicks; i++)
        {
            _buffer.Tick();
        }
    }
}
