using Kahuna.Benchmark.Targets;

namespace Kahuna.Benchmark.Recording;

/// <summary>What one worker saw of one operation. Only successes have a latency. Written by its worker alone.</summary>
internal sealed class OperationTally
{
    public LatencyCounts Latencies { get; } = new();

    public long Successes { get; private set; }

    public long Errors { get; private set; }

    public long Timeouts { get; private set; }

    public long Misses { get; private set; }

    public void Record(OperationResult result, long microseconds)
    {
        switch (result)
        {
            case OperationResult.Success:
                Successes++;
                Latencies.Record(microseconds);
                break;
            case OperationResult.Miss:
                Misses++;
                break;
            case OperationResult.Timeout:
                Timeouts++;
                break;
            default:
                Errors++;
                break;
        }
    }
}
