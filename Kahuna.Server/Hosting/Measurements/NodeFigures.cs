using Kahuna.Server.Api.Watches;
using Kahuna.Server.Cluster;
using Kahuna.Server.Partitions.Loops;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Storage;
using Kahuna.Server.Transport;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>
/// Where the metrics of a node are read: the same parts that <c>/status</c> shows. Immutable; any thread.
/// </summary>
/// <param name="View">The cluster.</param>
/// <param name="Loops">The partitions.</param>
/// <param name="Log">The log.</param>
/// <param name="Checkpoints">The checkpoint service.</param>
/// <param name="Watches">The watches.</param>
internal sealed record NodeFigures(
    ClusterView View, LoopSet Loops, ThreadedLog Log, CheckpointService Checkpoints, WatchHub Watches)
{
    /// <summary>The links to other nodes.</summary>
    public required PeerLinks Links { get; init; }

    /// <summary>The direct links of clients.</summary>
    public required DirectLinks Direct { get; init; }

    /// <summary>The certificates.</summary>
    public required TlsSource Tls { get; init; }

    /// <summary>The connections of each address.</summary>
    public required AddressLimiter Addresses { get; init; }

    /// <summary>Number of open connections.</summary>
    public required Func<int> Connections { get; init; }

    /// <summary>The answers of each loop.</summary>
    public required IReadOnlyList<OperationTimes> Times { get; init; }

    /// <summary>Traced operations; null: none is.</summary>
    public OperationTraces? Traces { get; init; }

    /// <summary>The limits of the memory for the data of each durability, and of the log, in bytes.</summary>
    public required (long Persistent, long Ephemeral, long Log) Limits { get; init; }
}
