namespace Kahuna.Wire.Commands;

/// <summary>The bounds of a range of keys. Immutable.</summary>
/// <param name="Start">The start, which is part of the range; empty for the first key of all.</param>
/// <param name="End">The end, which is not part of the range; null for no bound.</param>
internal readonly record struct KeyRange(byte[] Start, byte[]? End)
{
    /// <summary>No key lies in it.</summary>
    public bool IsEmpty => End is not null && End.AsSpan().SequenceCompareTo(Start) <= 0;

    /// <summary>The key lies in it.</summary>
    public bool Contains(ReadOnlySpan<byte> key) =>
        key.SequenceCompareTo(Start) >= 0 && (End is null || key.SequenceCompareTo(End) < 0);

    /// <summary>Both have the same bounds.</summary>
    public bool IsSame(KeyRange other) =>
        Start.AsSpan().SequenceEqual(other.Start)
            && (End is null) == (other.End is null)
            && End.AsSpan().SequenceEqual(other.End);

    /// <summary>The end of a range whose last key is this one.</summary>
    public static byte[] Behind(byte[] last) => [.. last, 0];

    /// <summary>The keys that begin with a prefix and lie within the bounds that are given.</summary>
    public static KeyRange Of(byte[] prefix, byte[]? from, byte[]? to)
    {
        byte[]? end = After(prefix);
        bool endsEarlier = to is not null && (end is null || to.AsSpan().SequenceCompareTo(end) < 0);
        bool startsLater = from is not null && from.AsSpan().SequenceCompareTo(prefix) > 0;
        return new KeyRange(startsLater ? from! : prefix, endsEarlier ? to : end);
    }

    /// <summary>The first name behind all that begin with these bytes; null where there is none.</summary>
    private static byte[]? After(byte[] prefix)
    {
        int length = prefix.AsSpan().LastIndexOfAnyExcept(byte.MaxValue) + 1;
        if (length == 0)
        {
            return null;
        }

        byte[] after = prefix[..length];
        after[^1]++;
        return after;
    }
}
