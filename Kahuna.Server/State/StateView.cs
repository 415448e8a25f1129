using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.State;

/// <summary>
/// The state as it was at one moment, handed out piece by piece while commands go on being applied: before a key
/// changes that the view has not handed out, the view keeps its pre-image. So no step costs more than its own records,
/// and nothing is copied that does not change meanwhile. Made by <see cref="StateMachine"/> and used by its owner; not
/// thread-safe.
/// </summary>
internal sealed class StateView : IDisposable, IRowObserver
{
    private const int PrefetchedRows = 16;
    private const int PrefetchedLines = 4;

    private readonly KeyStore _store;
    private readonly RowSet _awaited;
    private readonly PreImages _preImages = new();
    private readonly ByteBuffer _record = ByteBuffer.Rent();
    private Row _next = Row.First;

    public StateView(KeyStore store, RowSet rows, ClusterTime time)
    {
        _store = store;
        _awaited = rows;
        Keys = rows.Count;
        Summary = new StateSummary(
            time, store.History.FirstNumber, store.History.NextNumber, store.Keys.Count, store.Digest);
        store.Observe(this);
    }

    /// <summary>Keys that the view has in all.</summary>
    public int Keys { get; }

    /// <summary>What it says of the whole state.</summary>
    public StateSummary Summary { get; }

    /// <summary>Keys that were not handed out yet.</summary>
    public int Left => _awaited.Count + _preImages.Count;

    /// <summary>Bytes of pre-images that were not handed out yet.</summary>
    public long PreImageBytes => _preImages.Bytes;

    /// <summary>
    /// Hands out the records of the next rows, about <paramref name="bytesMax"/> bytes of them, and the pre-images:
    /// that costs next to nothing, and waits in memory otherwise. False when there is no more.
    /// </summary>
    public bool TryTake(ViewSlice slice, int bytesMax)
    {
        int before = slice.Rows.Length;
        TakeRows(slice.Rows, before + bytesMax);
        slice.AddRows(slice.Rows.Length - before);
        _preImages.MoveTo(slice, all: _awaited.Count == 0);
        return Left > 0;
    }

    /// <summary>Ends it: changes have no further cost.</summary>
    public void Dispose()
    {
        if (_store.EndObserving(this))
        {
            _preImages.Clear();
            _record.Return();
        }
    }

    /// <summary>By the store, before a row or its history changes.</summary>
    public void BeforeChange(Row key)
    {
        if (_awaited.Remove(key))
        {
            _record.Length = 0;
            InvariantException.Require(
                !key.IsNone && key.Value <= Summary.Rows, "a view awaits only rows that it began with");
            Write(key, _record);
            _preImages.Add(_record.Written);
        }
    }

    /// <summary>History is part of a record.</summary>
    public void BeforeHistoryChange(Row row) => BeforeChange(row);

    /// <summary>A view has only rows that it began with.</summary>
    public void Created(Row row)
    {
    }

    /// <summary>Its pre-image is kept.</summary>
    public void BeforeForgetting(Row row)
    {
    }

    private void TakeRows(ByteBuffer target, int end)
    {
        while (target.Length < end && PrefetchNext())
        {
            for (int i = 0;
                i < PrefetchedRows && target.Length < end && (_next = _awaited.Next(_next)) is { IsNone: false };
                i++)
            {
                Write(_next, target);
                _awaited.Remove(_next);
                _next = _next.Next;
            }
        }
    }

    /// <summary>
    /// Asks for what the next rows name: rows lie side by side, their keys and values do not. False when none is left.
    /// </summary>
    private bool PrefetchNext()
    {
        Row row = _next;
        for (int i = 0; i < PrefetchedRows && (row = _awaited.Next(row)) is { IsNone: false }; i++)
        {
            _store.Keys.PrefetchBlock(row, PrefetchedLines);
            _store.History.PrefetchNewest(row);
            row = row.Next;
        }

        return (_next = _awaited.Next(_next)) is { IsNone: false };
    }

    private void Write(Row key, ByteBuffer target)
    {
        int at = target.Length;
        target.Take(sizeof(int));
        KeyRecord.Write(_store, key, target);
        System.Buffers.Binary.BinaryPrimitives.WriteInt32LittleEndian(
            target.Array.AsSpan(at), target.Length - at - sizeof(int));
    }
}
