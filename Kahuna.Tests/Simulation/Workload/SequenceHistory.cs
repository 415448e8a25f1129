using System.Globalization;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>What the calls for sequences show: each value once, in the order of the calls, within the bounds, and none that nobody got but those of calls whose end is unknown. Stateless.</summary>
internal static class SequenceHistory
{
    /// <summary>What is wrong, or null.</summary>
    public static string? Check(IEnumerable<Call> calls)
    {
        foreach (IGrouping<string, Call> sequence in calls.Where(static call => call.Kind == CallKind.Next).GroupBy(static call => call.Key))
        {
            if (CheckOne([.. sequence]) is { } wrong)
            {
                return $"sequence {sequence.Key}: {wrong}";
            }
        }

        return null;
    }

    private static string? CheckOne(IReadOnlyList<Call> calls)
    {
        if (calls[0].IsFast)
        {
            return calls.Where(static call => call.Outcome == CallOutcome.Ok).GroupBy(static call => call.First).FirstOrDefault(static value => value.Count() > 1) is { } twice
                ? $"{Words(twice.First())} and {Words(twice.Last())} in the fast mode"
                : null;
        }

        List<Call> taken = [];
        foreach (IGrouping<string?, Call> key in calls.Where(static call => call.Outcome == CallOutcome.Ok).GroupBy(static call => call.SequenceKey))
        {
            if (key.Key is null)
            {
                taken.AddRange(key);
                continue;
            }

            // A key names one allocation, which the first of its calls has made.
            Call first = key.MinBy(static call => call.ReturnNs)!;
            if (key.FirstOrDefault(call => (call.First, call.Last, call.By) != (first.First, first.Last, first.By)) is { } other)
            {
                return $"the key {key.Key} names {Words(first)} and {Words(other)}";
            }

            taken.Add(first);
        }

        taken.Sort(static (left, right) => left.First.CompareTo(right.First));
        long missing = 0;
        long next = 1;
        foreach (Call call in taken)
        {
            if (call.Last - call.First + 1 != call.By || call.First < next || call.Last > call.Bound)
            {
                return $"{Words(call)} after the values up to {next - 1}, and {call.By} were asked for";
            }

            missing += call.First - next;
            next = call.Last + 1;
        }

        long unknown = calls.Where(static call => call.Outcome is CallOutcome.Unknown or CallOutcome.Open).Sum(static call => call.By);
        if (missing > unknown)
        {
            return string.Create(CultureInfo.InvariantCulture, $"{missing} values are missing below {next}, and calls whose end is unknown account for {unknown}");
        }

        return CheckOrder(taken);
    }

    /// <summary>A call that begins after another one's answer gets later values. Not for keys, whose values may be from an earlier call.</summary>
    private static string? CheckOrder(List<Call> byValue)
    {
        long earliestReturn = long.MaxValue;
        for (int i = byValue.Count - 1; i >= 0; i--)
        {
            if (byValue[i].CallNs > earliestReturn && byValue[i].SequenceKey is null)
            {
                return $"{Words(byValue[i])} began after later values were answered";
            }

            earliestReturn = Math.Min(earliestReturn, byValue[i].ReturnNs);
        }

        return null;
    }

    private static string Words(Call call) => string.Create(CultureInfo.InvariantCulture, $"{call.First} to {call.Last} ({call.By}, by {call.Process} at {call.CallNs} to {call.ReturnNs})");
}
