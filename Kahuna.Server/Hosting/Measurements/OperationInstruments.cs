using System.Diagnostics.Metrics;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>
/// The metrics of operations: how many there were, how they ended and how long they took. Immutable; any thread.
/// </summary>
/// <param name="all">The answers of each loop.</param>
/// <param name="refusals">The answers that no loop has made.</param>
internal sealed class OperationInstruments(IReadOnlyList<OperationTimes> all, Refusals refusals)
{
    /// <summary>Kinds of commands that clients send, each with two durabilities.</summary>
    private const int OperationsMax = 2 * 64;

    /// <summary>An operation has few of the outcomes.</summary>
    private const int OutcomesMax = 16;

    private static readonly OutcomeStatus[] s_statuses = Enum.GetValues<OutcomeStatus>();

    private static readonly Dictionary<OutcomeStatus, KeyValuePair<string, object?>[]> s_outcomes =
        s_statuses.ToDictionary(static status => status, static status => new KeyValuePair<string, object?>[]
        {
            new("kahuna.outcome", OperationNames.Of(status)),
            new("kahuna.outcome.class", ClassOf(status)),
        });

    /// <summary>Adds them.</summary>
    public void Add(NodeMeter meter)
    {
        meter.Counter(
            new("kahuna.operations", "Operations that were answered, by how they ended.", "{operation}"),
            OperationsMax * OutcomesMax,
            Outcomes);
        meter.Counter(
            new("kahuna.requests.refused", "Requests that were refused before a partition had them.", "{request}"),
            s_statuses.Length,
            Refused);
        meter.Histogram(
            new(
                "kahuna.operation.duration",
                "Time from the arrival of an operation until its answer was made; waits for locks are included."),
            OperationsMax,
            () => Rows().Select(static same => HistogramSeries.Of(
                LabelsOf(same.Key.Kind, same.Key.Durability), same.Select(static row => row.Times))));
        meter.Histogram(
            new(
                "kahuna.lock.wait.duration",
                "Time that a claim waited for a lock, from its client's first question until it was granted or gave up."
            ),
            1,
            () => [HistogramSeries.Of([], all.Select(static times => times.LockWaits))]);
    }

    private static KeyValuePair<string, object?>[] LabelsOf(CommandKind kind, Durability durability) =>
    [
        new("kahuna.operation", OperationNames.Of(kind)),
        new(GroupLabels.Durability, OperationNames.Of(durability)),
    ];

    /// <summary>
    /// "ok": carried out as the operation defines, also if a condition did not hold. "redirected": another node or
    /// partition serves it. "unknown": whether it happened is not known. "refused": it did not happen.
    /// </summary>
    private static string ClassOf(OutcomeStatus status) => status switch
    {
        < OutcomeStatus.InvalidArgument => "ok",
        OutcomeStatus.NotLeader or OutcomeStatus.SlotMoved => "redirected",
        OutcomeStatus.Unknown or OutcomeStatus.Internal => "unknown",
        _ => "refused",
    };

    private IEnumerable<IGrouping<(CommandKind Kind, Durability Durability), OperationRow>> Rows() =>
        all.SelectMany(static times => times.Rows).GroupBy(static row => (row.Kind, row.Durability));

    private IEnumerable<Measurement<long>> Outcomes()
    {
        foreach (IGrouping<(CommandKind Kind, Durability Durability), OperationRow> same in Rows())
        {
            KeyValuePair<string, object?>[] labels = LabelsOf(same.Key.Kind, same.Key.Durability);
            foreach (OutcomeStatus status in s_statuses)
            {
                long count = same.Sum(row => row.Count(status));
                if (count > 0)
                {
                    yield return new Measurement<long>(count, [.. labels, .. s_outcomes[status]]);
                }
            }
        }
    }

    private IEnumerable<Measurement<long>> Refused()
    {
        foreach (OutcomeStatus status in s_statuses)
        {
            long count = refusals.Count(status);
            if (count > 0)
            {
                yield return new Measurement<long>(count, s_outcomes[status]);
            }
        }
    }
}
