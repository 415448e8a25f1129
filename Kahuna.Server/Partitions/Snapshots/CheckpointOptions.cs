using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;

namespace Kahuna.Server.Partitions.Snapshots;

/// <summary>What the checkpoint service needs to know. Immutable.</summary>
internal sealed record CheckpointOptions
{
    public required NodeId Self { get; init; }

    /// <summary>Bytes per second that storing states may write, and that sending snapshots may send, each.</summary>
    public long BytesPerSecond { get; init; } = 32_000_000;

    /// <summary>
    /// Bytes per second that sending the state of an ephemeral group may send: as fast as a link takes it, since the
    /// group lives on fewer members until that is done.
    /// </summary>
    public long VolatileBytesPerSecond { get; init; } = 512_000_000;

    /// <summary>
    /// Log since the stored state at which storing is no longer held to its rate: the log must not outgrow its room.
    /// </summary>
    public long UrgentLogBytes { get; init; } = 512L << 20;

    /// <summary>
    /// Bytes of records put aside, because they change before they are stored, that storing lets gather to keep to its
    /// rate: they cost memory.
    /// </summary>
    public long AsideBytesMax { get; init; } = 1 << 20;

    /// <summary>
    /// Bytes of records that a loop copies in one turn: a fraction of a millisecond. With larger slices storing takes
    /// fewer turns, and less changes meanwhile.
    /// </summary>
    public int SliceBytes { get; init; } = 256 << 10;

    /// <summary>
    /// With more log than this since the stored state, it is stored anew before it is sent to a follower.
    /// </summary>
    public long FreshLogBytes { get; init; } = 8L << 20;

    /// <summary>Bytes of records in one chunk of a snapshot.</summary>
    public int ChunkBytes { get; init; } = 128 << 10;

    /// <summary>
    /// Snapshot chunks that may be on their way to one follower: enough for a round trip at the highest rate, and what
    /// one transfer holds in memory.
    /// </summary>
    public int ChunksInFlight { get; init; } = 16;

    /// <summary>Bytes of arrived snapshot messages that may wait; more is dropped, as on a network.</summary>
    public int ArrivedBytesMax { get; init; } = 8 << 20;

    /// <summary>Without an answer for so long, chunks are sent again.</summary>
    public int ResendMs { get; init; } = 1_000;

    /// <summary>Without progress for so long, a transfer is given up.</summary>
    public int GiveUpMs { get; init; } = 30_000;

    /// <summary>Pause after a write for which there was no room.</summary>
    public int NoRoomPauseMs { get; init; } = 5_000;

    /// <summary>
    /// Least time between two calls of <see cref="CheckpointPorts.Rest"/>, which is work for the whole process, however
    /// many groups are stored.
    /// </summary>
    public int RestPauseMs { get; init; } = 30_000;

    public StateLimits StateLimits { get; init; } = new();

    /// <summary>Transfers are numbered from here on; differs between starts of a node.</summary>
    public required ulong FirstTransfer { get; init; }
}
