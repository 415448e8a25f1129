using Kahuna.Server.Primitives;
using Kahuna.Server.Transport;
using Kahuna.Wire;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Hosting.Options;

/// <summary>
/// The checked options of one node. Created by <see cref="NodeOptionsParser"/>, or by a program that runs a node inside
/// itself. Immutable; any thread.
/// </summary>
internal sealed record NodeOptions
{
    /// <summary>More partitions than this only make the batches smaller.</summary>
    public const int PartitionsMax = 256;

    private const int PartitionsDefaultMax = 16;

    /// <summary>
    /// Partitions of a new data directory if no number is given: as many as there are loops that serve them, so that
    /// each loop has one. Further ones cost small machines up to a sixth (docs/performance.md, "One partition or
    /// several").
    /// </summary>
    public static int PartitionsFor(int processors) => Math.Clamp(processors / 2, 1, PartitionsDefaultMax);

    /// <summary>
    /// Default size limit of the log: small enough for an ordinary disk, and hours of writing at full speed.
    /// </summary>
    public const long LogLimitBytesDefault = 16L * 1000 * 1000 * 1000;

    /// <summary>
    /// Default size of the log kept for lagging nodes: seconds of writing at full speed, so that a restarted node needs
    /// no snapshot.
    /// </summary>
    public const long LogKeepBytesDefault = 512L * 1000 * 1000;

    /// <summary>Default memory of ephemeral keys.</summary>
    public const long EphemeralBytesDefault = 1000L * 1000 * 1000;

    /// <summary>
    /// Longer than a node is normally down or unreachable, and short enough for a service that can do without its
    /// ephemeral data.
    /// </summary>
    public static readonly TimeSpan EphemeralPatienceDefault = TimeSpan.FromMinutes(10);

    /// <summary>
    /// 12 MB per processor, at least 24 and at most 128. On a small machine it saves processor time, on a large one it
    /// shortens the administrators' waits.
    /// </summary>
    public static readonly long BackgroundBytesPerSecondDefault = Math.Clamp(
        12_000_000L * Environment.ProcessorCount, 24_000_000, 128_000_000);

    /// <summary>
    /// Default memory of the changes that watches can go back to: some 300,000 small changes, which a client that
    /// reconnects, or a node that restarts, needs.
    /// </summary>
    public const long WatchHistoryBytesDefault = 64L << 20;

    public const string ClusterIdDefault = "kahuna";

    /// <summary>The listen address of a node without options.</summary>
    public static readonly Uri ListenDefault = new("https://127.0.0.1:8082");

    /// <summary>This node.</summary>
    public NodeId NodeId { get; init; } = new(1);

    /// <summary>Name of the cluster; nodes of different clusters refuse each other.</summary>
    public string ClusterId { get; init; } = ClusterIdDefault;

    /// <summary>Addresses to bind, https only, at least one.</summary>
    public IReadOnlyList<Uri> Listen { get; init; } = [ListenDefault];

    /// <summary>The address by which clients and other nodes reach this node.</summary>
    public Uri Advertise { get; init; } = ListenDefault;

    /// <summary>All nodes of the cluster, this one included, by ascending id.</summary>
    public IReadOnlyList<PeerNode> Peers { get; init; } = [new(new NodeId(1), ListenDefault)];

    /// <summary>The nodes that vote: all of them.</summary>
    public VoterSet Voters => new(Peers.Select(static peer => peer.Id));

    /// <summary>Full path of the directory for all data of this node.</summary>
    public required string DataDirectory { get; init; }

    /// <summary>Memory limit of ephemeral keys on this node, their logs included, in bytes.</summary>
    public long EphemeralBytesMax { get; init; } = EphemeralBytesDefault;

    /// <summary>Memory limit of persistent data on this node, in bytes.</summary>
    public long PersistentBytesMax { get; init; } = PersistentBytesDefault(
        GC.GetGCMemoryInfo().TotalAvailableMemoryBytes);

    /// <summary>Half of the memory; the rest is for ephemeral keys, logs, snapshots and the store's cache.</summary>
    public static long PersistentBytesDefault(long machineBytes) => machineBytes / 2;

    /// <summary>What happens at that limit.</summary>
    public EphemeralPolicy EphemeralPolicy { get; init; }

    /// <summary>
    /// How long a node with all data of an ephemeral group waits for the others before it gives the data up;
    /// <see cref="TimeSpan.MaxValue"/>: no limit.
    /// </summary>
    public TimeSpan EphemeralPatience { get; init; } = EphemeralPatienceDefault;

    /// <summary>
    /// Number of partitions; 1 where a program runs a node inside itself and gives none. When
    /// <see cref="PartitionsGiven"/> is false, the number in the data directory overrides it.
    /// </summary>
    public int Partitions { get; init; } = 1;

