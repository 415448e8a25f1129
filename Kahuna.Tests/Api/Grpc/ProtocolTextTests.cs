using System.Buffers;
using Kahuna.Client.Wire.Grpc;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>The text forms of the protocol: timeouts, messages, metadata, content types, prefixes.</summary>
public sealed class ProtocolTextTests
{
    [Theory]
    [InlineData(0, "1n")]
    [InlineData(1, "1u")]
    [InlineData(10, "1u")]
    [InlineData(15_000_000, "1500000u")]
    [InlineData(999_999_990, "99999999u")]
    [InlineData(999_999_991, "100000m")]
    [InlineData(36_000_000_000, "3600000m")]
    [InlineData(3_599_999_964_000_000_000, "99999999H")]
    public void A_timeout_is_written_in_the_finest_unit_that_holds_it(long ticks, string text)
    {
        string written = GrpcTimeout.Encode(new TimeSpan(ticks));
        Assert.True(written.Length <= 9);
        Assert.True(GrpcTimeout.TryDecode(written, out TimeSpan read));
        Assert.True(read.Ticks >= ticks);
        Assert.Equal(text, written);
    }

    [Fact]
    public void The_longest_timeout_is_eleven_thousand_years() => Assert.Equal("99999999H", GrpcTimeout.Encode(TimeSpan.MaxValue));

    [Theory]
    [InlineData("1n", 1)]
    [InlineData("250n", 3)]
    [InlineData("2m", 20_000)]
    [InlineData("1S", 10_000_000)]
    [InlineData("1M", 600_000_000)]
    [InlineData("1H", 36_000_000_000)]
    [InlineData("99999999H", 3_599_999_964_000_000_000)]
    public void A_timeout_is_read_in_every_unit(string text, long ticks)
    {
        Assert.True(GrpcTimeout.TryDecode(text, out TimeSpan read));
        Assert.Equal(ticks, read.Ticks);
    }

    [Theory]
    [InlineData("")]
    [InlineData("S")]
    [InlineData("10")]
    [InlineData("1s")]
    [InlineData("-1S")]
    [InlineData("+1S")]
    [InlineData("1 S")]
    [InlineData("123456789S")]
    public void A_timeout_of_another_form_is_none(string text) => Assert.False(GrpcTimeout.TryDecode(text, out _));

    [Theory]
    [InlineData("plain text.", "plain text.")]
    [InlineData("100 %", "100 %25")]
    [InlineData("Grüße\n", "Gr%C3%BC%C3%9Fe%0A")]
    [InlineData("", "")]
    public void A_message_is_percent_encoded(string text, string encoded)
    {
        Assert.Equal(encoded, GrpcMessageText.Encode(text));
        Assert.Equal(text, GrpcMessageText.Decode(encoded));
    }

    [Theory]
    [InlineData("50%")]
    [InlineData("%zz")]
    [InlineData("%4")]
    public void A_broken_escape_stays_as_it_is(string text) => Assert.Equal(text, GrpcMessageText.Decode(text));

    [Fact]
    public void A_long_message_is_cut() => Assert.Equal(GrpcMessageText.CharactersMax, GrpcMessageText.Encode(new string('x', 100_000)).Length);

    [Theory]
    [InlineData("application/grpc", true)]
    [InlineData("application/grpc+proto", true)]
    [InlineData("application/grpc; charset=utf-8", true)]
    [InlineData("application/grpc-web", false)]
    [InlineData("application/grpc+json", false)]
    [InlineData("application/json", false)]
    [InlineData(null, false)]
    public void The_content_type_is_told_from_others(string? contentType, bool expected) =>
        Assert.Equal(expected, GrpcProtocol.IsGrpcContentType(contentType));

    [Fact]
    public void Metadata_keeps_order_and_repeats()
    {
        GrpcMetadata metadata = new() { { "A", "1" }, { "b", "2" }, { "a", "3" }, { "key-bin", [0, 255] } };
        Assert.Equal(["1", "3"], metadata.GetAll("a").Select(entry => entry.Text));
        Assert.Equal("3", metadata.GetText("a"));
        Assert.Equal([0, 255], metadata.GetBytes("key-bin"));
        Assert.Equal("AP8", metadata.GetAll("key-bin").Single().HeaderValue);
    }

    [Theory]
    [InlineData("grpc-status", "0")]
    [InlineData("content-type", "x")]
    [InlineData("with space", "x")]
    [InlineData("a", "line\nbreak")]
    [InlineData("key-bin", "text")]
    public void Metadata_refuses_what_cannot_be_sent(string name, string value) =>
        Assert.Throws<ArgumentException>(() => new GrpcMetadata { { name, value } });

    [Fact]
    public void Received_binary_values_may_be_joined_and_padded()
    {
        GrpcMetadata metadata = [];
        metadata.AddReceived("Key-Bin", "AP8=,AQ");
        Assert.Equal([[0, 255], [1]], metadata.GetAll("key-bin").Select(entry => entry.Bytes));
        Assert.Equal(GrpcStatusCode.Internal, Assert.Throws<GrpcException>(() => metadata.AddReceived("key-bin", "***")).Code);
    }

    [Fact]
    public void A_message_is_cut_out_of_pieces_of_any_size()
    {
        byte[] framed = [0, 0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 9];
        for (int piece = 1; piece <= framed.Length; piece++)
        {
            ReadOnlySequence<byte> buffer = Pieces.Of(framed, piece);
            Assert.True(GrpcFraming.TryRead(ref buffer, 10, out bool compressed, out ReadOnlySequence<byte> message));
            Assert.False(compressed);
            Assert.Equal([1, 2, 3], message.ToArray());
            Assert.True(GrpcFraming.TryRead(ref buffer, 10, out _, out message));
            Assert.True(message.IsEmpty);
            Assert.True(GrpcFraming.TryRead(ref buffer, 10, out compressed, out message));
            Assert.True(compressed);
            Assert.False(GrpcFraming.TryRead(ref buffer, 10, out _, out _));
        }
    }

    [Fact]
    public void A_prefix_alone_tells_a_message_over_the_limit_or_none()
    {
        ReadOnlySequence<byte> large = new([0, 255, 255, 255, 255]);
        Assert.Equal(GrpcStatusCode.ResourceExhausted, Assert.Throws<GrpcException>(() => GrpcFraming.TryRead(ref large, 1 << 20, out _, out _)).Code);
        ReadOnlySequence<byte> garbage = new([71, 69, 84, 32, 47]);
        Assert.Equal(GrpcStatusCode.Internal, Assert.Throws<GrpcException>(() => GrpcFraming.TryRead(ref garbage, 1 << 20, out _, out _)).Code);
    }

    [Fact]
    public void A_small_message_that_unpacks_to_a_huge_one_is_refused()
    {
        using MemoryStream packed = GrpcGzip.Compress(new byte[64 << 20]);
        GrpcException failure = Assert.Throws<GrpcException>(() => GrpcGzip.Decompress(new ReadOnlySequence<byte>(packed.ToArray()), 1 << 20));
        Assert.Equal(GrpcStatusCode.ResourceExhausted, failure.Code);
        Assert.Equal(GrpcStatusCode.Internal, Assert.Throws<GrpcException>(() => GrpcGzip.Decompress(new ReadOnlySequence<byte>([1, 2, 3]), 100)).Code);
    }
}
