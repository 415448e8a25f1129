using System.Buffers.Binary;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Storage.Checkpoints;

/// <summary>
/// Writes a snapshot file piece by piece (<see cref="SnapshotFormat"/>). Owned by one write; not thread-safe.
/// </summary>
internal sealed class SnapshotWriter : IDisposable
{
    private readonly IDiskFile _file;
    private readonly ByteBuffer _piece = ByteBuffer.Rent(SnapshotFormat.PieceBytesTarget);
    private readonly ReadOnlyMemory<byte>[] _parts = new ReadOnlyMemory<byte>[1];
    private long _position;
    private uint _pieces;

    public SnapshotWriter(IDiskFile file, byte[] header)
    {
        _file = file;
        _piece.Append(header);
    }

    /// <summary>Adds whole records, each preceded by its length.</summary>
    public void Add(ReadOnlySpan<byte> records)
    {
        WriteHeader();
        _piece.Append(records);
        if (_piece.Length >= SnapshotFormat.PieceBytesTarget)
        {
            EndPiece();
        }
    }

    /// <summary>Writes the last piece and the end mark, and syncs the file.</summary>
    public void Finish()
    {
        WriteHeader();
        if (_piece.Length > SnapshotFormat.PieceHeaderBytes)
        {
            EndPiece();
        }

        EndPiece();
        _file.SyncData();
    }

    public void Dispose()
    {
        _file.Dispose();
        _piece.Return();
    }

    /// <summary>
    /// Writes the header with the first piece, not in the constructor: the caller must own this object before anything
    /// can fail.
    /// </summary>
    private void WriteHeader()
    {
        if (_position == 0)
        {
            Write(_piece.WrittenMemory);
            _piece.Length = SnapshotFormat.PieceHeaderBytes;
        }
    }

    private void EndPiece()
    {
        InvariantException.Require(
            _piece.Length >= SnapshotFormat.PieceHeaderBytes && _position >= SnapshotFormat.HeaderBytes,
            "a piece follows the file's header and begins with its own");
        Span<byte> header = _piece.Array.AsSpan(0, SnapshotFormat.PieceHeaderBytes);
        BinaryPrimitives.WriteInt32LittleEndian(header, _piece.Length - SnapshotFormat.PieceHeaderBytes);
        BinaryPrimitives.WriteUInt32LittleEndian(header[4..], ++_pieces);
        uint checksum = Crc32C.Of(_piece.Written);
        BinaryPrimitives.WriteUInt32LittleEndian(_piece.Take(SnapshotFormat.ChecksumBytes), checksum);
        Write(_piece.WrittenMemory);
        _piece.Length = SnapshotFormat.PieceHeaderBytes;
    }

    private void Write(ReadOnlyMemory<byte> bytes)
    {
        _parts[0] = bytes;
        _file.Write(_position, _parts);
        _position += bytes.Length;
    }
}
