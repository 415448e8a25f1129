using Kahuna.Tests.Linearizability;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>
/// One process of the history: does one operation after the other and notes what came back. Owned by one
/// <see cref="SoakLoad"/>.
/// </summary>
internal sealed class SoakCaller(int process, ISoakTarget target, SoakOptions options, SoakRecord record)
{
    private const double Abandoned = 0.03;
    private const double AbandonedAfterMs = 5;

    private readonly SimRandom _random = new SimRandom(options.Seed).Fork(10_000 + (ulong)process);
    private readonly SoakDraw _draw = new(process, new SimRandom(options.Seed).Fork(20_000 + (ulong)process));
    private long _answeredCallNs = -1;

    /// <summary>When the newest operation was called that was answered.</summary>
    public long AnsweredCallNs => Volatile.Read(ref _answeredCallNs);

    public async Task RunAsync(CancellationToken stop)
    {
        while (!stop.IsCancellationRequested)
        {
            // Not with the token: the last operation of a caller is an operation like all others.
            await Task.Delay(TimeSpan.FromMilliseconds(_random.Exponential(options.ThinkMs)), CancellationToken.None);
            await CallAsync();
        }
    }

    private async Task CallAsync()
    {
        SoakKey key = record.Keys.Take(_random, out HistoryOperation? latest);
        HistoryOperation operation = _draw.Next(key, latest);
        using CancellationTokenSource? abandoned = _random.Chance(Abandoned)
            ? new CancellationTokenSource(TimeSpan.FromMilliseconds(_random.Exponential(AbandonedAfterMs)))
            : null;
        operation = operation with { CallNs = record.Clock.NowNs };
        SoakAnswer answer = await target.RunAsync(operation, abandoned?.Token ?? CancellationToken.None);
        operation = operation with { ReturnNs = record.Clock.NowNs, Outcome = answer.Outcome, Result = answer.Result };
        if (answer.Outcome == HistoryOutcome.Ok)
        {
            Volatile.Write(ref _answeredCallNs, operation.CallNs);
        }

        await record.AddAsync(key, operation, answer.Error);
    }
}
