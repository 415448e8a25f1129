namespace Kahuna.Benchmark.Recording;

/// <summary>What all workers together saw of one operation, or of all operations. Owned by the report.</summary>
internal sealed record OperationTotal(string Name, LatencyHistogram Latencies, long Errors, long Timeouts, long Misses)
{
    public const string AggregateName = "TOTAL";

    /// <summary>The sum over all workers of the row of that number.</summary>
    public static OperationTotal Merge(string name, int row, IEnumerable<WorkerRecorder> recorders)
    {
        LatencyHistogram latencies = new();
        long errors = 0;
        long timeouts = 0;
        long misses = 0;
        foreach (WorkerRecorder recorder in recorders)
        {
            OperationTally tally = recorder.Tallies[row];
            tally.Latencies.AddTo(latencies);
            errors += tally.Errors;
            timeouts += tally.Timeouts;
            misses += tally.Misses;
        }

        return new OperationTotal(name, latencies, errors, timeouts, misses);
    }

    public static OperationTotal Aggregate(IReadOnlyList<OperationTotal> rows)
    {
        LatencyHistogram latencies = new();
        foreach (OperationTotal row in rows)
        {
            latencies.Add(row.Latencies);
        }

        return new OperationTotal(
            AggregateName,
            latencies,
            rows.Sum(row => row.Errors),
            rows.Sum(row => row.Timeouts),
            rows.Sum(row => row.Misses));
    }
}
