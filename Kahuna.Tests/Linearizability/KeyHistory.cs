namespace Kahuna.Tests.Linearizability;

/// <summary>
/// The operations of one key made ready for one search: first the answered ones, then those of unknown outcome, each in
/// the order of their calls. What surely did not happen is gone, and so are reads without an answer: they change
/// nothing and say nothing. Not changed after it was made, except that <see cref="Values"/> grows.
/// </summary>
internal sealed class KeyHistory
{
    /// <summary>
    /// No partition gets this far, and so no key: one that was forgotten begins above all others that were.
    /// </summary>
    private const long RevisionMax = (1 << 26) - 2;

    private readonly CheckerOptions _options;
    private readonly HashSet<int> _observed = [];

    public KeyHistory(IEnumerable<HistoryOperation> operations, CheckerOptions options)
    {
        _options = options;
        List<HistoryOperation> kept = [.. operations
            .Where(operation =>
                operation.Outcome == HistoryOutcome.Ok
                    || (operation.Outcome == HistoryOutcome.Unknown && !operation.IsRead))
            .OrderBy(operation => operation.Outcome).ThenBy(operation => operation.CallNs)];
        CountsIntegers = kept.Any(operation => operation.Kind == OperationKind.Increment);
        Observe(kept);
        Anonymous = Values.AddAnonymous();
        Operations = [.. kept.Select(Compile)];
        Known = kept.Count(operation => operation.Outcome == HistoryOutcome.Ok);
        RevisionEnd = 1
            + (int)Operations
                .Select(
                    operation => Math.Min(RevisionMax, Math.Max(operation.ExpectedRevision, operation.OnlyIfRevision)))
                .Append(RegisterOperation.Anything)
                .Max();
        Substitutes = new Substitutes(Operations);
    }

    public RegisterOperation[] Operations { get; }

    /// <summary>How many of <see cref="Operations"/> were answered.</summary>
    public int Known { get; }

    public ValueTable Values { get; } = new();

    /// <summary>
    /// From this revision on nobody can tell how high it is: no answer and no condition names it or a higher one.
    /// </summary>
    public int RevisionEnd { get; }

    /// <summary>Stands for all values that no answer and no condition tells from others.</summary>
    public int Anonymous { get; }

    public Substitutes Substitutes { get; }

    /// <summary>There are increments, so that an integer is more than a text.</summary>
    public bool CountsIntegers { get; }

    /// <summary>
    /// Values that some answer or condition can tell from others. All the others are one to the search.
    /// </summary>
    private void Observe(List<HistoryOperation> operations)
    {
        foreach (HistoryOperation operation in operations)
        {
            if (operation.Arguments.OnlyIfValue)
            {
                _observed.Add(Values.NumberOf(operation.Arguments.ComparedValue));
            }

            if (operation.Result.HasValue)
            {
                _observed.Add(Values.NumberOf(operation.Result.Value));
            }
        }
    }

    private RegisterOperation Compile(HistoryOperation operation)
    {
        OperationArguments arguments = operation.Arguments;
        OperationResult result = operation.Result;
        long ttlNs = (arguments.TtlMs ?? 0) * 1_000_000;
        bool isKnown = operation.Outcome == HistoryOutcome.Ok;
        long endNs = isKnown ? operation.ReturnNs!.Value : long.MaxValue;
        return new RegisterOperation
        {
            Kind = operation.Kind,
            IsKnown = isKnown,
            CallNs = operation.CallNs,
            ReturnNs = endNs,
            Value = operation.Kind == OperationKind.Set ? Told(arguments.Value) : Anonymous,
            OnlyIfAbsent = arguments.OnlyIfAbsent,
            OnlyIfPresent = arguments.OnlyIfPresent,
            OnlyIfValue = arguments.OnlyIfValue ? Values.NumberOf(arguments.ComparedValue) : RegisterOperation.Anything,
            OnlyIfRevision = arguments.OnlyIfRevision ?? RegisterOperation.Anything,
            TtlMs = arguments.TtlMs,
            By = arguments.By,

            // A value in the answer says that there was one.
            Affirmed = result.HasValue ? true : result.Affirmed,
            ExpectedValue = result.HasValue ? Values.NumberOf(result.Value) : RegisterOperation.Anything,
            ExpectedRevision = result.Revision ?? RegisterOperation.Anything,
            EarliestExpiryNs = Sum(Sum(operation.CallNs, ttlNs), -Nanoseconds(_options.TtlSlack)),
            LatestExpiryNs = _options.TtlLatenessMax is { } lateness
                ? Sum(Sum(endNs, ttlNs), Nanoseconds(lateness))
                : long.MaxValue,
        };
    }

    private int Told(string? value)
    {
        int number = Values.NumberOf(value);
        return _observed.Contains(number) || (CountsIntegers && Values.IsInteger(number, out _)) ? number : Anonymous;
    }

    private static long Nanoseconds(TimeSpan span) =>
        span.Ticks > long.MaxValue / 100 ? long.MaxValue : span.Ticks * TimeSpan.NanosecondsPerTick;

    private static long Sum(long a, long b)
    {
        long sum = unchecked(a + b);
        return ((a ^ sum) & (b ^ sum)) >= 0 ? sum : a < 0 ? long.MinValue : long.MaxValue;
    }
}
