using System.Buffers;
using System.Buffers.Binary;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Storage.States;

/// <summary>Reads a state from a file, every byte checked before it is handed out (<see cref="SnapshotFormat"/>). Stateless.</summary>
internal static class SnapshotReader
{
    /// <summary>The mark in the file's header.</summary>
    /// <exception cref="StateDamagedException">The file is none, is damaged, is another group's or of another version.</exception>
    public static StateMark ReadMark(IDiskFile file, GroupId group)
    {
        byte[] header = new byte[SnapshotFormat.HeaderBytes];
        int read = file.Read(0, header);
        return SnapshotFormat.Check(header.AsSpan(0, read), group, out StateMark mark) is { } objection
            ? throw new StateDamagedException($"The state in {file.Path} cannot be used: {objection}.")
            : mark;
    }

    /// <summary>Hands out all records. Memory: one piece at a time.</summary>
    /// <exception cref="StateDamagedException">A piece is damaged or missing; what was handed out before is of no use.</exception>
    public static void ReadRecords(IDiskFile file, StateRecordSink sink)
    {
        long offset = SnapshotFormat.HeaderBytes;
        byte[] piece = ArrayPool<byte>.Shared.Rent(SnapshotFormat.PieceBytesTarget + 4096);
        try
        {
            for (uint number = 1; ; number++)
            {
                int length = ReadPiece(file, offset, number, ref piece);
                if (length == 0)
                {
                    return;
                }

                ReadOnlySpan<byte> records = piece.AsSpan(SnapshotFormat.PieceHeaderBytes, length);
                while (!records.IsEmpty)
                {
                    int record = records.Length < sizeof(int) ? -1 : BinaryPrimitives.ReadInt32LittleEndian(records);
                    if (record < 0 || record > records.Length - sizeof(int))
                    {
                        throw Damaged(file, offset, "a record is longer than its piece");
                    }

                    sink(records.Slice(sizeof(int), record));
                    records = records[(sizeof(int) + record)..];
                }

                offset += SnapshotFormat.PieceHeaderBytes + length + SnapshotFormat.ChecksumBytes;
            }
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(piece);
        }
    }

    private static int ReadPiece(IDiskFile file, long offset, uint number, ref byte[] piece)
    {
        if (file.Read(offset, piece.AsSpan(0, SnapshotFormat.PieceHeaderBytes)) < SnapshotFormat.PieceHeaderBytes)
        {
            throw Damaged(file, offset, "the file ends too early");
        }

        uint length = BinaryPrimitives.ReadUInt32LittleEndian(piece);
        if (length > SnapshotFormat.PieceBytesMax || length > file.Length - offset)
        {
            throw Damaged(file, offset, "a piece is longer than the file");
        }

        int whole = SnapshotFormat.PieceHeaderBytes + (int)length + SnapshotFormat.ChecksumBytes;
        if (piece.Length < whole)
        {
            ArrayPool<byte>.Shared.Return(piece);
            piece = ArrayPool<byte>.Shared.Rent(whole);
        }

        if (file.Read(offset, piece.AsSpan(0, whole)) < whole)
        {
            throw Damaged(file, offset, "the file ends too early");
        }

        ReadOnlySpan<byte> content = piece.AsSpan(0, whole - SnapshotFormat.ChecksumBytes);
        if (Crc32C.Of(content) != BinaryPrimitives.ReadUInt32LittleEndian(piece.AsSpan(content.Length)) || BinaryPrimitives.ReadUInt32LittleEndian(content[4..]) != number)
        {
            throw Damaged(file, offset, "the checksum does not fit");
        }

        return (int)length;
    }

    private static StateDamagedException Damaged(IDiskFile file, long offset, string reason) =>
        new($"The state in {file.Path} is damaged at offset {offset}: {reason}. Rebuild the node from the others, or restore the file.");
}
