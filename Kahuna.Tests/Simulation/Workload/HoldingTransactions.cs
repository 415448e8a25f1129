using System.Globalization;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Transactions;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// Interactive transactions of a run's callers, half of which are pessimistic: how they read, and how long they may
/// wait for a key. Owned by one caller.
/// </summary>
internal sealed class HoldingTransactions(SimCluster cluster, SimRandom random, int process)
{
    private const string Rule = "a transaction waits for a key no longer than its time";

    /// <summary>
    /// The time of a pessimistic transaction: what it holds is gone before
    /// <see cref="Rules.TransactionRules.SettledNs"/> is over.
    /// </summary>
    private static readonly TimeSpan s_time = TimeSpan.FromSeconds(5);

    /// <summary>One long poll, the release of the keys, and some for timers and clocks.</summary>
    private static readonly TimeSpan s_besides = TimeSpan.FromSeconds(5);

    private bool _isPessimistic;

    /// <summary>The options of the next one.</summary>
    public TransactionOptions Options(Durability durability)
    {
        TransactionOptions options = new() { Durability = durability };
        _isPessimistic = random.Chance(0.5);
        return _isPessimistic ? options with { Mode = TransactionMode.Pessimistic, Timeout = s_time } : options;
    }

    /// <summary>Reads a key that will be written: in some, the hold to write it comes with the write.</summary>
    public async Task<GetResult> ReadAsync(Transaction transaction, string key, CancellationToken ct)
    {
        GetResult read = default;
        bool toWrite = random.Chance(0.5);
        await RunAsync(key, async () => read = toWrite
            ? await transaction.GetForUpdateAsync(key, ct)
            : await transaction.GetAsync(key, ct));
        return read;
    }

    /// <summary>Writes a key.</summary>
    public Task WriteAsync(Transaction transaction, string key, string value, CancellationToken ct) =>
        RunAsync(key, async () => await transaction.SetAsync(key, value, ct: ct));

    private async Task RunAsync(string key, Func<Task> call)
    {
        if (!_isPessimistic)
        {
            await call();
            return;
        }

        long began = cluster.Scheduler.NowNs;
        HoldFigures figures = cluster.Holds;
        figures.Calls++;
        try
        {
            await call();
        }
        catch (KahunaException refused) when (refused.Code == KahunaErrorCode.TransactionConflict)
        {
            figures.Refused++;
            throw;
        }
        finally
        {
            double waitedMs = (cluster.Scheduler.NowNs - began) / 1e6;
            double mostMs = (s_time + s_besides).TotalMilliseconds + cluster.Config.RequestTimeoutMs;
            figures.LongestMs = Math.Max(figures.LongestMs, (long)waitedMs);
            if (waitedMs > mostMs)
            {
                cluster.Rules.Break(Rule, string.Create(
                    CultureInfo.InvariantCulture,
                    $"at {process}: {waitedMs:N0} ms for {key}, {mostMs:N0} ms are enough"));
            }
        }
    }
}

/// <summary>How often the callers of a run have asked for holds, and how that ended. Owned by one run.</summary>
internal sealed class HoldFigures
{
    /// <summary>Calls of pessimistic transactions.</summary>
    public long Calls { get; set; }

    /// <summary>Those that were refused because of an older transaction, or a change.</summary>
    public long Refused { get; set; }

    /// <summary>The longest one, in ms.</summary>
    public long LongestMs { get; set; }
}
