using System.Diagnostics;

namespace Kahuna.Tests.Linearizability;

/// <summary>
/// Finds the few operations of a failing history that are to blame. First the shortest beginning of it that fails. Then
/// answers are forgotten, many at a time and at last one by one, as long as the rest still fails: an operation whose
/// answer is forgotten stays in the search as one of unknown outcome. Leaving it out instead would prove nothing, as a
/// read fails at once without the write that it saw. Owned by one check; its time is for all keys together.
/// </summary>
internal sealed class ContradictionFinder(CheckerOptions options)
{
    /// <summary>A search that needs more states counts as not failing, so that the many searches stay short.</summary>
    private const int StatesMax = 10_000;

    /// <summary>The same for what is left at the end, when few searches are still to be done.</summary>
    private const int StatesMaxAtLast = 200_000;

    private readonly Stopwatch _spent = new();
    private int _statesMax;
    private bool _wasUndecided;

    private bool IsOver => _spent.Elapsed >= options.ExplainTimeMax;

    /// <summary>The operations of one key, which fail. Null when no time is left.</summary>
    public Contradiction? Find(IReadOnlyList<HistoryOperation> operations)
    {
        if (IsOver)
        {
            return null;
        }

        _spent.Start();
        _statesMax = StatesMax;
        _wasUndecided = false;
        List<HistoryOperation> happened =
        [
            .. operations.Where(operation => operation.Outcome != HistoryOutcome.Fail)
                .OrderBy(operation => operation.CallNs),
        ];
        List<HistoryOperation> core = ShortestFailingPrefix(happened);
        for (int size = Math.Max(1, Answered(core).Count / 2); size >= 1 && !IsOver; size /= 2)
        {
            core = Forget(core, size);
        }

        if (_wasUndecided)
        {
            _statesMax = StatesMaxAtLast;
            _wasUndecided = false;
            core = Forget(core, 1);
        }

        bool isMinimal = !IsOver && !_wasUndecided;
        _spent.Stop();
        List<HistoryOperation> blamed = Answered(core);
        return new Contradiction(blamed, happened.Count - blamed.Count, isMinimal);
    }

    /// <summary>
    /// A beginning of a linearizable history is linearizable, so the end of the shortest failing one can be found by
    /// halving.
    /// </summary>
    private List<HistoryOperation> ShortestFailingPrefix(List<HistoryOperation> operations)
    {
        long[] ends = [.. Answered(operations).Select(operation => operation.ReturnNs!.Value).Distinct().Order()];
        int low = 0;
        int high = ends.Length - 1;
        while (low < high && !IsOver)
        {
            int middle = (low + high) / 2;
            (low, high) = Fails(Prefix(operations, ends[middle])) ? (low, middle) : (middle + 1, high);
        }

        return Prefix(operations, ends[high]);
    }

    /// <summary>All that was called by then; what was not answered by then is open.</summary>
    private static List<HistoryOperation> Prefix(List<HistoryOperation> operations, long endNs) =>
        [
            .. operations.Where(operation => operation.CallNs <= endNs)
                .Select(operation => operation.ReturnNs > endNs ? operation.WithUnknownOutcome() : operation),
        ];

    /// <summary>Tries to do without the answers of so many neighbours at a time.</summary>
    private List<HistoryOperation> Forget(List<HistoryOperation> operations, int size)
    {
        List<HistoryOperation> answered = Answered(operations);
        for (int from = 0; from < answered.Count && !IsOver; from += size)
        {
            HashSet<HistoryOperation> forgotten = new(
                answered.Skip(from).Take(size), ReferenceEqualityComparer.Instance);
            List<HistoryOperation> rest =
            [
                .. operations.Select(
                    operation => forgotten.Contains(operation) ? operation.WithUnknownOutcome() : operation),
            ];
            operations = Fails(rest) ? rest : operations;
        }

        return operations;
    }

    private static List<HistoryOperation> Answered(List<HistoryOperation> operations) =>
        [.. operations.Where(operation => operation.Outcome == HistoryOutcome.Ok)];

    private bool Fails(List<HistoryOperation> operations)
    {
        Verdict verdict = LinearizabilityChecker.Search(operations, options, _statesMax, out _);
        _wasUndecided |= verdict == Verdict.Undecided;
        return verdict == Verdict.NotLinearizable;
    }
}
