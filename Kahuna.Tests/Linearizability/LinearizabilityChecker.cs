namespace Kahuna.Tests.Linearizability;

/// <summary>
/// Tells whether a history is linearizable: whether there is an order of its operations, true to the times of calls and
/// returns, in which every answer is what a single register, a single sequence or a single lock would have given. Key
/// by key, because keys do not depend on each other, but for writes with the token of a lock. Stateless; any thread.
/// </summary>
internal static class LinearizabilityChecker
{
    /// <summary>
    /// Takes the operations in and checks them. Throws <see cref="HistoryException"/> when they are no history.
    /// </summary>
    public static HistoryVerdict Check(IEnumerable<HistoryOperation> operations, CheckerOptions? options = null) =>
        Check(History.Of(operations), options);

    public static HistoryVerdict Check(History history, CheckerOptions? options = null)
    {
        options ??= new CheckerOptions();
        ContradictionFinder finder = new(options);
        List<KeyVerdict> verdicts = [];
        ILookup<string, HistoryOperation> fenced = history.Keys.Values.SelectMany(static operations => operations)
            .Where(static operation => operation.Arguments.Fence is not null)
            .ToLookup(static operation => operation.Arguments.Fence!.Lock);
        foreach ((string key, List<HistoryOperation> operations) in history.Keys)
        {
            if (operations[0].Kind is OperationKind.Next or OperationKind.Acquire)
            {
                verdicts.Add(
                    operations[0].Kind == OperationKind.Next
                        ? SequenceChecker.Check(key, operations)
                        : LockChecker.Check(key, operations, [.. fenced[key]], options.LockExclusion));
                continue;
            }

            Verdict verdict = Search(operations, options, options.StatesMax, out int states);
            Contradiction? contradiction = verdict == Verdict.NotLinearizable ? finder.Find(operations) : null;
            verdicts.Add(new KeyVerdict(key, verdict, states, contradiction));
        }

        return new HistoryVerdict(verdicts);
    }

    /// <summary>Searches the operations of one key.</summary>
    internal static Verdict Search(
        IEnumerable<HistoryOperation> operations, CheckerOptions options, int statesMax, out int states)
    {
        LinearizationSearch search = new(new KeyHistory(operations, options), statesMax);
        Verdict verdict = search.Run();
        states = search.States;
        return verdict;
    }
}
