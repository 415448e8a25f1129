using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Snapshots;

/// <summary>Everything the checkpoint service reaches the world through; a simulator gives its own.</summary>
/// <param name="Store">The node's stored states.</param>
/// <param name="Log">The node's log; only its sizes are asked.</param>
/// <param name="Transport">Links to the peers.</param>
/// <param name="Clock">Monotonic time; no timer of it is used.</param>
/// <param name="Report">Gets a line for each thing that an operator may want to know.</param>
internal sealed record CheckpointPorts(IStateStore Store, ILogStore Log, IPeerTransport Transport, TimeProvider Clock,
    Action<ReportLine> Report)
{
    /// <summary>
    /// Called when states were stored and no other is due, and not again for
    /// <see cref="CheckpointOptions.RestPauseMs"/>.
    /// </summary>
    public Action Rest { get; init; } = static () => { };

    /// <summary>Counts what is done.</summary>
    public CheckpointCounts Counts { get; } = new();
}
