namespace Kahuna.Server.State;

/// <summary>Bounds of one partition's state. The same on every node, since applying depends on them.</summary>
internal sealed record StateLimits
{
    /// <summary>Revisions of an epoch: far more than a key is written in years, and room for half a million epochs above it.</summary>
    private const int RevisionBits = 44;

    /// <summary>Replaced revisions kept per key.</summary>
    public int HistoryPerKey { get; init; } = 8;

    /// <summary>A replaced revision is kept for this long in cluster time: ten minutes.</summary>
    public long HistoryAgeMs { get; init; } = 600_000;

    /// <summary>Bytes of history of one partition; the oldest revisions go first. It bounds memory when a large key space is overwritten at full speed.</summary>
    public long HistoryBytes { get; init; } = 8 << 20;

    /// <summary>The revision that the first write of a key gets.</summary>
    public long FirstRevision { get; private init; } = 1;

    /// <summary>As these, for an epoch of an ephemeral group, from 1 on: its revisions are above those of all epochs before.</summary>
    public StateLimits InEpoch(ulong epoch) => this with { FirstRevision = ((long)(epoch - 1) << RevisionBits) + 1 };

    /// <summary>The epoch that a revision of an ephemeral key is from.</summary>
    public static ulong EpochOf(long revision) => (ulong)(revision >> RevisionBits) + 1;
}
