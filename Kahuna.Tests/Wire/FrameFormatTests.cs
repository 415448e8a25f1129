using System.Buffers.Binary;
using System.Diagnostics;
using System.Text;
using Google.Protobuf;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Wire;

/// <summary>
/// Frames as they go on the wire: fixed by a golden file, and readable by any protobuf implementation.
/// </summary>
public sealed class FrameFormatTests
{
    private const string Traces = "traces: 7 belongs to an activity";

    private static readonly ActivityContext s_trace = new(
        ActivityTraceId.CreateFromString("4bf92f3577b34da6a3ce929d0e0e4736"),
        ActivitySpanId.CreateFromString("00f067aa0ba902b7"),
        ActivityTraceFlags.Recorded);

    [Fact]
    public void The_encoding_is_the_published_one()
    {
        StringBuilder text = new();
        foreach ((string name, byte[] bytes) in Samples())
        {
            GoldenFile.AppendDump(text, name, bytes);
        }

        GoldenFile.Check("Wire/frames.txt", text.ToString());
    }

    [Fact]
    public void A_protobuf_reader_reads_what_is_written()
    {
        foreach ((string name, byte[] bytes) in Samples())
        {
            Assert.Equal(0, bytes[0]);
            Assert.Equal(
                bytes.Length - Frame.GrpcPrefixBytes, (int)BinaryPrimitives.ReadUInt32BigEndian(bytes.AsSpan(1)));
            ReadOnlySpan<byte> message = bytes.AsSpan(Frame.GrpcPrefixBytes);
            Kahuna.Wire.Protos.Frame parsed = Kahuna.Wire.Protos.Frame.Parser.ParseFrom(message.ToArray());
            Assert.True(Frame.TryGetPayload(message, out ReadOnlySpan<byte> payload), name);
            Assert.True(parsed.Payload.Span.SequenceEqual(payload), name);
        }
    }

    [Theory]
    [InlineData(0)]
    [InlineData(8)]
    [InlineData(127)]
    [InlineData(128)]
    [InlineData(20_000)]
    [InlineData(3_000_000)]
    public void What_a_protobuf_writer_writes_is_read(int length)
    {
        byte[] content = new byte[length];
        new Random(length).NextBytes(content);
        byte[] message = new Kahuna.Wire.Protos.Frame { Payload = ByteString.CopyFrom(content) }.ToByteArray();
        Assert.True(Frame.TryGetPayload(message, out ReadOnlySpan<byte> payload));
        Assert.True(payload.SequenceEqual(content));
    }

    [Fact]
    public void Headers_come_back()
    {
        foreach ((string name, byte[] bytes) in Samples())
        {
            Assert.True(Frame.TryGetPayload(bytes.AsSpan(Frame.GrpcPrefixBytes), out ReadOnlySpan<byte> payload), name);
            Assert.True(Frame.TryReadHeader(payload, out FrameKind kind, out ushort version, out int count), name);
            Assert.Equal(name.Split(':')[0], kind.ToString().ToLowerInvariant());
            Assert.Equal(kind == FrameKind.Hello ? Limits.WireVersion : 0, version);
            bool hasMap = name.Contains("slot map", StringComparison.Ordinal);
            bool hasOne = hasMap || kind == FrameKind.Traces;
            Assert.Equal(kind is FrameKind.Requests or FrameKind.Replies ? 2 : hasOne ? 1 : 0, count);
        }
    }

    [Fact]
    public void Items_can_be_walked()
    {
        byte[] bytes = Samples().Single(sample => sample.Name.StartsWith("requests", StringComparison.Ordinal)).Bytes;
        int at = Frame.PrefixBytes + Frame.HeaderBytes;
        Assert.Equal(7u, BinaryPrimitives.ReadUInt32LittleEndian(bytes.AsSpan(at)));
        Assert.Equal(0u, BinaryPrimitives.ReadUInt32LittleEndian(bytes.AsSpan(at + 4)));
        int length = (int)BinaryPrimitives.ReadUInt32LittleEndian(bytes.AsSpan(at + 8));
        Assert.True(Command.TryRead(bytes.AsSpan(at + Frame.RequestHeaderBytes, length), out Command first));
        Assert.True(first.Key.SequenceEqual("app/a"u8));
        at += Frame.RequestHeaderBytes + length;
        Assert.Equal(8u, BinaryPrimitives.ReadUInt32LittleEndian(bytes.AsSpan(at)));
        Assert.Equal(2500u, BinaryPrimitives.ReadUInt32LittleEndian(bytes.AsSpan(at + 4)));
        length = (int)BinaryPrimitives.ReadUInt32LittleEndian(bytes.AsSpan(at + 8));
        Assert.Equal(bytes.Length, at + Frame.RequestHeaderBytes + length);
    }

