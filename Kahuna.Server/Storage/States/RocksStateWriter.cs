using System.Globalization;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.RocksDb;

namespace Kahuna.Server.Storage.States;

/// <summary>
/// One write of <see cref="RocksStateStore"/>: sorted pieces as files of RocksDB's format in the staging directory, taken in together with the mark at the end. Memory: one piece.
/// Owned by who began it; not thread-safe.
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
    private byte[] _key = new byte[256];
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
        _piece = store.TakePiece();
        RocksStateFormat.WriteRecordPrefix(_key, _group);
    }

    public void Add(ReadOnlySpan<byte> records)
    {
        Begin();
        while (StateRecord.TryTake(ref records, out StateRecord record))
        {
            if (_piece.Count > 0 && _piece.Bytes + record.Bytes.Length > _store.PieceBytes)
            {
                WriteFile(PutRecords);
                _piece.Clear();
            }

            _piece.Add(record);
        }

        InvariantException.Require(records.IsEmpty, "a view hands out whole records");
        _ended = false;
    }

    public void Commit()
    {
        Begin();
        WriteFile(PutLastRecords);
        WriteFile(PutMark);
        if (_whole && _store.Find(_group) is not null)
        {
            // Before all others, so that it takes away what was stored before and nothing of this write.
            WriteFile(RemoveRecords);
            _files.Insert(0, _files[^1]);
            _files.RemoveAt(_files.Count - 1);
        }

        _store.Ingest(_files);
    }

    public void Dispose()
    {
        if (!_disposed)
        {
            _disposed = true;
            _store.GivePiece(_piece);
            _store.RemoveStaged(_files);
        }
    }

    /// <summary>Ended unless the step that begins here succeeds: after an error nobody knows what the files hold.</summary>
    private void Begin()
    {
        InvariantException.Require(!_ended, "a write goes on only when nothing failed and it was not committed");
        _ended = true;
    }

    private void WriteFile(Action<SstFileWriter> write)
    {
        string path = $"{_path}-{(_files.Count + 1).ToString(CultureInfo.InvariantCulture)}.sst";
        _files.Add(path);
        _store.WriteStaged(path, write);
    }

    private void PutRecords(SstFileWriter file)
    {
        _piece.Sort();
        for (int i = 0; i < _piece.Count; i++)
        {
            StateRecord record = _piece[i];
            ReadOnlySpan<byte> name = record.Key;
            if (_key.Length < RocksStateFormat.PrefixBytes + name.Length)
            {
                Array.Resize(ref _key, RocksStateFormat.PrefixBytes + name.Length);
            }

            name.CopyTo(_key.AsSpan(RocksStateFormat.PrefixBytes));
            file.Put(_key.AsSpan(0, RocksStateFormat.PrefixBytes + name.Length), record.Bytes);
        }
    }

    private void PutLastRecords(SstFileWriter file)
    {
        PutRecords(file);
        PutMark(file);
    }

    /// <summary>In two files, with the last records and alone, so that two have a key in common (<see cref="RocksStateStore.Ingest"/>).</summary>
    private void PutMark(SstFileWriter file)
    {
        Span<byte> key = stackalloc byte[RocksStateFormat.PrefixBytes];
        Span<byte> value = stackalloc byte[StateMark.Bytes];
        RocksStateFormat.WriteMarkKey(key, _group);
        _mark.Write(value);
        file.Put(key, value);
    }

    private void RemoveRecords(SstFileWriter file)
    {
        Span<byte> first = stackalloc byte[RocksStateFormat.PrefixBytes];
        Span<byte> end = stackalloc byte[RocksStateFormat.PrefixBytes];
        RocksStateFormat.WriteRecordPrefix(first, _group);
        RocksStateFormat.WriteRecordEnd(end, _group);
        file.DeleteRange(first, end);
    }
}
