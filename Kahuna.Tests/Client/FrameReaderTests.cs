using Kahuna.Client.Connection;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;

namespace Kahuna.Tests.Client;

public sealed class FrameReaderTests
{
    [Theory]
    [InlineData(1)]
    [InlineData(7)]
    [InlineData(1000)]
    [InlineData(1 << 20)]
    public void Frames_come_out_as_they_went_in_however_the_bytes_are_cut(int piece)
    {
        Random random = new(piece);
        byte[][] bodies =
            [.. new[] { 0, 1, 5, 300, 70_000, 12, piece == 1 ? 10 : 3_000_000, 40, 200_000, 3 }.Select(length =>
        {
            byte[] body = new byte[length];
            random.NextBytes(body);
            return body;
        })];
        List<byte> wire = [];
        foreach (byte[] body in bodies)
        {
            ByteBuffer frame = ByteBuffer.Rent();
            Frame.Begin(frame, FrameKind.Replies);
            frame.Append(body);
            Frame.End(frame, 1);
            wire.AddRange(frame.Written);
            frame.Return();
        }

        using FrameReader reader = new();
        byte[] bytes = [.. wire];
        int taken = 0;
        for (int at = 0; at < bytes.Length;)
        {
            Memory<byte> space = reader.Space();
            int count = Math.Min(Math.Min(piece, space.Length), bytes.Length - at);
            bytes.AsSpan(at, count).CopyTo(space.Span);
            reader.Advance(count);
            at += count;
            while (reader.TryTake(out ReadOnlySpan<byte> payload))
            {
                Assert.True(payload[Frame.HeaderBytes..].SequenceEqual(bodies[taken]));
                taken++;
            }
        }

        Assert.Equal(bodies.Length, taken);
    }

    [Fact]
    public void A_frame_over_the_limit_and_a_compressed_one_are_refused()
    {
        Assert.Contains("33,882,113 bytes", Refusal([0, 0x02, 0x05, 0x00, 0x01]), StringComparison.Ordinal);
        Assert.Equal(33_882_112, Limits.FrameBytesMax);
        Assert.Contains("compressed", Refusal([1, 0, 0, 0, 0]), StringComparison.Ordinal);
        Assert.Contains("not a frame", Refusal([0, 0, 0, 0, 1, 0x12]), StringComparison.Ordinal);
    }

    private static string Refusal(byte[] bytes)
    {
        using FrameReader reader = new();
        bytes.CopyTo(reader.Space());
        reader.Advance(bytes.Length);
        return Assert.Throws<InvalidDataException>(() => reader.TryTake(out _)).Message;
    }
}
