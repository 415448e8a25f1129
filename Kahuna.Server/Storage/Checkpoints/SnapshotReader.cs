using System.Buffers;
using System.Buffers.Binary;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Storage.Checkpoints;

/// <summary>
/// Reads a snapshot file (<see cref="SnapshotFormat"/>) and verifies every piece before it returns a record of it.
/// Memory: one piece. Owns the file; owned by the caller that opened it; not thread-safe.
/// </summary>
internal sealed class SnapshotReader : IStateReader
{
    private readonly IDiskFile _file;
    private byte[] _piece = ArrayPool<byte>.Shared.Rent(SnapshotFormat.PieceBytesTarget + 4096);
    private long _offset = SnapshotFormat.HeaderBytes;
    private uint _pieces;
    private int _start;
    private int _end;
    private bool _ended;

    /// <summary>Reads the header.</summary>
    /// <exception cref="SnapshotDamagedException">The file is no snapshot, damaged, or of another group or version. It
    /// is closed.</exception>
    public SnapshotReader(IDiskFile file, GroupId group)
    {
        _file = file;
        try
        {
            byte[] header = new byte[SnapshotFormat.HeaderBytes];
            int read = file.Read(0, header);
            if (SnapshotFormat.Check(header.AsSpan(0, read), group, out CheckpointMark mark) is { } objection)
            {
                throw new SnapshotDamagedException(
                    $"The state in {file.Path} cannot be used: {objection}. {StorageException.WayOut}");
            }

            Mark = mark;
        }
        catch
        {
            Dispose();
            throw;
        }
    }

    public CheckpointMark Mark { get; }

    public bool TryRead(ByteBuffer target, int bytesMax)
    {
        int start = target.Length;
        while ((target.Length == start || target.Length - start < bytesMax) && TryTake(out RowImage record))
        {
            BinaryPrimitives.WriteInt32LittleEndian(target.Take(sizeof(int)), record.Bytes.Length);
            target.Append(record.Bytes);
        }

        return target.Length > start;
    }

    /// <summary>Takes the next record, which is valid until the next call. False at the end.</summary>
    /// <exception cref="SnapshotDamagedException">A piece is damaged or missing; discard the records returned
    /// before.</exception>
    public bool TryTake(out RowImage record)
    {
        record = default;
        if (_start == _end && !TryReadPiece())
        {
            return false;
        }

        ReadOnlySpan<byte> left = _piece.AsSpan(_start, _end - _start);
        if (!RowImage.TryTake(ref left, out RowImage taken))
        {
            throw Damaged("a record is longer than its piece");
        }

        InvariantException.Require(
            left.Length < _end - _start, "a record takes up bytes of its piece");
        _start = _end - left.Length;
        record = new RowImage(_piece.AsSpan(_start - taken.Bytes.Length, taken.Bytes.Length));
        return true;
    }

    public void Dispose()
    {
        _file.Dispose();
        if (_piece.Length > 0)
        {
            ArrayPool<byte>.Shared.Return(_piece);
            _piece = [];
        }
    }

    private bool TryReadPiece()
    {
        if (_ended)
        {
            return false;
        }

        int length = ReadPiece(_pieces + 1);
        _pieces++;
        _offset += SnapshotFormat.PieceHeaderBytes + length + SnapshotFormat.ChecksumBytes;
        _start = SnapshotFormat.PieceHeaderBytes;
        _end = _start + length;
        _ended = length == 0;
        return !_ended;
    }

    private int ReadPiece(uint number)
    {
        if (_file.Read(_offset, _piece.AsSpan(0, SnapshotFormat.PieceHeaderBytes)) < SnapshotFormat.PieceHeaderBytes)
        {
            throw Damaged("the file ends too early");
        }

        uint length = BinaryPrimitives.ReadUInt32LittleEndian(_piece);
        if (length > SnapshotFormat.PieceBytesMax || length > _file.Length - _offset)
        {
            throw Damaged("a piece is longer than the file");
        }

        int whole = SnapshotFormat.PieceHeaderBytes + (int)length + SnapshotFormat.ChecksumBytes;
        if (_piece.Length < whole)
        {
            ArrayPool<byte>.Shared.Return(_piece);
            _piece = [];
            _piece = ArrayPool<byte>.Shared.Rent(whole);
        }

        if (_file.Read(_offset, _piece.AsSpan(0, whole)) < whole)
        {
            throw Damaged("the file ends too early");
        }

        ReadOnlySpan<byte> content = _piece.AsSpan(0, whole - SnapshotFormat.ChecksumBytes);
        if (Crc32C.Of(content) != BinaryPrimitives.ReadUInt32LittleEndian(_piece.AsSpan(content.Length))
            || BinaryPrimitives.ReadUInt32LittleEndian(content[4..]) != number)
        {
            throw Damaged("the checksum does not match");
        }

        return (int)length;
    }

    private SnapshotDamagedException Damaged(string reason) =>
        new($"The state in {_file.Path} is damaged at offset {_offset}: {reason}. {StorageException.WayOut}");
}
