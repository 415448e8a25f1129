using System.Buffers.Binary;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Routing;

namespace Kahuna.Server.Partitions.Snapshots;

/// <summary>
/// Layout of a frame between nodes that belongs to a snapshot; its fifth byte tells it from frames of Raft messages
/// (<c>PeerFrame</c>). Little-endian.
/// <code>
/// both:     u32 group, u8 kind (33 chunk, 34 answer), u8 flags, u16 feature level of the mark - 1 (answer: zero),
///           u64 term of the leader, u64 transfer, u64 chunk, u64 epoch (0 but for ephemeral groups)
/// chunk:    flags 1: the last one; mark (CheckpointMark), u32 length, u64 XXH64 of all before and of the records,
///           records (a row of records, each after its u32 length, cut anywhere; chunks count from 0)
/// answer:   flags 1: the follower has the state, 2: it cannot take it, 4: it installs a state, this one of which it
///           has all, or another group's; chunk: the next one that it waits for
/// </code>
/// Stateless, any thread.
/// </summary>
internal static class SnapshotFrame
{
    public const byte ChunkKind = 33;
    public const byte AnswerKind = 34;
    public const byte LastFlag = 1;
    public const byte DoneFlag = 1;
    public const byte RefusedFlag = 2;
    public const byte LoadingFlag = 4;

    private const int HeaderBytes = 40;
    private const int ChunkHeaderBytes = HeaderBytes + CheckpointMark.Bytes + 4 + 8;
    private const int ChecksumOffset = ChunkHeaderBytes - 8;

    /// <summary>True for a frame of a snapshot.</summary>
    public static bool Is(ReadOnlySpan<byte> frame) =>
        frame.Length >= HeaderBytes && frame[4] is ChunkKind or AnswerKind;

    public static void WriteChunk(ByteBuffer target, in SnapshotHeader header, in CheckpointMark mark,
        ReadOnlySpan<byte> records)
    {
        Span<byte> span = target.Take(ChunkHeaderBytes);
        WriteHeader(span, ChunkKind, header);
        BinaryPrimitives.WriteUInt16LittleEndian(span[6..], mark.Level.Encoded);
        mark.Write(span[HeaderBytes..]);
        BinaryPrimitives.WriteInt32LittleEndian(span[(HeaderBytes + CheckpointMark.Bytes)..], records.Length);
        BinaryPrimitives.WriteUInt64LittleEndian(span[ChecksumOffset..], Checksum(span, records));
        target.Append(records);
    }

    public static void WriteAnswer(ByteBuffer target, in SnapshotHeader header) =>
        WriteHeader(target.Take(HeaderBytes), AnswerKind, header);

    /// <summary>Reads what both kinds begin with.</summary>
    public static SnapshotHeader ReadHeader(ReadOnlySpan<byte> frame) => new(
        new GroupId(BinaryPrimitives.ReadUInt32LittleEndian(frame)),
        frame[5],
        new Term(BinaryPrimitives.ReadUInt64LittleEndian(frame[8..])),
        BinaryPrimitives.ReadUInt64LittleEndian(frame[16..]),
        BinaryPrimitives.ReadUInt64LittleEndian(frame[24..]),
        new Epoch(BinaryPrimitives.ReadUInt64LittleEndian(frame[32..])));

    /// <summary>False when the frame is damaged.</summary>
    public static bool TryReadChunk(ReadOnlySpan<byte> frame, out CheckpointMark mark, out ReadOnlySpan<byte> records)
    {
        mark = default;
        records = default;
        if (frame.Length < ChunkHeaderBytes
            || BinaryPrimitives.ReadUInt32LittleEndian(frame[(HeaderBytes + CheckpointMark.Bytes)..])
                != (uint)(frame.Length - ChunkHeaderBytes))
        {
            return false;
        }

        records = frame[ChunkHeaderBytes..];
        mark = CheckpointMark.Read(frame[HeaderBytes..]) with
        {
            Level = FeatureLevel.Decode(BinaryPrimitives.ReadUInt16LittleEndian(frame[6..])),
        };
        return BinaryPrimitives.ReadUInt64LittleEndian(frame[ChecksumOffset..]) == Checksum(frame, records);
    }

    private static void WriteHeader(Span<byte> span, byte kind, in SnapshotHeader header)
    {
        BinaryPrimitives.WriteUInt32LittleEndian(span, header.Group.Value);
        span[4] = kind;
        span[5] = header.Flags;
        span[6] = 0;
        span[7] = 0;
        BinaryPrimitives.WriteUInt64LittleEndian(span[8..], header.Term.Value);
        BinaryPrimitives.WriteUInt64LittleEndian(span[16..], header.Transfer);
        BinaryPrimitives.WriteUInt64LittleEndian(span[24..], header.Chunk);
        BinaryPrimitives.WriteUInt64LittleEndian(span[32..], header.Epoch.Value);
    }

    private static ulong Checksum(ReadOnlySpan<byte> frame, ReadOnlySpan<byte> records) =>
        XxHash64.Hash(records, XxHash64.Hash(frame[..ChecksumOffset]));
}

/// <summary>What every message of a transfer says.</summary>
/// <param name="Group">Whose state it is.</param>
/// <param name="Flags">By kind.</param>
/// <param name="Term">Term in which the sender of the state leads.</param>
/// <param name="Transfer">Number of the transfer, drawn by the leader.</param>
/// <param name="Chunk">Number of the chunk, or of the next one wanted.</param>
/// <param name="Epoch">Of an ephemeral group: the epoch that the state is of.</param>
internal readonly record struct SnapshotHeader(GroupId Group, byte Flags, Term Term, ulong Transfer, ulong Chunk,
    Epoch Epoch);
