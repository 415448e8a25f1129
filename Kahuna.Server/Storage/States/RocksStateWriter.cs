using System.Globalization;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Storage.States;

/// <summary>
/// One write of <see cref="RocksStateStore"/>: files of RocksDB's format in the staging directory, taken in together with the mark at the end. A view hands records out in the order of their
/// rows, but for those that changed meanwhile: the former go straight to one file however many they are, the latter are gathered and sorted in pieces. The mark is the last key of the last
/// file. Memory: one piece. Owned by who began it; not thread-safe.
/// </summary>
internal sealed class RocksStateWriter : IStateWriter
{
    private readonly RocksStateStore _store;
    private readonly GroupId _group;
    private readonly StateMark _mark;
    private readonly bool _whole;
    private readonly string _path;
    private readonly RecordPiece _piece;
    private readonly List<string> _files = [];
    private StagedFile? _run;
    private bool _ended;
    private bool _disposed;

    /// <param name="store">Takes the pieces in.</param>
    /// <param name="write">Group, mark, and whether the records replace what is stored.</param>
    /// <param name="path">What the names of the files begin with; no other writer's do.</param>
    public RocksStateWriter(RocksStateStore store, (GroupId Group, StateMark Mark, bool Whole) write, string path)
    {
        _store = store;
        (_group, _mark, _whole) = write;
        _path = path;
        _piece = store.Pieces.Take();
    }

    public void Add(ReadOnlySpan<byte> records, bool scattered = false)
    {
        Begin();
        while (StateRecord.TryTake(ref records, out StateRecord record))
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

    /// <summary>Ended unless the step that begins here succeeds: after an error nobody knows what the files hold.</summary>
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

    private void AddToPiece(StateRecord record)
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
        Span<byte> value = stackalloc byte[StateMark.Bytes];
        RocksStateFormat.WriteMarkKey(key, _group);
        _mark.Write(value);
        file.Put(key, value);
    }
}
