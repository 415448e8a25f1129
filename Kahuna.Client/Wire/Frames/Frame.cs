using System.Buffers.Binary;
using Kahuna.Wire.Buffers;

namespace Kahuna.Wire.Frames;

/// <summary>
/// Layout of the frames of the Exchange stream (docs/wire-format.md). On the wire each frame is one gRPC message: the
/// protobuf message <c>Frame</c> whose only field is the payload below.
/// <code>
/// payload:  u8 kind, u8 reserved, u16 version (Hello only, else 0), u32 count, then count items
/// request:  u32 request number, u32 wait limit in ms (0: none; bit 31: forward to the leader), u32 length, command
/// reply:    u32 request number, u32 length, outcome
/// hello:    of a server: u64 version of its map of slots; of a client: nothing
/// </code>
/// A buffer started with <see cref="Begin"/> has room for the gRPC prefix and the protobuf header in front, so it is
/// sent without a copy.
/// </summary>
internal static class Frame
{
    /// <summary>gRPC prefix: compressed flag and length.</summary>
    public const int GrpcPrefixBytes = 5;

    /// <summary>
    /// Protobuf header of field 1: the tag and a length of always five bytes, a padded varint that every protobuf
    /// reader accepts.
    /// </summary>
    public const int ProtobufPrefixBytes = 6;

    /// <summary>
    /// Flag in a request's wait limit: the client cannot reach the leader, so the receiving node forwards the request
    /// to it.
    /// </summary>
    public const uint ForwardFlag = 1u << 31;

    public const int PrefixBytes = GrpcPrefixBytes + ProtobufPrefixBytes;
    public const int HeaderBytes = 8;
    public const int RequestHeaderBytes = 12;
    public const int ReplyHeaderBytes = 8;

    /// <summary>Starts a frame in an empty buffer: reserves both prefixes and writes the header with count 0.</summary>
    public static void Begin(ByteBuffer buffer, FrameKind kind, ushort version = 0)
    {
        Span<byte> span = buffer.Take(PrefixBytes + HeaderBytes);
        span.Clear();
        span[PrefixBytes] = (byte)kind;
        BinaryPrimitives.WriteUInt16LittleEndian(span[(PrefixBytes + 2)..], version);
    }

    /// <summary>Completes a frame: writes the count and both prefixes. The buffer's bytes can then be sent.</summary>
    public static void End(ByteBuffer buffer, int count)
    {
        Span<byte> span = buffer.Array.AsSpan(0, buffer.Length);
        BinaryPrimitives.WriteUInt32LittleEndian(span[(PrefixBytes + 4)..], (uint)count);
        span[0] = 0;
        BinaryPrimitives.WriteUInt32BigEndian(span[1..], (uint)(buffer.Length - GrpcPrefixBytes));
        span[GrpcPrefixBytes] = 0x0A;
        uint rest = (uint)(buffer.Length - PrefixBytes);
        for (int i = 0; i < 4; i++)
        {
            span[GrpcPrefixBytes + 1 + i] = (byte)(rest | 0x80);
            rest >>= 7;
        }

        span[GrpcPrefixBytes + 5] = (byte)rest;
    }

    /// <summary>Writes a server's hello into an empty buffer.</summary>
    public static void WriteServerHello(ByteBuffer buffer, ulong slotMapVersion)
    {
        Begin(buffer, FrameKind.Hello, Limits.WireVersion);
        BinaryPrimitives.WriteUInt64LittleEndian(buffer.Take(sizeof(ulong)), slotMapVersion);
        End(buffer, 1);
    }

    /// <summary>Appends one request: header, then the command that <paramref name="command"/> encodes.</summary>
    public static void AppendRequest(ByteBuffer buffer, uint number, uint waitMs, scoped in Commands.Command command)
    {
        Span<byte> span = buffer.Take(RequestHeaderBytes);
        BinaryPrimitives.WriteUInt32LittleEndian(span, number);
        BinaryPrimitives.WriteUInt32LittleEndian(span[4..], waitMs);
        BinaryPrimitives.WriteUInt32LittleEndian(span[8..], (uint)command.EncodedBytes);
        command.Write(buffer);
    }

