using System.Buffers;
using Kahuna.Wire.Buffers;

namespace Kahuna.Tests.Wire;

/// <summary>The buffer keeps what was written while it grows, and comes empty from the pool.</summary>
public sealed class ByteBufferTests
{
    [Fact]
    public void Growing_keeps_what_was_written()
    {
        ByteBuffer buffer = ByteBuffer.Rent(16);
        byte[] expected = new byte[100_000];
        new Random(1).NextBytes(expected);
        for (int at = 0; at < expected.Length;)
        {
            int length = Math.Min(expected.Length - at, 1 + (at % 977));
            buffer.Append(expected.AsSpan(at, length));
            at += length;
        }

        Assert.Equal(expected.Length, buffer.Length);
        Assert.True(buffer.Written.SequenceEqual(expected));
        Assert.True(buffer.WrittenMemory.Span.SequenceEqual(expected));
        buffer.Return();
    }

    [Fact]
    public void It_is_a_buffer_writer()
    {
        ByteBuffer buffer = ByteBuffer.Rent(16);
        IBufferWriter<byte> writer = buffer;
        for (int i = 0; i < 200; i++)
        {
            Assert.True(writer.GetMemory().Length >= 1);
            Span<byte> span = writer.GetSpan(33);
            Assert.True(span.Length >= 33);
            span[..33].Fill((byte)i);
            writer.Advance(33);
        }

        Assert.Equal(200 * 33, buffer.Length);
        Assert.Equal(199, buffer.Written[^1]);
        Assert.Equal(100, buffer.Written[(100 * 33) + 5]);
        buffer.Return();
    }

    [Fact]
    public void A_rented_buffer_is_empty_and_has_the_room_asked_for()
    {
        for (int i = 0; i < 20; i++)
        {
            ByteBuffer buffer = ByteBuffer.Rent(1000 + (i * 1000));
            Assert.Equal(0, buffer.Length);
            Assert.True(buffer.Array.Length >= 1000 + (i * 1000));
            buffer.Append("abc"u8);
            buffer.Return();
        }
    }

    [Fact]
    public void The_length_can_be_set_back()
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        buffer.Append("abcdef"u8);
        buffer.Length = 3;
        buffer.Append("X"u8);
        Assert.True(buffer.Written.SequenceEqual("abcX"u8));
        buffer.Return();
    }

    [Fact]
    public void Idle_buffers_can_be_let_go()
    {
        // Other tests of the process use the same pool: one may have the buffer for a moment, and give it back.
        bool isForgotten = false;
        for (int tries = 0; tries < 20 && !isForgotten; tries++)
        {
            ByteBuffer idle = ByteBuffer.Rent(300_000);
            idle.Return();
            ByteBuffer.ForgetIdle();
            ByteBuffer[] rented = [.. Enumerable.Range(0, 300).Select(static _ => ByteBuffer.Rent())];
            isForgotten = !rented.Contains(idle, ReferenceEqualityComparer.Instance);
            Array.ForEach(rented, static buffer => buffer.Return());
        }

        Assert.True(isForgotten);
    }
}
