using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Routing;
using Kahuna.Wire.Scripts;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// Bounds of one partition's state. The same on every node, since applying depends on them; all but
/// <see cref="HashSecret"/>, <see cref="Features"/> and <see cref="ScriptWords"/>.
/// </summary>
internal sealed record StateLimits
{
    /// <summary>
    /// Revisions of an epoch: far more than a key is written in years, and room for half a million epochs above it.
    /// </summary>
    private const int RevisionBits = 44;

    /// <summary>Leases up to a minute need no raising of the ceiling.</summary>
    public const long LeaseCeilingMsDefault = 60_000;

    /// <summary>Replaced revisions kept per key.</summary>
    public int HistoryPerKey { get; init; } = 8;

    /// <summary>A replaced revision is kept for this long in cluster time: ten minutes.</summary>
    public long HistoryAgeMs { get; init; } = 600_000;

    /// <summary>
    /// Bytes of history of one partition; the oldest revisions go first. It bounds memory when a large key space is
    /// overwritten at full speed.
    /// </summary>
    public long HistoryBytes { get; init; } = 8 << 20;

    /// <summary>Client sessions that are remembered, idempotency keys not counted.</summary>
    public int SessionsMax { get; init; } = 1_000_000;

    /// <summary>Bytes that they may take up, outcomes included; then no further ones are taken.</summary>
    public long SessionBytesMax { get; init; } = 128L << 20;

    /// <summary>Idempotency keys that are remembered.</summary>
    public int IdempotencyKeysMax { get; init; } = 1_000_000;

    /// <summary>Bytes that they may take up, outcomes included: about 130 each.</summary>
    public long IdempotencyKeyBytesMax { get; init; } = 128L << 20;

    /// <summary>
    /// For so long after its first attempt was carried out a command may come again, in cluster time: the longest
    /// request timeout of a client, and a minute for what it was on its way.
    /// </summary>
    public long CommandLifeMs { get; init; } = Wire.Limits.CommandWaitMsMax + 60_000;

    /// <summary>A session is forgotten that was idle for so long, in cluster time: an hour.</summary>
    public long SessionIdleMs { get; init; } = 3_600_000;

    /// <summary>How exactly the time of a session's last command is kept.</summary>
    public long SessionTouchMs { get; init; } = 1000;

    /// <summary>Slabs of 1 MiB and values above 128 KiB that a state may have at a time.</summary>
    public int SlabsMax { get; init; } = SlabAllocator.SlotsMax;

    /// <summary>
    /// So many of them are not for new data: a leader refuses writes before, so that what it has accepted, and what
    /// lies less densely on another node, never finds none. At least those of 64 MiB of values of 128 KiB, twice, and
    /// of all outcomes that sessions remember: 512 + 512 + 2,048. An eighth, because memory that is cut to pieces
    /// differs from node to node.
    /// </summary>
    public int SlabsReserved { get; init; } = 8_192;

    /// <summary>Rows of one state, keys and others, above which new data is refused.</summary>
    public int RowsMax { get; init; } = 1 << 28;

    /// <summary>The revision that the first write of a key gets.</summary>
    public Revision FirstRevision { get; private init; } = new(1);

    /// <summary>
    /// The longest lease that an epoch of an ephemeral group may grant before the meta group has made room for longer
    /// ones: a minute.
    /// </summary>
    public long LeaseCeilingMs { get; init; } = LeaseCeilingMsDefault;

    /// <summary>
    /// Claims that one lock may have, those that hold it and those that wait together. Further ones are refused.
    /// </summary>
    public int ClaimsPerLockMax { get; init; } = Wire.Limits.ClaimsPerLockMax;

    /// <summary>Who waits for a lock is looked after so often, in cluster time.</summary>
    public long WaiterCheckMs { get; init; } = 20_000;

    /// <summary>
    /// Where an epoch begins empty: the longest lease that the epoch before could grant. Its cluster time begins at 0
    /// after the one before was closed, so that until this cluster time nothing is granted.
    /// </summary>
    public ClusterTime LeasesBeforeMs { get; init; }

    /// <summary>The feature levels that this build supports.</summary>
    public FeatureRange Features { get; init; } = FeatureLevels.Supported;

    /// <summary>The highest of them.</summary>
    public FeatureLevel FeatureLevelMax => Features.Max;

    /// <summary>The words of scripts that this build knows. Tests have builds with others.</summary>
    public ScriptWords ScriptWords { get; init; } = ScriptWords.Released;

    /// <summary>
    /// Where an epoch begins empty after slots were moved: the slot map as of its beginning, the same on all members.
    /// Null while the map is the initial one.
    /// </summary>
    public SlotMap? SlotsBefore { get; init; }

    /// <summary>With <see cref="SlotsBefore"/>: the partition that the group serves.</summary>
    public int Partition { get; init; }

    /// <summary>
    /// Key of the tables' hash, which each process draws for itself: where a row is found in memory depends on it, and
    /// nothing else.
    /// </summary>
    public HashSecret HashSecret { get; init; }

    /// <summary>
    /// As these, for an epoch of an ephemeral group, from 1 on: its revisions and tokens are above those of all epochs
    /// before.
    /// </summary>
    public StateLimits InEpoch(Epoch epoch) =>
        this with { FirstRevision = new Revision(((long)(epoch.Value - 1) << RevisionBits) + 1) };

    /// <summary>The epoch that a revision of an ephemeral key is from.</summary>
    public static Epoch EpochOf(Revision revision) => new((ulong)(revision.Value >> RevisionBits) + 1);
}
