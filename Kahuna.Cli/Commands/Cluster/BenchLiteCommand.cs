using System.CommandLine;
using System.Globalization;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Measuring;
using Kahuna.Cli.Results;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Locks;

namespace Kahuna.Cli.Commands.Cluster;

/// <summary><c>bench-lite</c>: a small measurement of sets, gets and locks. Static.</summary>
internal static class BenchLiteCommand
{
    private const int ConcurrencyMax = 1024;
    private const int SecondsMax = 3600;

    /// <summary>For the keys of an interrupted run.</summary>
    private static readonly TimeSpan s_cleanupLimit = TimeSpan.FromSeconds(30);

    private static readonly TimeSpan s_lease = TimeSpan.FromSeconds(10);

    public static CliCommand Create()
    {
        Option<long?> seconds = Given.Number("--seconds", "How long each operation is measured [default: 5]", min: 1);
        Option<long?> concurrency = Given.Number(
            "--concurrency", "Operations at a time, at most 1024 [default: 16]", min: 1);
        Option<string> prefix = Given.Text(
            "--prefix", "prefix", "Keys and locks are below it, and are deleted at the end [default: bench-lite/]");
        LevelOption level = new();
        return new CliCommand(
            "bench-lite", "Measure sets, gets and locks for some seconds; see kahuna-bench for more", async call =>
            {
                Plan plan = new(
                    TimeSpan.FromSeconds(Bounded("--seconds", call.Get(seconds) ?? 5, SecondsMax)),
                    Bounded("--concurrency", call.Get(concurrency) ?? 16, ConcurrencyMax),
                    $"{call.Get(prefix) ?? "bench-lite/"}{Guid.NewGuid():N}/",
                    level.Of(call));
                return await MeasureAsync(call, plan).ConfigureAwait(false);
            })
        {
            seconds, concurrency, prefix, level,
        };
    }

    private static async Task<int> MeasureAsync(CommandCall call, Plan plan)
    {
        KahunaClient client = await call.ConnectAsync().ConfigureAwait(false);
        List<Record> records = [];
        KahunaException? first = null;
        bool anyDone = false;
        try
        {
            foreach ((string name, Func<int, CancellationToken, Task> operation) in OperationsOf(client, plan))
            {
                if (call.Stop.IsCancellationRequested || (first is not null && !anyDone))
                {
                    break;
                }

                ClosedLoop loop = new(operation, plan.Concurrency);
                await loop.RunAsync(plan.Time, call.Stop).ConfigureAwait(false);
                records.Add(RecordOf(name, plan, loop));
                first ??= loop.First;
                anyDone |= loop.Durations.Count > 0;
            }
        }
        finally
        {
            if (anyDone || first is null)
            {
                await CleanUpAsync(call, client, plan).ConfigureAwait(false);
            }
        }

        if (first is not null && !anyDone)
        {
            throw first;
        }

        await call.Output.WriteAllAsync(
            ["operation", "concurrency", "perSecond", "p50", "p99", "max", "errors", "firstError"], records)
            .ConfigureAwait(false);
        call.Note("A short run of one client. Measure with kahuna-bench before you decide anything by numbers.");
        return call.Stop.IsCancellationRequested ? ExitCode.Interrupted
            : first is null ? ExitCode.Done : ExitCode.Refused;
    }

    private static (string Name, Func<int, CancellationToken, Task> Operation)[] OperationsOf(
        KahunaClient client, Plan plan)
    {
        SetOptions set = new() { Durability = plan.Level };
        ReadOptions read = new() { Durability = plan.Level };
        LockOptions held = new() { Durability = plan.Level, AutoRenew = false };
        string[] names =
        [
            .. Enumerable.Range(0, plan.Concurrency).Select(
                worker => plan.Prefix + worker.ToString(CultureInfo.InvariantCulture)),
        ];
        return
        [
            ("set", (worker, ct) => client.KeyValues.SetAsync(names[worker], "0123456789abcdef", set, ct).AsTask()),
            ("get", (worker, ct) => client.KeyValues.GetAsync(names[worker], read, ct).AsTask()),
            ("lock", async (worker, ct) =>
            {
                LockHandle? handle = await client.Locks.TryAcquireAsync(names[worker], s_lease, held, ct)
                    .ConfigureAwait(false);
                if (handle is not null)
                {
                    await handle.DisposeAsync().ConfigureAwait(false);
                }
            }),
        ];
    }

    /// <summary>Deletes the keys, also when the run was interrupted. Locks were released one by one.</summary>
    private static async Task CleanUpAsync(CommandCall call, KahunaClient client, Plan plan)
    {
        using CancellationTokenSource limit = new(s_cleanupLimit);
        try
        {
            await client.KeyValues.DeleteByPrefixAsync(
                plan.Prefix, new DeleteByPrefixOptions { Durability = plan.Level }, ct: limit.Token)
                .ConfigureAwait(false);
        }
        catch (Exception failure) when (failure is KahunaException or OperationCanceledException)
        {
            call.Note($"The keys below '{plan.Prefix}' may be left: {failure.Message}");
        }
    }

    private static Record RecordOf(string name, Plan plan, ClosedLoop loop) => new()
    {
        { "operation", name },
        { "concurrency", plan.Concurrency },
        { "perSecond", Math.Round(loop.Durations.Count / Math.Max(0.001, loop.Elapsed.TotalSeconds), 1) },
        { "p50", loop.Durations.Quantile(0.5) },
        { "p99", loop.Durations.Quantile(0.99) },
        { "max", loop.Durations.Count == 0 ? null : loop.Durations.Max },
        { "errors", loop.Errors },
        { "firstError", loop.First?.Message },
    };

    private static int Bounded(string option, long number, int max) => number <= max
        ? (int)number
        : throw new CliException(FormattableString.Invariant(
            $"{option}: {number} is above {max}. Measure larger loads with kahuna-bench."));

    /// <summary>What is measured. Immutable.</summary>
    /// <param name="Time">The time for each operation.</param>
    /// <param name="Concurrency">Operations at a time.</param>
    /// <param name="Prefix">Of all names; nobody else uses it.</param>
    /// <param name="Level">Of keys and locks.</param>
    private sealed record Plan(TimeSpan Time, int Concurrency, string Prefix, Durability Level);
}
