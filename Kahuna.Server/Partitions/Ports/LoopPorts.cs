using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>Everything a loop reaches the world through; a simulator gives its own.</summary>
/// <param name="Partitions">Number of partitions of the cluster.</param>
/// <param name="Clock">Monotonic time; no timer of it is used.</param>
/// <param name="Scheduler">Where turns run.</param>
/// <param name="Log">The node's log.</param>
/// <param name="Transport">Links to the peers.</param>
/// <param name="Leadership">Who hears of leaders and failures.</param>
internal sealed record LoopPorts(int Partitions, TimeProvider Clock, ITurnScheduler Scheduler, ILogStore Log,
    IPeerTransport Transport, ILeadershipSink Leadership)
{
    private GroupLayout? _layout;

    /// <summary>The node's stored states; read by the loops at their start only.</summary>
    public required IStateStore States { get; init; }

    /// <summary>The node's checkpoint service.</summary>
    public required ICheckpointInbox Checkpoints { get; init; }

    /// <summary>Ends the process when a turn throws.</summary>
    public required IFatalErrors FatalErrors { get; init; }

    /// <summary>What the node's ephemeral keys may take up.</summary>
    public EphemeralMemory Memory { get; init; } = new(long.MaxValue);

    /// <summary>What the node's persistent data may take up in memory.</summary>
    public PersistentMemory PersistentMemory { get; init; } = new(long.MaxValue);

    /// <summary>Which groups the node has. Built at the first call, by the owner of the loops.</summary>
    public GroupLayout Layout(LoopOptions options) => _layout ??= new(Partitions, options.HasEphemeral);

    /// <summary>Keeps the changes of keys, by group index; null: they are not kept.</summary>
    public ChangeLogs? Changes { get; init; }

    /// <summary>Ends transactions over several partitions that are late; null: nobody does.</summary>
    public ITransactionSettler? Settler { get; init; }

    /// <summary>Counts the answers of each loop, by its number; null: they are not counted.</summary>
    public IReadOnlyList<OperationTimes>? Times { get; init; }

    /// <summary>Hears what the partitions do; null when nobody checks it.</summary>
    public IPartitionTrace? Trace { get; init; }

    /// <summary>Gets a line for each thing that an operator may want to know.</summary>
    public Action<ReportLine> Report { get; init; } = static _ => { };
}
