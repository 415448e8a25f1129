using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Tests.Linearizability;
using Kahuna.Tests.Simulation.Faults;
using Kahuna.Tests.Simulation.Rules;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// The calls for ephemeral keys as the checker takes them: each epoch begins empty, so that a key is another one in
/// each. A revision says of which epoch an answer is; an answer without a revision counts where the times leave one
/// epoch only, and a call whose end is unknown in every epoch that it can have happened in.
/// </summary>
internal sealed class EphemeralHistory(ClusterRules rules, int groups, SlotMover? mover)
{
    private const int ProcessesMax = 100_000;

    public IEnumerable<HistoryOperation> Of(Call call)
    {
        VolatileRules group = rules.Ephemeral(
            mover?.Concerns(call.Key) == true ? mover.Partition : InitialPartition.Of(call.Key, groups));
        if (call.Outcome is CallOutcome.Unknown or CallOutcome.Open)
        {
            for (ulong epoch = 1; epoch <= group.Newest; epoch++)
            {
                if (call.CallNs < group.OpenedNs(epoch + 1))
                {
                    yield return In(call, epoch);
                }
            }
        }
        else if (call.Outcome == CallOutcome.Ok)
        {
            ulong found = EpochOf(call, group);

            // What was carried out in an epoch that was closed before its answer came is carried out again in the next:
            // the number went with everything else.
            ulong last = found == 0 ? group.Newest : found - 1;
            for (ulong epoch = 1; epoch <= last && call.Kind is not (CallKind.Get or CallKind.Exists); epoch++)
            {
                if (call.CallNs < group.OpenedNs(epoch + 1) && call.ReturnNs >= group.OpenedNs(epoch))
                {
                    yield return In(call, epoch) with
                    {
                        Outcome = HistoryOutcome.Unknown,
                        Result = OperationResult.Unconstrained,
                    };
                }
            }

            if (found == 0)
            {
                yield break;
            }

            if (call.CallNs >= group.OpenedNs(found + 1))
            {
                rules.Break(
                    "nothing happens in a closed epoch",
                    $"{call.Kind} of {call.Key} by {call.Process} was answered in epoch {found}, and "
                        + $"began after epoch {found + 1}");
            }

            yield return In(call, found);
        }
    }

    private static ulong EpochOf(Call call, VolatileRules group)
    {
        if (call.Revision is { } revision and > 0)
        {
            return StateLimits.EpochOf(new Revision(revision)).Value;
        }

        ulong only = 0;
        for (ulong epoch = 1; epoch <= group.Newest; epoch++)
        {
            if (call.CallNs < group.OpenedNs(epoch + 1) && call.ReturnNs >= group.OpenedNs(epoch))
            {
                if (only != 0)
                {
                    return 0;
                }

                only = epoch;
            }
        }

        return only;
    }

    private static HistoryOperation In(Call call, ulong epoch)
    {
        long before = new StateLimits().InEpoch(new Epoch(epoch)).FirstRevision.Value - 1;
        HistoryOperation operation = CallHistory.Of(call);
        return operation with
        {
            // A call whose end is unknown is in several epochs, each with callers of its own.
            Process = call.Process + (int)(epoch * ProcessesMax),
            Key = $"{call.Name} in epoch {epoch}",
            Arguments = operation.Arguments with
            {
                OnlyIfRevision = call.OnlyIfRevision is not { } compared
                    ? null
                    : StateLimits.EpochOf(new Revision(compared)).Value == epoch
                    ? compared - before
                    : long.MaxValue,
            },
            Result = operation.Result with
            {
                Revision = operation.Result.Revision is { } revision and > 0
                    ? revision - before
                    : operation.Result.Revision,
            },
        };
    }
}
