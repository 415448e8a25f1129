namespace Kahuna.Client.KeyValues;

/// <summary>Options of a scan or a count. Immutable, so one instance may serve many concurrent calls.</summary>
public sealed record ScanOptions
{
    /// <summary>The durability, which is part of the keys' names; null for the client's.</summary>
    public Durability? Durability { get; init; }

    /// <summary>The start of the range, which is part of it; null for no such bound. It need not exist.</summary>
    public string? From { get; init; }

    /// <summary>The end of the range, which is not part of it; null for no such bound. It need not exist.</summary>
    public string? To { get; init; }

    /// <summary>From the last key to the first.</summary>
    public bool Descending { get; init; }

    /// <summary>Without the values, which are null then.</summary>
    public bool KeysOnly { get; init; }

    /// <summary>
    /// All pages of all partitions show one moment between the call and the first key: no change after it is in the
    /// scan, and none before it is missing. The leaders keep the keys that change meanwhile, for a minute at most, and
    /// may hold writes up to 5 ms at the beginning. The scan ends with <see cref="KahunaErrorCode.ScanExpired"/> when a
    /// leader changes, the scan takes longer, or too much of the range is overwritten; it begins again by itself if it
    /// has returned no key yet.
    /// </summary>
    public bool Consistent { get; init; }

    /// <summary>
    /// How many keys of a partition one request asks for, 1 to 10,000. The answer has fewer where they are large. The
    /// default is 1,000.
    /// </summary>
    public int PageSize { get; init; } = 1_000;

    /// <summary>How many keys are returned, 1 or more; null for all. It does not apply to a count.</summary>
    public long? Limit { get; init; }
}
