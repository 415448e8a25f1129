using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Storage.Checkpoints;

/// <summary>
/// Collects records and sorts them by row: copies in one buffer, and an array of their places to sort. Used by one
/// writer after another; not thread-safe.
/// </summary>
internal sealed class SortBuffer
{
    private const int PlacesAtFirst = 1024;
    private const int BytesAtFirst = 64 << 10;

    /// <summary>A larger buffer, grown for an unusual record, is not kept.</summary>
    private const int KeptBytesMax = 16 << 20;

    private byte[] _records = [];
    private Place[] _places = new Place[PlacesAtFirst];

    public int Count { get; private set; }

    /// <summary>Bytes of all records.</summary>
    public int Bytes { get; private set; }

    /// <summary>A record: in insertion order, or by row after <see cref="Sort"/>.</summary>
    public RowImage this[int index] => new(_records.AsSpan(_places[index].Start, _places[index].Length));

    public void Add(RowImage record)
    {
        if (Count == _places.Length)
        {
            Array.Resize(ref _places, Count * 2);
        }

        int length = record.Bytes.Length;
        if (_records.Length - Bytes < length)
        {
            Array.Resize(ref _records, Math.Max(Bytes + length, Math.Max(_records.Length * 2, BytesAtFirst)));
        }

        InvariantException.Require(_records.Length - Bytes >= length, "the buffer has space for the record");
        _places[Count++] = new Place(record.Row, Bytes, length);
        record.Bytes.CopyTo(_records.AsSpan(Bytes));
        Bytes += length;
    }

    public void Sort() => _places.AsSpan(0, Count).Sort(static (x, y) => x.Row.CompareTo(y.Row));

    public void Clear()
    {
        Count = 0;
        Bytes = 0;
        if (_records.Length > KeptBytesMax)
        {
            _records = [];
        }
    }

    /// <summary>Place of a record in the buffer.</summary>
    private readonly record struct Place(uint Row, int Start, int Length);
}

/// <summary>Keeps one buffer for the next writer. Owned by the store; not thread-safe.</summary>
internal sealed class IdleSortBuffer
{
    private SortBuffer? _piece;

    public SortBuffer Take()
    {
        SortBuffer piece = _piece ?? new SortBuffer();
        _piece = null;
        return piece;
    }

    public void Give(SortBuffer piece)
    {
        piece.Clear();
        _piece = piece;
    }

    /// <summary>Drops the buffer when no write is expected for a while.</summary>
    public void LetGo() => _piece = null;
}
