using Kahuna.Server.Hosting.Measurements;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Hosting.Page;

/// <summary>
/// Operations that the charts show together, and last the syncs of the log. Long polls, whose length is the caller's
/// wish, are in none.
/// </summary>
internal enum HistoryGroup
{
    PersistentWrites,
    EphemeralWrites,
    Reads,
    Locks,
    LogSyncs,
}

/// <summary>What the charts show as it is at the moment of a sample.</summary>
internal enum HistoryGauge
{
    ProcessBytes,
    PersistentBytes,
    EphemeralBytes,
    LogBytes,
    Connections,
}

/// <summary>
/// What a node has counted from its start to one moment, added up for the charts. Reused from sample to sample, so that
/// a sample takes no memory. Owned by one <see cref="NodeHistory"/>; not thread-safe.
/// </summary>
internal sealed class HistoryTotals
{
    /// <summary>Number of <see cref="HistoryGroup"/>s.</summary>
    public const int Groups = (int)HistoryGroup.LogSyncs + 1;

    /// <summary>Number of <see cref="HistoryGauge"/>s.</summary>
    public const int Gauges = (int)HistoryGauge.Connections + 1;

    private const int Places = DurationHistogram.Bounds + 1;

    private static readonly OutcomeStatus[] s_refusals =
    [
        .. Enum.GetValues<OutcomeStatus>().Where(static status => status >= OutcomeStatus.InvalidArgument
            && status is not (OutcomeStatus.NotLeader or OutcomeStatus.SlotMoved)),
    ];

    private readonly long[] _counts = new long[Groups * Places];
    private readonly long[] _gauges = new long[Gauges];

    /// <summary>Answers that refuse, or leave open whether it happened; redirections are none.</summary>
    public long Refused { get; set; }

    /// <summary>Durations of a group, a number for each place of a <see cref="DurationHistogram"/>.</summary>
    public Span<long> CountsOf(HistoryGroup group) => _counts.AsSpan((int)group * Places, Places);

    /// <summary>A gauge.</summary>
    public ref long GaugeOf(HistoryGauge gauge) => ref _gauges[(int)gauge];

    /// <summary>Everything is zero again.</summary>
    public void Clear()
    {
        Array.Clear(_counts);
        Array.Clear(_gauges);
        Refused = 0;
    }

    /// <summary>Reads the figures of a node; any thread.</summary>
    public void Read(NodeFigures node)
    {
        Clear();
        long ignored = 0;
        foreach (OperationTimes loop in node.Times)
        {
            foreach (OperationRow row in loop.Rows)
            {
                if (GroupOf(row.Kind, row.Durability) is { } group)
                {
                    row.Times.AddTo(CountsOf(group), ref ignored);
                }

                foreach (OutcomeStatus status in s_refusals)
                {
                    Refused += row.Count(status);
                }
            }
        }

        foreach (OutcomeStatus status in s_refusals)
        {
            Refused += node.Loops.Refusals.Count(status);
        }

        node.Log.Times.Syncs.AddTo(CountsOf(HistoryGroup.LogSyncs), ref ignored);
        (GaugeOf(HistoryGauge.PersistentBytes), GaugeOf(HistoryGauge.EphemeralBytes)) = node.Loops.MemoryBytes;
        GaugeOf(HistoryGauge.ProcessBytes) = Environment.WorkingSet;
        GaugeOf(HistoryGauge.LogBytes) = node.Log.Bytes;
        GaugeOf(HistoryGauge.Connections) = node.Connections();
    }

    /// <summary>The group that an operation belongs to; null: it is in none.</summary>
    internal static HistoryGroup? GroupOf(CommandKind kind, Durability durability) =>
        CommandKinds.Has(kind, CommandTraits.MayBeHeld) ? null
            : CommandKinds.IsLock(kind) ? HistoryGroup.Locks
            : CommandKinds.IsRead(kind) ? HistoryGroup.Reads
            : durability == Durability.Ephemeral ? HistoryGroup.EphemeralWrites
            : HistoryGroup.PersistentWrites;
}
