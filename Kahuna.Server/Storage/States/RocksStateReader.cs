using System.Buffers.Binary;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.RocksDb;

namespace Kahuna.Server.Storage.States;

/// <summary>One reading of <see cref="RocksStateStore"/>: an iterator, which sees the database as it was when it was made. Owned by who opened it; not thread-safe.</summary>
internal sealed class RocksStateReader : IStateReader
{
    private readonly RocksStateStore _store;
    private readonly Iterator _iterator;
    private readonly byte[] _prefix = new byte[RocksStateFormat.PrefixBytes];
    private bool _disposed;

    /// <summary>Owns the iterator from now on.</summary>
    public RocksStateReader(RocksStateStore store, Iterator iterator, GroupId group, in StateMark mark)
    {
        _store = store;
        _iterator = iterator;
        Mark = mark;
        RocksStateFormat.WriteRecordPrefix(_prefix, group);
        iterator.Seek(_prefix);
    }

    public StateMark Mark { get; }

    public bool TryRead(ByteBuffer target, int bytesMax)
    {
        int start = target.Length;
        while ((target.Length == start || target.Length - start < bytesMax) && TryTake(out StateRecord record))
        {
            BinaryPrimitives.WriteInt32LittleEndian(target.Take(sizeof(int)), record.Bytes.Length);
            target.Append(record.Bytes);
            _iterator.Next();
        }

        return target.Length > start;
    }

    /// <summary>Hands out all that is left, and returns its bytes.</summary>
    public long ReadAll(StateRecordSink sink)
    {
        long bytes = 0;
        while (TryTake(out StateRecord record))
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

    /// <summary>The record here, valid until the iterator moves.</summary>
    private bool TryTake(out StateRecord record)
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

        record = new StateRecord(_iterator.Value);
        return true;
    }
}
