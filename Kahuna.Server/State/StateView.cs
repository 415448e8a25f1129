using Kahuna.Client.Wire.Buffers;

namespace Kahuna.Server.State;

/// <summary>
/// The state as it was at one moment, handed out piece by piece while commands go on being applied: before a key changes that the view has not
/// handed out, its record is put aside. So no step costs more than its own records, and nothing is copied that does not change meanwhile.
/// Made by <see cref="StateMachine"/> and used by its owner; not thread-safe.
/// </summary>
internal sealed class StateView : IDisposable
{
    private const int PrefetchedRows = 16;
    private const int PrefetchedLines = 4;

    private readonly KeyStore _store;
    private readonly RowSet _awaited;
    private readonly ByteBuffer _aside;
    private readonly Queue<int> _asideLengths = new();
    private int _asideStart;
    private int _next = 1;

    public StateView(KeyStore store, RowSet rows, long timeMs)
    {
        _store = store;
        _awaited = rows;
        _aside = store.TakeAside();
        Keys = rows.Count;
        Summary = new StateSummary(timeMs, store.History.FirstNumber, store.History.NextNumber, store.Keys.Count, store.Digest);
    }

    /// <summary>Keys that the view has in all.</summary>
    public int Keys { get; }

    /// <summary>What it says of the whole state.</summary>
    public StateSummary Summary { get; }

    /// <summary>Keys that were not handed out yet.</summary>
    public int Left => _awaited.Count + _asideLengths.Count;

    /// <summary>Bytes put aside and not handed out yet.</summary>
    public int AsideBytes => _aside.Length - _asideStart;

    /// <summary>The last slice had records that were put aside, in no order; else rows ascend, over all such slices.</summary>
    public bool IsScattered { get; private set; }

    /// <summary>Hands out records, each preceded by its length (u32), until about <paramref name="bytesMax"/> bytes were appended. False when there is no more.</summary>
    public bool TryTake(ByteBuffer target, int bytesMax)
    {
        // What was put aside goes first once it fills a slice, so that it needs little room, and at the end.
        IsScattered = AsideBytes >= bytesMax || _awaited.Count == 0;
        if (IsScattered)
        {
            TakeAside(target, target.Length + bytesMax);
        }
        else
        {
            TakeRows(target, target.Length + bytesMax);
        }

        return Left > 0;
    }

    /// <summary>Ends it: changes cost nothing any more.</summary>
    public void Dispose()
    {
        if (_store.End(this))
        {
            _store.GiveAside(_aside);
        }
    }

    /// <summary>By the store, before a row or its history changes.</summary>
    internal void BeforeChange(int key)
    {
        if (_awaited.Remove(key))
        {
            int start = _aside.Length;
            Write(key, _aside);
            _asideLengths.Enqueue(_aside.Length - start);
        }
    }

    private void TakeAside(ByteBuffer target, int end)
    {
        while (target.Length < end && _asideLengths.TryDequeue(out int length))
        {
            target.Append(_aside.Array.AsSpan(_asideStart, length));
            _asideStart += length;
        }

        int left = _aside.Length - _asideStart;
        if (left < _asideStart)
        {
            // What is left moves to the front: the buffer holds at most twice what waits, however long the view lives.
            _aside.Array.AsSpan(_asideStart, left).CopyTo(_aside.Array);
            _asideStart = 0;
            _aside.Length = left;
        }
    }

    private void TakeRows(ByteBuffer target, int end)
    {
        while (target.Length < end && PrefetchNext())
        {
            for (int i = 0; i < PrefetchedRows && target.Length < end && (_next = _awaited.Next(_next)) != 0; i++)
            {
                Write(_next, target);
                _awaited.Remove(_next++);
            }
        }
    }

    /// <summary>Asks for what the next rows name: rows lie side by side, their keys and values do not. False when none is left.</summary>
    private bool PrefetchNext()
    {
        int row = _next;
        for (int i = 0; i < PrefetchedRows && (row = _awaited.Next(row)) != 0; i++)
        {
            _store.Keys.PrefetchBlock(row, PrefetchedLines);
            _store.History.PrefetchNewest(row++);
        }

        return (_next = _awaited.Next(_next)) != 0;
    }

    private void Write(int key, ByteBuffer target)
    {
        int at = target.Length;
        target.Take(sizeof(int));
        KeyRecord.Write(_store, key, target);
        System.Buffers.Binary.BinaryPrimitives.WriteInt32LittleEndian(target.Array.AsSpan(at), target.Length - at - sizeof(int));
    }
}
