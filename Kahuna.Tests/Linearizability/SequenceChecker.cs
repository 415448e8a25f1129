namespace Kahuna.Tests.Linearizability;

/// <summary>
/// Tells whether the values that a sequence handed out are as promised: each once, in the order of the calls, and none
/// left out but what calls of unknown end may have taken. It counts by ones. No search is needed, since values show
/// their order. Stateless; any thread.
/// </summary>
internal static class SequenceChecker
{
    /// <summary>Checks the operations of one sequence.</summary>
    /// <param name="key">The sequence.</param>
    /// <param name="operations">Its operations, those included that surely did not happen.</param>
    /// <param name="firstValue">The value that the first call should get; null: the lowest that was seen.</param>
    public static KeyVerdict Check(string key, IReadOnlyList<HistoryOperation> operations, long? firstValue = null)
    {
        List<HistoryOperation> taken =
        [
            .. operations.Where(
                static operation => operation.Outcome == HistoryOutcome.Ok && operation.Result.Affirmed != false),
        ];
        HistoryOperation[]? wrong = taken.FirstOrDefault(static operation => !IsWhole(operation)) is { } odd
            ? [odd]
            : CheckKeys(taken) ?? CheckValues(operations, OncePerKey(taken), firstValue);
        int others = operations.Count(static operation => operation.Outcome != HistoryOutcome.Fail);
        return wrong is null
            ? new KeyVerdict(key, Verdict.Linearizable, 0, null)
            : new KeyVerdict(
                key, Verdict.NotLinearizable, 0, new Contradiction(wrong, others - wrong.Length, IsMinimal: true));
    }

    /// <summary>It has as many values as were asked for.</summary>
    private static bool IsWhole(HistoryOperation operation) =>
        operation.Result is { First: { } first, Last: { } last }
            && (Int128)last - first + 1 == operation.Arguments.Count;

    /// <summary>A key names one allocation.</summary>
    private static HistoryOperation[]? CheckKeys(List<HistoryOperation> taken)
    {
        foreach (IGrouping<string?, HistoryOperation> calls in taken.GroupBy(
            static operation => operation.Arguments.IdempotencyKey)
            .Where(static calls => calls.Key is not null))
        {
            HistoryOperation first = calls.First();
            if (calls.FirstOrDefault(
                call => call.Result.First != first.Result.First
                    || call.Arguments.Count != first.Arguments.Count) is { } other)
            {
                return [first, other];
            }
        }

        return null;
    }

    /// <summary>
    /// Of the calls with one key, the one that was answered first, which is not later than the allocation's.
    /// </summary>
    private static List<HistoryOperation> OncePerKey(List<HistoryOperation> taken) =>
        [
            .. taken
                .GroupBy(static operation => (object?)operation.Arguments.IdempotencyKey ?? operation)
                .Select(static calls => calls.MinBy(static call => call.ReturnNs)!)
                .OrderBy(static operation => operation.Result.First),
        ];

    private static HistoryOperation[]? CheckValues(
        IReadOnlyList<HistoryOperation> operations, List<HistoryOperation> byValue, long? firstValue)
    {
        for (int i = 1; i < byValue.Count; i++)
        {
            if (byValue[i].Result.First <= byValue[i - 1].Result.Last)
            {
                return [byValue[i - 1], byValue[i]];
            }
        }

        // Blocks are taken by calls that are not recorded: their values are unique, and that is all.
        return byValue.Any(static operation => operation.Arguments.IsFast)
            ? null
            : CheckGaps(operations, byValue, firstValue) ?? CheckOrder(byValue);
    }

    private static HistoryOperation[]? CheckGaps(
        IReadOnlyList<HistoryOperation> operations, List<HistoryOperation> byValue, long? firstValue)
    {
        Int128 excused = 0;
        foreach (HistoryOperation operation in operations)
        {
            excused += operation.Outcome == HistoryOutcome.Unknown ? operation.Arguments.Count : 0;
        }

        Int128 missing = 0;
        for (int i = 0; i < byValue.Count; i++)
        {
            long expected = i > 0
                ? byValue[i - 1].Result.Last!.Value + 1
                : firstValue ?? byValue[0].Result.First!.Value;
            missing += (Int128)byValue[i].Result.First!.Value - expected;
            if (missing < 0 || missing > excused)
            {
                return i > 0 ? [byValue[i - 1], byValue[i]] : [byValue[i]];
            }
        }

        return null;
    }

    /// <summary>
    /// A call that begins after another one's answer gets later values. Not a call with a key, whose values may be
    /// those of an earlier one.
    /// </summary>
    private static HistoryOperation[]? CheckOrder(List<HistoryOperation> byValue)
    {
        HistoryOperation? earliest = null;
        for (int i = byValue.Count - 1; i >= 0; i--)
        {
            if (earliest is not null
                && byValue[i].CallNs > earliest.ReturnNs
                && byValue[i].Arguments.IdempotencyKey is null)
            {
                return [earliest, byValue[i]];
            }

            earliest = earliest is null || byValue[i].ReturnNs < earliest.ReturnNs ? byValue[i] : earliest;
        }

        return null;
    }
}
