using Kahuna.Server.Primitives;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// The keys that prepared transactions hold: to read them, together with others, or to write them, alone; and the
/// ranges of keys that they hold to read. Derived from the rows of prepared parts, so it is the same on every node.
/// Owned by one <see cref="KeyStore"/>; not thread-safe.
/// </summary>
internal sealed class PreparedKeys
{
    /// <summary>Bytes of a held key besides its name: its places in the table and in the orders.</summary>
    private const int OverheadBytes = 200;

    /// <summary>Behind every key: no UTF-8 text has this byte.</summary>
    private static readonly byte[] s_end = [SystemRowKind.Reserved];

    private readonly HeldRanges _ranges = new();
    private readonly Dictionary<byte[], Holds> _holds;
    private readonly SortedSet<byte[]> _held = new(ByBytes.Instance);
    private readonly SortedSet<byte[]> _written = new(ByBytes.Instance);
    private readonly Dictionary<byte[], Holds>.AlternateLookup<ReadOnlySpan<byte>> _byName;
    private long _bytes;

    /// <param name="keys">Hashes the names, with its secret.</param>
    public PreparedKeys(KeyTable keys)
    {
        _holds = new Dictionary<byte[], Holds>(new ByHash(keys));
        _byName = _holds.GetAlternateLookup<ReadOnlySpan<byte>>();
    }

    /// <summary>Behind every key.</summary>
    public static ReadOnlySpan<byte> End => s_end;

    /// <summary>Held keys and ranges.</summary>
    public int Count => _holds.Count + _ranges.Count;

    /// <summary>Held ranges.</summary>
    public int Ranges => _ranges.Count;

    /// <summary>Counts up with each key that is let go: who waits for one looks again then.</summary>
    public long Released { get; private set; }

    /// <summary>Bytes of the tables.</summary>
    public long Bytes => _bytes + _ranges.Bytes;

    /// <summary>The key is held, by itself or in a range: nobody else may change it.</summary>
    public bool IsHeld(ReadOnlySpan<byte> key) =>
        (_holds.Count > 0 && _byName.ContainsKey(key)) || _ranges.Contains(key);

    /// <summary>The key is held to be written, so nobody may see its value now.</summary>
    public bool IsWritten(ReadOnlySpan<byte> key) =>
        _holds.Count > 0 && _byName.TryGetValue(key, out Holds holds) && holds.Writers > 0;

    /// <summary>Some key of a range is held, or may be in a held range.</summary>
    /// <param name="start">The first key of the range; empty: of all.</param>
    /// <param name="end">The first key behind it; empty: none is.</param>
    public bool AnyHeld(ReadOnlySpan<byte> start, ReadOnlySpan<byte> end) =>
        Any(_held, start, end) || _ranges.Overlap(start, end);

    /// <summary>Some key of a range is held to be written.</summary>
    /// <inheritdoc cref="AnyHeld"/>
    public bool AnyWritten(ReadOnlySpan<byte> start, ReadOnlySpan<byte> end) => Any(_written, start, end);

    /// <summary>A transaction may hold the key to read it, or to write it.</summary>
    public bool MayHold(ReadOnlySpan<byte> key, bool toWrite) =>
        (_holds.Count == 0
            || !_byName.TryGetValue(key, out Holds holds)
            || (!toWrite && holds.Writers == 0))
            && !(toWrite && _ranges.Contains(key));

    /// <summary>A transaction holds a range of keys to read it.</summary>
    /// <inheritdoc cref="AnyHeld"/>
    public void HoldRange(ReadOnlySpan<byte> start, ReadOnlySpan<byte> end) => _ranges.Hold(start, end);

    /// <summary>A transaction lets a range go once.</summary>
    /// <inheritdoc cref="AnyHeld"/>
    public void ReleaseRange(ReadOnlySpan<byte> start, ReadOnlySpan<byte> end) => _ranges.Release(start, end);

    /// <summary>A transaction holds the key once more.</summary>
    public void Hold(ReadOnlySpan<byte> key, bool toWrite)
    {
        if (!_byName.TryGetValue(key, out _, out Holds holds))
        {
            byte[] name = key.ToArray();
            _holds.Add(name, default);
            _held.Add(name);
            _bytes += name.Length + OverheadBytes;
        }

        if (toWrite && holds.Writers == 0)
        {
            _written.Add(key.ToArray());
        }

        _byName[key] = toWrite
            ? holds with { Writers = holds.Writers + 1 }
            : holds with { Readers = holds.Readers + 1 };
    }

    /// <summary>A transaction lets the key go once.</summary>
    public void Release(ReadOnlySpan<byte> key, bool toWrite)
    {
        bool isHeld = _byName.TryGetValue(key, out byte[]? name, out Holds holds);
        InvariantException.Require(
            isHeld && (toWrite ? holds.Writers : holds.Readers) > 0, "a key is let go as often as it was held");
        holds = toWrite
            ? holds with { Writers = holds.Writers - 1 }
            : holds with { Readers = holds.Readers - 1 };
        if (holds.Writers == 0)
        {
            _written.Remove(name!);
        }

        if (holds == default)
        {
            _holds.Remove(name!);
            _held.Remove(name!);
            _bytes -= name!.Length + OverheadBytes;
        }
        else
        {
            _holds[name!] = holds;
        }

        Released++;
    }

    private static bool Any(SortedSet<byte[]> keys, ReadOnlySpan<byte> start, ReadOnlySpan<byte> end)
    {
        if (keys.Count == 0)
        {
            return false;
        }

        byte[] last = end.IsEmpty ? s_end : end.ToArray();
        return start.SequenceCompareTo(last) < 0
            && keys.GetViewBetween(start.ToArray(), last).Min is { } first
            && first.AsSpan().SequenceCompareTo(last) < 0;
    }

    /// <summary>How often a key is held.</summary>
    private readonly record struct Holds(int Readers, int Writers);

    /// <summary>Orders names by their bytes. Stateless.</summary>
    private sealed class ByBytes : IComparer<byte[]>
    {
        public static readonly ByBytes Instance = new();

        public int Compare(byte[]? x, byte[]? y) => x.AsSpan().SequenceCompareTo(y);
    }

    /// <summary>Finds names by the hash of the partition's keys. Stateless.</summary>
    private sealed class ByHash(KeyTable keys)
        : IEqualityComparer<byte[]>, IAlternateEqualityComparer<ReadOnlySpan<byte>, byte[]>
    {
        public bool Equals(byte[]? x, byte[]? y) => x.AsSpan().SequenceEqual(y);

        public int GetHashCode(byte[] name) => (int)keys.HashOf(name);

        public bool Equals(ReadOnlySpan<byte> alternate, byte[] other) => alternate.SequenceEqual(other);

        public int GetHashCode(ReadOnlySpan<byte> alternate) => (int)keys.HashOf(alternate);

        public byte[] Create(ReadOnlySpan<byte> alternate) => alternate.ToArray();
    }
}
