using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Timing;

namespace Kahuna.Benchmark.Recording;

/// <summary>
/// The samples of one worker, merged with those of the others when the run ends. Written by its worker alone; the
/// counters may be read by the live line at any time, which then sees a slightly older state.
/// </summary>
internal sealed class WorkerRecorder(int rows)
{
    private readonly OperationTally[] _tallies =
        [.. Enumerable.Range(0, rows).Select(static _ => new OperationTally())];

    private long _started;
    private long _finished;

    /// <summary>Requests that this worker sent, warmup included.</summary>
    public long Started => Volatile.Read(ref _started);

    /// <summary>Requests that were answered or gave up, warmup included.</summary>
    public long Finished => Volatile.Read(ref _finished);

    /// <summary>Requests of the measurement that were answered or gave up.</summary>
    public long Recorded { get; private set; }

    /// <summary>When the last request of the measurement was answered; 0 when none was.</summary>
    public long LastAnswer { get; private set; }

    /// <summary>One per row of the report.</summary>
    public IReadOnlyList<OperationTally> Tallies => _tallies;

    public void Start() => Volatile.Write(ref _started, _started + 1);

    public void Finish() => Volatile.Write(ref _finished, _finished + 1);

    /// <summary>Records one request of the measurement; both times are clock ticks.</summary>
    public void Record(int row, OperationResult result, long start, long end)
    {
        Recorded++;
        if (result <= OperationResult.Miss)
        {
            LastAnswer = end;
        }

        _tallies[row].Record(result, Ticks.ToMicroseconds(end - start));
    }
}
