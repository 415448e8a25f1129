using Kahuna.Tests.Linearizability;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>What is promised of the values of one sequence of the workload. Stateless.</summary>
internal static class SequenceHistory
{
    /// <summary>What is wrong with the calls for one sequence; null: nothing.</summary>
    public static string? Check(string name, List<Call> calls) => name switch
    {
        SequenceCalls.Reborn => CheckIncarnations(name, calls),
        SequenceCalls.Cyclic => CheckCycles(calls, static value => value),
        SequenceCalls.DownCyclic => CheckCycles(calls, static value => SequenceCalls.CycleLength + 1 - value),
        SequenceCalls.Wide => CheckSteps(name, calls, SequenceCalls.WideFirst, SequenceCalls.WideStep),
        SequenceCalls.Down => CheckSteps(name, calls, SequenceCalls.DownFirst, SequenceCalls.DownStep),
        _ => CheckOne(name, calls.Select(CallHistory.Of), calls[0].IsFast ? null : 1),
    }
        ?? (
            calls.FirstOrDefault(static call => call.Last > call.Bound) is { } over
                ? $"{name} gave {over.First} to {over.Last}, and ends at {over.Bound}"
                : null);

    private static string? CheckOne(string name, IEnumerable<HistoryOperation> calls, long? first)
    {
        KeyVerdict verdict = SequenceChecker.Check(name, [.. calls], first);
        return verdict.Verdict == Verdict.Linearizable ? null : new HistoryVerdict([verdict]).Findings();
    }

    /// <summary>A sequence with steps other than 1 is one with steps of 1, when its values are counted.</summary>
    private static string? CheckSteps(string name, List<Call> calls, long first, long step)
    {
        if (calls.FirstOrDefault(
            call => call.Outcome == CallOutcome.Ok
                && ((call.First - first) % step != 0 || (call.Last - first) % step != 0)) is { } odd)
        {
            return $"{name} gave {odd.First} to {odd.Last}, and goes from {first} by {step}";
        }

        KeyVerdict verdict = SequenceChecker.Check(name, [.. calls.Select(
            call => CallHistory.Of(call) is var operation && call.Outcome != CallOutcome.Ok ? operation : operation with
        {
            Result = new OperationResult
            {
                Affirmed = true,
                First = ((call.First - first) / step) + 1,
                Last = ((call.Last - first) / step) + 1,
            },
        })], 1);
        return verdict.Verdict == Verdict.Linearizable ? null : new HistoryVerdict([verdict]).Findings();
    }

    /// <summary>Each incarnation by itself, and none goes on when another has begun after it.</summary>
    /// <remarks>
    /// A sequence that was created again knows none of its earlier keys (docs/guarantees.md). So a call under a key
    /// whose answer was lost may have taken values of one incarnation, and be answered by the next one.
    /// </remarks>
    private static string? CheckIncarnations(string name, List<Call> calls)
    {
        HistoryOperation[] others =
            [.. calls.Where(static call => call.Outcome != CallOutcome.Ok).Select(CallHistory.Of)];
        ILookup<long, Call> incarnations = calls.Where(static call => call.Outcome == CallOutcome.Ok)
            .ToLookup(static call => call.First / SequenceCalls.Incarnation);
        foreach (IGrouping<long, Call> incarnation in incarnations)
        {
            IEnumerable<HistoryOperation> elsewhere = calls
                .Where(call => call is { Outcome: CallOutcome.Ok, SequenceKey: not null }
                    && call.First / SequenceCalls.Incarnation > incarnation.Key)
                .Select(static call => CallHistory.Of(call) with
                {
                    Outcome = HistoryOutcome.Unknown,
                    Result = OperationResult.Unconstrained,
                });
            HistoryOperation[] all = [.. incarnation.Select(CallHistory.Of), .. others, .. elsewhere];
            if (CheckOne(name, all, incarnation.Key * SequenceCalls.Incarnation) is { } wrong)
            {
                return wrong;
            }

            long answered = incarnation.Min(static call => call.ReturnNs);
            long asked = incarnation.Max(static call => call.CallNs);
            if (calls.FirstOrDefault(
                call => call.Outcome == CallOutcome.Ok
                    && call.First / SequenceCalls.Incarnation != incarnation.Key
                    && call.CallNs > answered
                    && call.ReturnNs < asked) is { } between)
            {
                return $"{name} gave values from {incarnation.Key * SequenceCalls.Incarnation} on before and after a "
                    + $"call that got {between.First}";
            }
        }

        return null;
    }

    /// <summary>
    /// No value came more than once oftener than another, but for those that calls of unknown end may have taken.
    /// </summary>
    private static string? CheckCycles(List<Call> calls, Func<long, long> placeOf)
    {
        long[] count = new long[SequenceCalls.CycleLength + 1];
        foreach (Call call in calls.Where(static call => call.Outcome == CallOutcome.Ok))
        {
            if (call.First != call.Last || call.First < 1 || call.First > SequenceCalls.CycleLength)
            {
                return $"{call.Key} gave {call.First} to {call.Last}";
            }

            count[placeOf(call.First)]++;
        }

        long excused = calls.LongCount(static call => call.Outcome is CallOutcome.Unknown or CallOutcome.Open);
        for (int value = 1; value < count.Length; value++)
        {
            long later = value + 1 < count.Length ? count[value + 1] : count[1] - 1;
            long missing = later - count[value];
            if (missing > excused || (value + 1 < count.Length && -missing > excused + 1))
            {
                return $"value {value} came {count[value]} times, and the one after it {later} times; {excused} "
                    + $"calls ended without an answer";
            }
        }

        return null;
    }
}
