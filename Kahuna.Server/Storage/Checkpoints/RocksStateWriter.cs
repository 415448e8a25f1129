using System.Globalization;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.RocksDb;

namespace Kahuna.Server.Storage.Checkpoints;

/// <summary>
/// One write of <see cref="RocksStateStore"/>: SST files in the staging directory, ingested together with the mark at
/// the end. A view delivers records by row, except those that changed meanwhile. Records in order go straight to one
/// file; the others are collected and sorted in pieces. The mark is the last key of the last file. Memory: one piece.
/// Owned by the caller that began it; not thread-safe.
/// </summary>
internal sealed class RocksStateWriter : IStateWriter
{
    private readonly RocksStateStore _store;
    private readonly GroupId _group;
    private readonly CheckpointMark _mark;
    private readonly bool _whole;
    private readonly string _path;
    private readonly SortBuffer _piece;
    private readonly List<string> _files = [];
    private StagedFile? _run;
    private bool _ended;
    private bool _disposed;

    /// <param name="store">The store that ingests the files.</param>
    /// <param name="write">Group, mark, and whether the records replace what is stored.</param>
    /// <param name="path">Prefix of the files' names, unique to this write.</param>
    public RocksStateWriter(RocksStateStore store, (GroupId Group, CheckpointMark Mark, bool Whole) write, string path)
    {
        _store = store;
        (_group, _mark, _whole) = write;
        _path = path;
        _piece = store.Pieces.Take();
    }

    public void Add(ReadOnlySpan<byte> records, bool scattered = false)
    {
        Begin();
        while (RowImage.TryTake(ref records, out RowImage record))
        {
            if (scattered || record.Row <= _run?.LastRow)
            {
                AddToPiece(record);
            }
            else
            {
                _run ??= Stage();
                _run.Put(_group, record);
            }
        }

        InvariantException.Require(records.IsEmpty, "a view hands out whole records");
        _ended = false;
    }

    public void Commit()
    {
        Begin();
        if (_run is not null && _piece.Count == 0)
        {
            PutMark(_run);
        }
        else
        {
            WritePiece(withMark: true);
        }

        _run?.Finish();
        _store.Ingest(_group, _whole, _files);
    }

    public void Dispose()
    {
        if (!_disposed)
        {
            _disposed = true;
            _run?.Dispose();
            _store.Pieces.Give(_piece);
            _store.RemoveStaged(_files);
        }
    }

    /// <summary>
    /// Begins a step. The write is over unless the step succeeds: after an error the files' content is unknown.
    /// </summary>
    private void Begin()
    {
        InvariantException.Require(!_ended, "a write goes on only when nothing failed and it was not committed");
        _ended = true;
    }

    private StagedFile Stage()
    {
        string path = $"{_path}-{(_files.Count + 1).ToString(CultureInfo.InvariantCulture)}.sst";
        _files.Add(path);
        return _store.Stage(path);
    }

    private void AddToPiece(RowImage record)
    {
        if (_piece.Count > 0 && _piece.Bytes + record.Bytes.Length > _store.PieceBytes)
        {
            WritePiece(withMark: false);
            _piece.Clear();
        }

        _piece.Add(record);
    }

    private void WritePiece(bool withMark)
    {
        _piece.Sort();
        using StagedFile file = Stage();
        for (int i = 0; i < _piece.Count; i++)
        {
            file.Put(_group, _piece[i]);
        }

        if (withMark)
        {
            PutMark(file);
        }

        file.Finish();
    }

    private void PutMark(StagedFile file)
    {
        Span<byte> key = stackalloc byte[RocksStateFormat.PrefixBytes];
        Span<byte> value = stackalloc byte[RocksStateFormat.MarkBytesMax];
        RocksStateFormat.WriteMarkKey(key, _group);
        file.Put(key, value[..RocksStateFormat.WriteMark(value, _mark)]);
    }
}

/// <summary>
/// One file of a write, with keys in ascending order. Errors are those of the store. Owned by its writer; not
/// thread-safe.
/// </summary>
internal sealed class StagedFile(RocksStateStore store, SstFileWriter file) : IDisposable
{
    /// <summary>Row of the last record; 0 before the first one.</summary>
    public uint LastRow { get; private set; }

    public void Put(GroupId group, RowImage record)
    {
        InvariantException.Require(record.Row > LastRow, "the rows of a file ascend");
        Span<byte> key = stackalloc byte[RocksStateFormat.RecordKeyBytes];
        RocksStateFormat.WriteRecordKey(key, group, record.Row);
        Put(key, record.Bytes);
        LastRow = record.Row;
    }

    public void Put(ReadOnlySpan<byte> key, ReadOnlySpan<byte> value)
    {
        try
        {
            file.Put(key, value);
        }
        catch (RocksDbException error)
        {
            throw store.Failed(error);
        }
    }

    /// <summary>Finishes and syncs the file.</summary>
    public void Finish()
    {
        try
        {
            file.Finish();
        }
        catch (RocksDbException error)
        {
            throw store.Failed(error);
        }
    }

    public void Dispose() => file.Dispose();
}
