using System.Buffers.Binary;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.RocksDb;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Storage.Checkpoints;

/// <summary>
/// Reads one checkpoint of <see cref="RocksStateStore"/> through an iterator, which sees the database as it was at
/// opening. Owned by the caller that opened it; not thread-safe.
/// </summary>
internal sealed class RocksStateReader : IStateReader
{
    private readonly RocksStateStore _store;
    private readonly Iterator _iterator;
    private readonly byte[] _prefix = new byte[RocksStateFormat.PrefixBytes];
    private bool _disposed;

    /// <summary>Takes over the iterator.</summary>
    public RocksStateReader(RocksStateStore store, Iterator iterator, GroupId group, in CheckpointMark mark)
    {
        _store = store;
        _iterator = iterator;
        Mark = mark;
        RocksStateFormat.WriteRecordPrefix(_prefix, group);
        iterator.Seek(_prefix);
    }

    public CheckpointMark Mark { get; }

    public bool TryRead(ByteBuffer target, int bytesMax)
    {
        int start = target.Length;
        while ((target.Length == start || target.Length - start < bytesMax) && TryTake(out RowImage record))
        {
            BinaryPrimitives.WriteInt32LittleEndian(target.Take(sizeof(int)), record.Bytes.Length);
            target.Append(record.Bytes);
            _iterator.Next();
        }

        return target.Length > start;
    }

    /// <summary>Passes all remaining records to the sink, and returns their bytes.</summary>
    public long ReadAll(RowImageSink sink)
    {
        long bytes = 0;
        while (TryTake(out RowImage record))
        {
            sink(record);
            bytes += RocksStateFormat.RecordKeyBytes + record.Bytes.Length;
            _iterator.Next();
        }

        return bytes;
    }

    public void Dispose()
    {
        if (!_disposed)
        {
            _disposed = true;
            _iterator.Dispose();
            _store.Closed();
        }
    }

    /// <summary>The current record, valid until the iterator moves.</summary>
    private bool TryTake(out RowImage record)
    {
        record = default;
        try
        {
            if (!_iterator.Valid() || !_iterator.Key.StartsWith(_prefix))
            {
                return false;
            }
        }
        catch (RocksDbException error)
        {
            throw _store.Damaged(error);
        }

        record = new RowImage(_iterator.Value);
        return true;
    }
}
