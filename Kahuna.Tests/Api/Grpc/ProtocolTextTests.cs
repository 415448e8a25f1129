using System.Buffers;
using System.IO.Compression;
using Grpc.Core;
using Kahuna.Server.Api.Calls;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>The forms of the protocol that the server reads by itself: timeouts, prefixes, packed messages.</summary>
public sealed class ProtocolTextTests
{
    [Theory]
    [InlineData("1n", 1)]
    [InlineData("250n", 3)]
    [InlineData("3u", 30)]
    [InlineData("2m", 20_000)]
    [InlineData("1S", 10_000_000)]
    [InlineData("1M", 600_000_000)]
    [InlineData("1H", 36_000_000_000)]
    [InlineData("99999999H", 3_599_999_964_000_000_000)]
    public void A_timeout_is_read_in_every_unit(string text, long ticks) =>
        Assert.Equal(ticks, CallHeaders.Decode(text)?.Ticks);

    [Theory]
    [InlineData("")]
    [InlineData("S")]
    [InlineData("10")]
    [InlineData("1s")]
    [InlineData("-1S")]
    [InlineData("+1S")]
    [InlineData("1 S")]
    [InlineData("123456789S")]
    public void A_timeout_of_another_form_is_none(string text) => Assert.Null(CallHeaders.Decode(text));

    [Fact]
    public void A_message_is_cut_out_of_pieces_of_any_size()
    {
        byte[] framed = [0, 0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 9];
        for (int piece = 1; piece <= framed.Length; piece++)
        {
            ReadOnlySequence<byte> buffer = Pieces.Of(framed, piece);
            Assert.True(
                MessageFraming.TryRead(ref buffer, 10, out bool compressed, out ReadOnlySequence<byte> message));
            Assert.False(compressed);
            Assert.Equal([1, 2, 3], message.ToArray());
            Assert.True(MessageFraming.TryRead(ref buffer, 10, out _, out message));
            Assert.True(message.IsEmpty);
            Assert.True(MessageFraming.TryRead(ref buffer, 10, out compressed, out message));
            Assert.True(compressed);
            Assert.False(MessageFraming.TryRead(ref buffer, 10, out _, out _));
        }
    }

    [Fact]
    public void A_prefix_alone_tells_a_message_over_the_limit_or_none()
    {
        ReadOnlySequence<byte> large = new([0, 255, 255, 255, 255]);
        Assert.Equal(
            StatusCode.ResourceExhausted,
            Assert.Throws<RpcException>(() => MessageFraming.TryRead(ref large, 1 << 20, out _, out _)).StatusCode);
        ReadOnlySequence<byte> garbage = new([71, 69, 84, 32, 47]);
        Assert.Equal(
            StatusCode.Internal,
            Assert.Throws<RpcException>(() => MessageFraming.TryRead(ref garbage, 1 << 20, out _, out _)).StatusCode);
    }

    [Fact]
    public void A_packed_message_is_unpacked_behind_a_plain_prefix() =>
        Assert.Equal([0, 0, 0, 0, 3, 1, 2, 3], MessageFraming.Unpack(Pack([1, 2, 3]), 3).ToArray());

    [Fact]
    public void A_small_message_that_unpacks_to_a_huge_one_is_refused()
    {
        RpcException failure = Assert.Throws<RpcException>(
            () => MessageFraming.Unpack(Pack(new byte[64 << 20]), 1 << 20));
        Assert.Equal(StatusCode.ResourceExhausted, failure.StatusCode);
        Assert.Equal(
            StatusCode.Internal,
            Assert.Throws<RpcException>(
                () => MessageFraming.Unpack(new ReadOnlySequence<byte>([1, 2, 3]), 100)).StatusCode);
    }

    private static ReadOnlySequence<byte> Pack(byte[] plain)
    {
        using MemoryStream packed = new();
        using (GZipStream gzip = new(packed, CompressionLevel.Fastest))
        {
            gzip.Write(plain);
        }

        return new ReadOnlySequence<byte>(packed.ToArray());
    }
}
