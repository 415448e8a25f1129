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

    /// <summary>Client sessions that are remembered.</summary>
    public int SessionsMax { get; init; } = 1_000_000;

    /// <summary>Bytes that they may take up, outcomes included; then no further ones are taken.</summary>
    public long SessionBytesMax { get; init; } = 256L << 20;

    /// <summary>For so long after its first attempt was carried out a command may come again, in cluster time: the longest request timeout of a client, and a minute for what it was on its way.</summary>
    public long CommandLifeMs { get; init; } = Client.Wire.Limits.CommandWaitMsMax + 60_000;

    /// <summary>A session is forgotten that was idle for so long, in cluster time: an hour.</summary>
    public long SessionIdleMs { get; init; } = 3_600_000;

    /// <summary>How exactly the time of a session's last command is kept.</summary>
    public long SessionTouchMs { get; init; } = 1000;

    /// <summary>The revision that the first write of a key gets.</summary>
    public long FirstRevision { get; private init; } = 1;

    /// <summary>The longest lease that an epoch of an ephemeral group may grant before the meta group has made room for longer ones: a minute.</summary>
    public long LeaseCeilingMs { get; init; } = Meta.MetaGroup.CeilingMsDefault;

    /// <summary>Who waits for a lock is looked after so often, in cluster time.</summary>
    public long WaiterCheckMs { get; init; } = 20_000;

    /// <summary>
    /// Where an epoch begins empty: the longest lease that the epoch before could grant. Its cluster time begins at 0 after the one before was closed, so that until this cluster time nothing is granted.
    /// </summary>
    public long LeasesBeforeMs { get; init; }

    /// <summary>As these, for an epoch of an ephemeral group, from 1 on: its revisions and tokens are above those of all epochs before.</summary>
    public StateLimits InEpoch(ulong epoch) => this with { FirstRevision = ((long)(epoch - 1) << RevisionBits) + 1 };

    /// <summary>The epoch that a revision of an ephemeral key is from.</summary>
    public static ulong EpochOf(long revision) => (ulong)(revision >> RevisionBits) + 1;
}