    /// <summary>Starts a reply; the caller appends its outcome and calls <see cref="EndReply"/>.</summary>
    public static void BeginReply(ByteBuffer buffer, uint number) =>
        BinaryPrimitives.WriteUInt32LittleEndian(buffer.Take(ReplyHeaderBytes), number);

    /// <summary>Completes the reply that starts at offset <paramref name="at"/>.</summary>
    public static void EndReply(ByteBuffer buffer, int at) =>
        BinaryPrimitives.WriteUInt32LittleEndian(
            buffer.Array.AsSpan(at + 4), (uint)(buffer.Length - at - ReplyHeaderBytes));

    /// <summary>Appends one reply.</summary>
    public static void AppendReply(ByteBuffer buffer, uint number, scoped in Outcomes.Outcome outcome)
    {
        Span<byte> span = buffer.Take(ReplyHeaderBytes);
        BinaryPrimitives.WriteUInt32LittleEndian(span, number);
        BinaryPrimitives.WriteUInt32LittleEndian(
            span[4..], (uint)(Outcomes.Outcome.HeaderBytes + outcome.Value.Length));
        outcome.Write(buffer);
    }

    /// <summary>
    /// Finds the payload in a gRPC message body (the bytes after the gRPC prefix): the protobuf message Frame with its
    /// one field, in any length encoding. An empty message is an empty payload. False for anything else.
    /// </summary>
    public static bool TryGetPayload(ReadOnlySpan<byte> message, out ReadOnlySpan<byte> payload)
    {
        payload = default;
        if (message.IsEmpty)
        {
            return true;
        }

        if (message[0] != 0x0A)
        {
            return false;
        }

        ulong length = 0;
        int at = 1;
        for (int shift = 0; ; shift += 7)
        {
            if (at >= message.Length || shift > 28)
            {
                return false;
            }

            byte next = message[at++];
            length |= (ulong)(next & 0x7F) << shift;
            if (next < 0x80)
            {
                break;
            }
        }

        if (length != (ulong)(message.Length - at))
        {
            return false;
        }

        payload = message[at..];
        return true;
    }

    /// <summary>Reads a payload's header; false when the payload is too short.</summary>
    public static bool TryReadHeader(ReadOnlySpan<byte> payload, out FrameKind kind, out ushort version, out int count)
    {
        kind = default;
        version = 0;
        count = 0;
        if (payload.Length < HeaderBytes)
        {
            return false;
        }

        kind = (FrameKind)payload[0];
        version = BinaryPrimitives.ReadUInt16LittleEndian(payload[2..]);
        uint raw = BinaryPrimitives.ReadUInt32LittleEndian(payload[4..]);
        count = (int)Math.Min(raw, int.MaxValue);
        return true;
    }
}

/// <summary>The content of a frame. Values are part of the wire format.</summary>
internal enum FrameKind : byte
{
    /// <summary>
    /// The first frame of each side, with its wire version. A server's has the version of its map of slots, and a
    /// <see cref="Map"/> follows.
    /// </summary>
    Hello = 1,

    /// <summary>Client to server: commands.</summary>
    Requests = 2,

    /// <summary>Server to client: outcomes in any order.</summary>
    Replies = 3,

    /// <summary>
    /// Server to client: a serialized DescribeClusterResponse, at the start and after each change of a leader or of the
    /// slots' owners.
    /// </summary>
    Map = 4,

    /// <summary>
    /// Server to client: the node is stopping. Send nothing new; requests in flight are still answered.
    /// </summary>
    GoAway = 5,

    /// <summary>Client to server, on a watch stream: watches that begin or end (<see cref="Watches.WatchRequest"/>).
    /// </summary>
    WatchRequests = 6,

    /// <summary>Server to client: changes of one group (<see cref="Watches.WatchedChange"/>).</summary>
    Changes = 7,

    /// <summary>Server to client: how far the changes were sent (<see cref="Watches.WatchProgress"/>).</summary>
    Progress = 8,

    /// <summary>Server to client: what happened to watches (<see cref="Watches.WatchNotice"/>).</summary>
    Notices = 9,

    /// <summary>
    /// Client to server, to one that says that it takes them: to which traces requests of the next
    /// <see cref="Requests"/> belong (<see cref="TraceFrame"/>).
    /// </summary>
    Traces = 10,
}
