using System.Diagnostics;

namespace Kahuna.Cli.Measuring;

/// <summary>
/// Some workers that each begin the next operation when the one before has ended. Used once, by one caller.
/// </summary>
/// <param name="operation">The operation of a worker, by its number.</param>
/// <param name="workers">How many there are.</param>
internal sealed class ClosedLoop(Func<int, CancellationToken, Task> operation, int workers)
{
    private readonly DurationCounts[] _counts =
        [.. Enumerable.Range(0, workers).Select(static _ => new DurationCounts())];

    private long _errors;
    private KahunaException? _first;

    /// <summary>Operations that failed.</summary>
    public long Errors => _errors;

    /// <summary>The first failure; null: none.</summary>
    public KahunaException? First => _first;

    /// <summary>How long the loop has run.</summary>
    public TimeSpan Elapsed { get; private set; }

    /// <summary>The durations of what succeeded.</summary>
    public DurationCounts Durations { get; } = new();

    /// <summary>Runs for a time; returns when what has begun by then has ended, or when it is stopped.</summary>
    public async Task RunAsync(TimeSpan time, CancellationToken stop)
    {
        long began = Stopwatch.GetTimestamp();
        await Task.WhenAll(Enumerable.Range(0, workers).Select(worker => WorkAsync(worker, began, time, stop)))
            .ConfigureAwait(false);
        Elapsed = Stopwatch.GetElapsedTime(began);
        foreach (DurationCounts counts in _counts)
        {
            Durations.Add(counts);
        }
    }

    private async Task WorkAsync(int worker, long began, TimeSpan time, CancellationToken stop)
    {
        while (!stop.IsCancellationRequested && Stopwatch.GetElapsedTime(began) < time)
        {
            long start = Stopwatch.GetTimestamp();
            try
            {
                await operation(worker, stop).ConfigureAwait(false);
                _counts[worker].Add(Stopwatch.GetElapsedTime(start));
            }
            catch (KahunaException failure)
            {
                Interlocked.Increment(ref _errors);
                Interlocked.CompareExchange(ref _first, failure, null);
            }
            catch (OperationCanceledException) when (stop.IsCancellationRequested)
            {
                // What is interrupted counts neither as done nor as failed.
            }
        }
    }
}
