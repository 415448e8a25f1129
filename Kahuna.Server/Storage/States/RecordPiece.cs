using Kahuna.Server.Partitions;

namespace Kahuna.Server.Storage.States;

/// <summary>Gathers records and puts them in the order of their rows: copies in one buffer, and an array of places that is sorted. Used by one writer after the other; not thread-safe.</summary>
internal sealed class RecordPiece
{
    private const int PlacesAtFirst = 1024;
    private const int BytesAtFirst = 64 << 10;

    /// <summary>A record of unusual size is no reason to keep its room.</summary>
    private const int KeptBytesMax = 16 << 20;

    private byte[] _records = [];
    private Place[] _places = new Place[PlacesAtFirst];

    public int Count { get; private set; }

    /// <summary>Bytes of all records.</summary>
    public int Bytes { get; private set; }

    /// <summary>A record; in the order of adding, until <see cref="Sort"/>.</summary>
    public StateRecord this[int index] => new(_records.AsSpan(_places[index].Start, _places[index].Length));

    public void Add(StateRecord record)
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

    /// <summary>Where a record lies.</summary>
    private readonly record struct Place(uint Row, int Start, int Length);
}
