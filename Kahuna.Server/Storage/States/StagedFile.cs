using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.RocksDb;

namespace Kahuna.Server.Storage.States;

/// <summary>One file of a write while it is written: keys in ascending order. Errors are those of the store. Owned by its writer; not thread-safe.</summary>
internal sealed class StagedFile(RocksStateStore store, SstFileWriter file) : IDisposable
{
    /// <summary>Row of the last record; 0 before the first one.</summary>
    public uint LastRow { get; private set; }

    public void Put(GroupId group, StateRecord record)
    {
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

    /// <summary>Ends the file and syncs it.</summary>
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
