using System.Buffers.Binary;
using Kahuna.Server.Partitions;

namespace Kahuna.Server.Storage.States;

/// <summary>Gathers records and puts them in the order of their keys' bytes: copies in one buffer, and an array of places that is sorted. Used by one writer after the other; not thread-safe.</summary>
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
    public StateRecord this[int index] => RecordAt(_records, _places[index]);

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

        _places[Count++] = new Place(Lead(record.Key), Bytes, length);
        record.Bytes.CopyTo(_records.AsSpan(Bytes));
        Bytes += length;
    }

    public void Sort() => _places.AsSpan(0, Count).Sort(new ByKey(_records));

    public void Clear()
    {
        Count = 0;
        Bytes = 0;
        if (_records.Length > KeptBytesMax)
        {
            _records = [];
        }
    }

    private static StateRecord RecordAt(byte[] records, Place place) => new(records.AsSpan(place.Start, place.Length));

    /// <summary>The first eight bytes as a number, which decides most comparisons; shorter keys are filled up with zeros.</summary>
    private static ulong Lead(ReadOnlySpan<byte> key)
    {
        if (key.Length >= sizeof(ulong))
        {
            return BinaryPrimitives.ReadUInt64BigEndian(key);
        }

        Span<byte> filled = stackalloc byte[sizeof(ulong)];
        filled.Clear();
        key.CopyTo(filled);
        return BinaryPrimitives.ReadUInt64BigEndian(filled);
    }

    /// <summary>Where a record lies.</summary>
    private readonly record struct Place(ulong Lead, int Start, int Length);

    private sealed class ByKey(byte[] records) : IComparer<Place>
    {
        public int Compare(Place x, Place y)
        {
            int lead = x.Lead.CompareTo(y.Lead);
            return lead != 0 ? lead : RecordAt(records, x).Key.SequenceCompareTo(RecordAt(records, y).Key);
        }
    }
}
