using System.Buffers.Binary;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// Layout of a frame between nodes: the messages of any number of groups, one after the other. Little-endian.
/// <code>
/// message:  u32 group, u8 kind, u8 flags (1 reject, 2 transfer, uncounted or in order, 4 stalled), u16 zero,
///           u64 term, u64 index, u64 log term, u64 commit, u64 round, u64 hint,
///           u32 entry count, u32 entries length,
///           of an ephemeral group: u64 epoch, u64 incarnation of the sender,
///           entries (EntryCodec)
/// </code>
/// Sender and receiver are those of the link. Stateless, any thread.
/// </summary>
internal static class PeerFrame
{
    public const int MessageBytes = 64;
    private const int StampBytes = 16;
    private const byte FlagReject = 1;
    private const byte FlagTransfer = 2;
    private const byte FlagStalled = 4;

    /// <summary>
    /// Appends the message's header; the caller appends the entries and then calls <see cref="EndMessage"/>.
    /// </summary>
    public static int BeginMessage(ByteBuffer frame, GroupId group, in RaftMessage message,
        MessageStamp stamp = default)
    {
        int at = frame.Length;
        Span<byte> span = frame.Take(MessageBytes);
        BinaryPrimitives.WriteUInt32LittleEndian(span, group.Value);
        span[4] = (byte)message.Kind;
        span[5] = (byte)((message.Reject ? FlagReject : 0) | (message.Transfer ? FlagTransfer : 0) | (message.Stalled
            ? FlagStalled : 0));
        span[6] = 0;
        span[7] = 0;
        BinaryPrimitives.WriteUInt64LittleEndian(span[8..], message.Term.Value);
        BinaryPrimitives.WriteUInt64LittleEndian(span[16..], message.Index.Value);
        BinaryPrimitives.WriteUInt64LittleEndian(span[24..], message.LogTerm.Value);
        BinaryPrimitives.WriteUInt64LittleEndian(span[32..], message.Commit.Value);
        BinaryPrimitives.WriteUInt64LittleEndian(span[40..], message.Round);
        BinaryPrimitives.WriteUInt64LittleEndian(span[48..], message.Hint.Value);
        BinaryPrimitives.WriteInt32LittleEndian(span[56..], message.EntryCount);
        BinaryPrimitives.WriteUInt32LittleEndian(span[60..], 0);
        if (group.IsEphemeral)
        {
            span = frame.Take(StampBytes);
            BinaryPrimitives.WriteUInt64LittleEndian(span, stamp.Epoch);
            BinaryPrimitives.WriteUInt64LittleEndian(span[8..], stamp.Incarnation);
        }

        return at;
    }

    /// <summary>
    /// Writes the length of the entries that were appended since <see cref="BeginMessage"/> returned
    /// <paramref name="at"/>.
    /// </summary>
    public static void EndMessage(ByteBuffer frame, int at)
    {
        Span<byte> span = frame.Array.AsSpan(at);
        int headerBytes = HeaderBytes(new GroupId(BinaryPrimitives.ReadUInt32LittleEndian(span)));
        InvariantException.Require(frame.Length - at >= headerBytes, "a message ends behind its header");
        BinaryPrimitives.WriteUInt32LittleEndian(span[60..], (uint)(frame.Length - at - headerBytes));
    }

    /// <summary>
    /// Takes the next message off <paramref name="rest"/>. False at the end or when what is left is no message.
    /// </summary>
    public static bool TryRead(ref ReadOnlySpan<byte> rest, out GroupId group, out RaftMessage message,
        out ReadOnlySpan<byte> entries) =>
        TryRead(ref rest, out group, out message, out _, out entries);

    /// <inheritdoc cref="TryRead(ref ReadOnlySpan{byte}, out GroupId, out RaftMessage, out ReadOnlySpan{byte})"/>
    public static bool TryRead(ref ReadOnlySpan<byte> rest, out GroupId group, out RaftMessage message,
        out MessageStamp stamp, out ReadOnlySpan<byte> entries)
    {
        group = default;
        message = default;
        stamp = default;
        entries = default;
        if (rest.Length < MessageBytes)
        {
            return false;
        }

        group = new GroupId(BinaryPrimitives.ReadUInt32LittleEndian(rest));
        int headerBytes = HeaderBytes(group);
        uint length = BinaryPrimitives.ReadUInt32LittleEndian(rest[60..]);
        if (rest.Length < headerBytes || length > (uint)(rest.Length - headerBytes))
        {
            return false;
        }

        if (group.IsEphemeral)
        {
            stamp = new MessageStamp(BinaryPrimitives.ReadUInt64LittleEndian(rest[MessageBytes..]),
                BinaryPrimitives.ReadUInt64LittleEndian(rest[(MessageBytes + 8)..]));
        }

        message.Kind = (RaftMessageKind)rest[4];
        message.Reject = (rest[5] & FlagReject) != 0;
        message.Transfer = (rest[5] & FlagTransfer) != 0;
        message.Stalled = (rest[5] & FlagStalled) != 0;
        message.Term = new Term(BinaryPrimitives.ReadUInt64LittleEndian(rest[8..]));
        message.Index = new LogIndex(BinaryPrimitives.ReadUInt64LittleEndian(rest[16..]));
        message.LogTerm = new Term(BinaryPrimitives.ReadUInt64LittleEndian(rest[24..]));
        message.Commit = new LogIndex(BinaryPrimitives.ReadUInt64LittleEndian(rest[32..]));
        message.Round = BinaryPrimitives.ReadUInt64LittleEndian(rest[40..]);
        message.Hint = new LogIndex(BinaryPrimitives.ReadUInt64LittleEndian(rest[48..]));
        message.EntryCount = BinaryPrimitives.ReadInt32LittleEndian(rest[56..]);
        entries = rest.Slice(headerBytes, (int)length);
        rest = rest[(headerBytes + (int)length)..];
        return true;
    }

    private static int HeaderBytes(GroupId group) => group.IsEphemeral ? MessageBytes + StampBytes : MessageBytes;
}
