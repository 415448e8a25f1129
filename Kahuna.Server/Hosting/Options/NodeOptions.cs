using Kahuna.Client.Wire;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Options;

/// <summary>
/// Everything that one node is told at its start, checked. Made by <see cref="NodeOptionsParser"/>, or by whoever runs a node
/// inside another program. Immutable; any thread.
/// </summary>
internal sealed record NodeOptions
{
    /// <summary>Partitions of a data directory that is created without a stated number.</summary>
    public const int PartitionsDefault = 1;

    /// <summary>More partitions than this only make the batches smaller.</summary>
    public const int PartitionsMax = 256;

    /// <summary>The log may grow to this size by default: small enough for an ordinary disk, hours of writing at full speed.</summary>
    public const long LogLimitBytesDefault = 16L * 1000 * 1000 * 1000;

    /// <summary>Log that is kept for nodes that lag: seconds of writing at full speed, so that a restarted node needs no snapshot.</summary>
    public const long LogKeepBytesDefault = 512L * 1000 * 1000;

    /// <summary>Memory of ephemeral keys by default.</summary>
    public const long EphemeralBytesDefault = 1000L * 1000 * 1000;

    /// <summary>Longer than a node is normally down or out of reach, and short enough for a service that can do without its ephemeral data.</summary>
    public static readonly TimeSpan EphemeralPatienceDefault = TimeSpan.FromMinutes(10);

    /// <summary>12 MB for each processor, but at least 24 and at most 128: a small machine has its processors' time to save, a large one its administrators'.</summary>
    public static readonly long BackgroundBytesPerSecondDefault = Math.Clamp(12_000_000L * Environment.ProcessorCount, 24_000_000, 128_000_000);

    public const string ClusterIdDefault = "kahuna";

    /// <summary>Where a node without options listens.</summary>
    public static readonly Uri ListenDefault = new("https://127.0.0.1:8082");

    /// <summary>This node.</summary>
    public NodeId NodeId { get; init; } = new(1);

    /// <summary>Name of the cluster; nodes of different clusters refuse each other.</summary>
    public string ClusterId { get; init; } = ClusterIdDefault;

    /// <summary>Addresses to bind, https only, at least one.</summary>
    public IReadOnlyList<Uri> Listen { get; init; } = [ListenDefault];

    /// <summary>The address by which clients and the other nodes reach this node.</summary>
    public Uri Advertise { get; init; } = ListenDefault;

    /// <summary>All nodes of the cluster, this one included, by ascending id.</summary>
    public IReadOnlyList<PeerNode> Peers { get; init; } = [new(new NodeId(1), ListenDefault)];

    /// <summary>The nodes that vote: all of them.</summary>
    public VoterSet Voters => new(Peers.Select(static peer => peer.Id));

    /// <summary>Full path of the directory that holds everything this node keeps.</summary>
    public required string DataDirectory { get; init; }

    /// <summary>Bytes that ephemeral keys may take up on this node, their logs included.</summary>
    public long EphemeralBytesMax { get; init; } = EphemeralBytesDefault;

    /// <summary>Memory that persistent data may take up on this node.</summary>
    public long PersistentBytesMax { get; init; } = PersistentBytesDefault(GC.GetGCMemoryInfo().TotalAvailableMemoryBytes);

    /// <summary>Half of what there is: the other half is for ephemeral keys, logs, snapshots and the store's cache.</summary>
    public static long PersistentBytesDefault(long machineBytes) => machineBytes / 2;

    /// <summary>What happens at that size.</summary>
    public EphemeralPolicy EphemeralPolicy { get; init; }

    /// <summary>
    /// How long a node that has everything of an ephemeral group waits for the others, before it gives the data up; <see cref="TimeSpan.MaxValue"/>: for ever.
    /// </summary>
    public TimeSpan EphemeralPatience { get; init; } = EphemeralPatienceDefault;

    /// <summary>Number of partitions. When <see cref="PartitionsGiven"/> is false, what the data directory records goes before it.</summary>
    public int Partitions { get; init; } = PartitionsDefault;

    /// <summary>Whether the number of partitions was asked for, and so must agree with the data directory.</summary>
    public bool PartitionsGiven { get; init; }

    public LeaderPlacement LeaderPlacement { get; init; } = LeaderPlacement.Together;

    /// <summary>Size of the log above which writes are refused.</summary>
    public long LogLimitBytes { get; init; } = LogLimitBytesDefault;

    /// <summary>
    /// Log that is kept for nodes that lag, and below which nothing is cut. Always less than <see cref="LogLimitBytes"/>: under a limit that small, half of it.
    /// </summary>
    public long LogKeepBytes { get => field < LogLimitBytes ? field : LogLimitBytes / 2; init; } = LogKeepBytesDefault;

    /// <summary>Bytes per second that storing states and sending snapshots may write or send, each.</summary>
    public long BackgroundBytesPerSecond { get; init; } = BackgroundBytesPerSecondDefault;

    /// <summary>Where the state is to lie on disk; what the data directory records goes before <see cref="StateStoreChoice.Auto"/>.</summary>
    public StateStoreChoice StateStore { get; init; } = StateStoreChoice.Auto;

    /// <summary>Largest value that a client may write.</summary>
    public int ValueBytesMax { get; init; } = Limits.ValueBytesDefault;

    /// <summary>PEM file with this node's certificate and the intermediate ones after it; null: a development certificate.</summary>
    public string? CertificatePath { get; init; }

    /// <summary>PEM file with the certificate's private key.</summary>
    public string? CertificateKeyPath { get; init; }

    /// <summary>PEM file with the authorities that this node trusts when it connects to other nodes; null: the system's, or the development authority.</summary>
    public string? TrustedCaPath { get; init; }

    /// <summary>File with the secret that the nodes of a cluster prove to each other.</summary>
    public string? ClusterSecretFile { get; init; }

    public LogLevel LogLevel { get; init; } = LogLevel.Information;

    public LogFormat LogFormat { get; init; } = LogFormat.Text;

    /// <summary>Full path of the file to which a trace for checking is added; null: none.</summary>
    public string? TracePath { get; init; }

    /// <summary>The JSON file that was read, if any.</summary>
    public string? ConfigPath { get; init; }

    /// <summary>Whether log and state are to be dropped before the start, to come back from the other nodes.</summary>
    public bool Rebuild { get; init; }

    /// <summary>Whether <see cref="Rebuild"/> is confirmed already, so that nobody is asked.</summary>
    public bool RebuildConfirmed { get; init; }

    /// <summary>Whether this node is a cluster of its own.</summary>
    public bool IsStandalone => Peers.Count == 1;
}