    /// <summary>Whether the number of partitions was given; it must then agree with the data directory.</summary>
    public bool PartitionsGiven { get; init; }

    public LeaderPlacement LeaderPlacement { get; init; } = LeaderPlacement.Together;

    /// <summary>Size of the log above which writes are refused.</summary>
    public long LogLimitBytes { get; init; } = LogLimitBytesDefault;

    /// <summary>
    /// Size of the log that is kept for lagging nodes; a smaller log is not cut. Always less than
    /// <see cref="LogLimitBytes"/>; under a small limit, half of it.
    /// </summary>
    public long LogKeepBytes { get => field < LogLimitBytes ? field : LogLimitBytes / 2; init; } = LogKeepBytesDefault;

    /// <summary>How the log is written.</summary>
    public LogWrites LogWrites { get; init; }

    /// <summary>How a leader makes sure that it still leads before it answers a read.</summary>
    public ReadConfirmation Reads { get; init; }

    /// <summary>Memory of the changes that watches can go back to, of all partitions.</summary>
    public long WatchHistoryBytes { get; init; } = WatchHistoryBytesDefault;

    /// <summary>Bytes per second for writing checkpoints and for sending snapshots, each.</summary>
    public long BackgroundBytesPerSecond { get; init; } = BackgroundBytesPerSecondDefault;

    /// <summary>
    /// Format of the stored state; the choice in the data directory overrides <see cref="StateStoreChoice.Auto"/>.
    /// </summary>
    public StateStoreChoice StateStore { get; init; } = StateStoreChoice.Auto;

    /// <summary>
    /// The highest feature level to which this node raises the cluster; null: the highest that all nodes support. A
    /// higher level that the cluster has already stays.
    /// </summary>
    public FeatureLevel? FeatureLevelMax { get; init; }

    /// <summary>
    /// A test's file with the nodes whose frames are dropped (<see cref="TestFeatures"/>); null in earnest.
    /// </summary>
    public string? DeafFile { get; init; }

    /// <summary>The feature levels that this build supports; a test raises them (<see cref="TestFeatures"/>).</summary>
    public FeatureRange Features { get; init; } = FeatureLevels.Supported;

    /// <summary>Largest value that a client may write.</summary>
    public int ValueBytesMax { get; init; } = Limits.ValueBytesDefault;

    /// <summary>
    /// PEM file with this node's certificate and the intermediate certificates after it; null: a development
    /// certificate.
    /// </summary>
    public string? CertificatePath { get; init; }

    /// <summary>PEM file with the certificate's private key.</summary>
    public string? CertificateKeyPath { get; init; }

    /// <summary>
    /// PEM file with the authorities trusted for other nodes; null: the system's, or the development authority.
    /// </summary>
    public string? TrustedCaPath { get; init; }

    /// <summary>File with the secret that the nodes prove to each other.</summary>
    public string? ClusterSecretFile { get; init; }

    /// <summary>What the nodes prove to each other besides the secret.</summary>
    public PeerTlsMode PeerTls { get; init; }

    /// <summary>
    /// Default of <see cref="ConnectionsPerAddress"/>: a machine with a thousand client processes, each of which needs
    /// one, and about a tenth of the connections that a node accepts.
    /// </summary>
    public const int ConnectionsPerAddressDefault = 1_024;

    /// <summary>Most open connections of one remote address; 0: no limit.</summary>
    public int ConnectionsPerAddress { get; init; } = ConnectionsPerAddressDefault;

    /// <summary>
    /// Default of <see cref="DirectLinks"/>: the busiest clients of a node, and a number of threads that costs little.
    /// </summary>
    public const int DirectLinksDefault = 64;

    /// <summary>Most direct links of clients, each of which has a thread; 0: none.</summary>
    public int DirectLinks { get; init; } = DirectLinksDefault;

    /// <summary>Who may do what.</summary>
    public AccessOptions Access { get; init; } = new();

    /// <summary>What is measured, and who may see it.</summary>
    public MetricsOptions Metrics { get; init; } = new();

    public LogLevel LogLevel { get; init; } = LogLevel.Information;

    public LogFormat LogFormat { get; init; } = LogFormat.Text;

    /// <summary>Full path of the file to which the trace is appended; null: none.</summary>
    public string? TracePath { get; init; }

    /// <summary>The JSON file that was read, if any.</summary>
    public string? ConfigPath { get; init; }

    /// <summary>Whether to drop log and state before the start and restore them from the other nodes.</summary>
    public bool Rebuild { get; init; }

    /// <summary>Whether <see cref="Rebuild"/> is confirmed, so that no question is asked.</summary>
    public bool RebuildConfirmed { get; init; }

    /// <summary>Whether this node is a cluster of its own.</summary>
    public bool IsStandalone => Peers.Count == 1;
}