    [Fact]
    public void A_trace_comes_back()
    {
        byte[] bytes = Samples().Single(static sample => sample.Name == Traces).Bytes;
        byte[] item = bytes[(Frame.PrefixBytes + Frame.HeaderBytes)..];
        Assert.Equal(TraceFrame.ItemBytes, item.Length);
        Assert.True(TraceFrame.TryRead(item, out uint number, out ActivityContext context));
        Assert.Equal((7u, s_trace.TraceId, s_trace.SpanId), (number, context.TraceId, context.SpanId));
        Assert.True(context.IsRemote);
    }

    [Theory]
    [InlineData(4, 1)]
    [InlineData(8, 16)]
    [InlineData(24, 8)]
    public void A_trace_that_nobody_records_or_that_has_no_id_is_none(int at, int count)
    {
        byte[] item = Samples().Single(static sample => sample.Name == Traces)
            .Bytes[(Frame.PrefixBytes + Frame.HeaderBytes)..];
        item.AsSpan(at, count).Clear();
        Assert.False(TraceFrame.TryRead(item, out _, out _));
    }

    [Fact]
    public void A_reply_written_in_two_steps_is_the_same()
    {
        Outcome outcome = new(OutcomeStatus.Found, 3, -1) { HasValue = true, Value = "v"u8 };
        ByteBuffer whole = ByteBuffer.Rent();
        Frame.AppendReply(whole, 77, outcome);
        ByteBuffer steps = ByteBuffer.Rent();
        steps.Take(5);
        Frame.BeginReply(steps, 77);
        outcome.Write(steps);
        Frame.EndReply(steps, 5);
        Assert.True(whole.Written.SequenceEqual(steps.Written[5..]));
        whole.Return();
        steps.Return();
    }

    [Fact]
    public void Garbage_never_throws()
    {
        Random random = new(31);
        byte[] bytes = new byte[40];
        for (int i = 0; i < 100_000; i++)
        {
            random.NextBytes(bytes);
            bytes[0] = random.Next(2) == 0 ? (byte)0x0A : bytes[0];
            bytes[1] = random.Next(2) == 0 ? (byte)random.Next(40) : bytes[1];
            if (Frame.TryGetPayload(bytes.AsSpan(0, random.Next(bytes.Length)), out ReadOnlySpan<byte> payload)
                && Frame.TryReadHeader(payload, out _, out _, out int count))
            {
                Assert.True(count >= 0);
            }
        }
    }

    [Theory]
    [InlineData("")]
    [InlineData("0a00")]
    public void An_empty_message_has_an_empty_payload(string hex)
    {
        Assert.True(Frame.TryGetPayload(Convert.FromHexString(hex), out ReadOnlySpan<byte> payload));
        Assert.True(payload.IsEmpty);
        Assert.False(Frame.TryReadHeader(payload, out _, out _, out _));
    }

    [Theory]
    [InlineData("0a")]
    [InlineData("0a02ff")]
    [InlineData("0a01ffff")]
    [InlineData("1200")]
    [InlineData("0a808080808000")]
    [InlineData("0affffffff7f")]
    public void Anything_else_than_the_one_field_is_refused(string hex) =>
        Assert.False(Frame.TryGetPayload(Convert.FromHexString(hex), out _));

    private const string Requests = "requests: 7 get app/a without a limit, 8 set app/b = v within 2,500 ms";

    private static List<(string Name, byte[] Bytes)> Samples() =>
    [
        ("hello: version 1", Build(FrameKind.Hello, Limits.WireVersion, 0, _ => { })),
        ("hello: of a server, slot map 7", Hello(7)),
        (Requests, Build(FrameKind.Requests, 0, 2, buffer =>
        {
            Frame.AppendRequest(
                buffer,
                7,
                0,
                new Command { Kind = CommandKind.Get, Durability = Durability.Persistent, Key = "app/a"u8 });
            Frame.AppendRequest(buffer, 8, 2500, new Command
            {
                Kind = CommandKind.Set,
                Durability = Durability.Persistent,
                Key = "app/b"u8,
                Value = "v"u8,
            });
        })),
        ("replies: 8 applied at revision 1, 7 not found", Build(FrameKind.Replies, 0, 2, buffer =>
        {
            Frame.AppendReply(buffer, 8, new Outcome(OutcomeStatus.Applied, 1));
            Frame.AppendReply(buffer, 7, new Outcome(OutcomeStatus.NotFound));
        })),
        ("goaway: nothing else", Build(FrameKind.GoAway, 0, 0, _ => { })),
        (Traces, Build(FrameKind.Traces, 0, 1, buffer => TraceFrame.Append(buffer, 7, s_trace))),
    ];

    private static byte[] Hello(ulong slotMapVersion)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        Frame.WriteServerHello(buffer, slotMapVersion);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    private static byte[] Build(FrameKind kind, int version, int count, Action<ByteBuffer> fill)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        Frame.Begin(buffer, kind, (ushort)version);
        fill(buffer);
        Frame.End(buffer, count);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }
}
