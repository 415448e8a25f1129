namespace Kahuna.Wire.Commands;

/// <summary>
/// A condition of a transaction about a range, under its own names: how many keys of this partition lie in the
/// range. Together with a condition on the revision of each of them it says that no key came or went. In the form of a
/// <see cref="CommandKind.KeyRange"/>. A view of the item's bytes, valid as long as they are.
/// </summary>
/// <remarks>
/// The key is the lower bound, the compared value the upper one. The revision to read at is the number of keys, with
/// <see cref="RangeFlags.CountOnly"/>. The number is the partition, and the compared revision the version of the map of
/// slots by which the range was divided among the partitions. A range that is not divided yet has neither: its count is
/// that of all partitions, or <see cref="AsNamed"/>.
/// </remarks>
internal readonly ref struct RangeCondition(scoped in Command item)
{
    /// <summary>
    /// The count of a range that is not divided yet: as many keys as the other conditions say to exist in it. It is
    /// never sent, since dividing the range replaces it.
    /// </summary>
    public const int AsNamed = int.MaxValue;

    /// <summary>The first key that belongs to the range; empty for the first key of all.</summary>
    public ReadOnlySpan<byte> Start { get; } = item.Key;

    /// <summary>The first key behind the range; empty: it ends with the last key of all.</summary>
    public ReadOnlySpan<byte> End { get; } = item.ComparedValue;

    /// <summary>How many keys the range must have.</summary>
    public long Count { get; } = item.AtRevision & uint.MaxValue;

    /// <summary>The partition whose keys count.</summary>
    public long Partition { get; } = item.Number;

    /// <summary>The version of the map of slots; 0: the range is not divided.</summary>
    public ulong MapVersion { get; } = item.Has(CommandFlags.IfRevision) ? (ulong)item.ComparedRevision : 0;

    /// <summary>True for an item that is such a condition.</summary>
    public static bool Is(scoped in Command item) => item.Kind == CommandKind.KeyRange;

    /// <summary>The key lies in the range.</summary>
    public bool Contains(ReadOnlySpan<byte> key) =>
        key.SequenceCompareTo(Start) >= 0 && (End.IsEmpty || key.SequenceCompareTo(End) < 0);

    /// <summary>The item for a range that is not divided.</summary>
    public static Command ToItem(Durability durability, ReadOnlySpan<byte> start, ReadOnlySpan<byte> end, int count) =>
        new()
        {
            Kind = CommandKind.KeyRange,
            Durability = durability,
            Flags = CommandFlags.AtRevision | (end.IsEmpty ? 0 : CommandFlags.IfValue),
            Key = start,
            ComparedValue = end,
            AtRevision = RangeRequest.Options(count, RangeFlags.CountOnly),
        };

    /// <summary>The item for one partition.</summary>
    public static Command ToPart(scoped in Command whole, int count, int partition, ulong mapVersion)
    {
        Command part = whole;
        part.Flags |= CommandFlags.Number | CommandFlags.IfRevision;
        part.AtRevision = RangeRequest.Options(count, RangeFlags.CountOnly);
        part.Number = partition;
        part.ComparedRevision = (long)mapVersion;
        return part;
    }
}
