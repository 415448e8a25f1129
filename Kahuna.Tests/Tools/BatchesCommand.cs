using System.Diagnostics;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Transactions;
using Kahuna.Tests.Tools.Processes;

namespace Kahuna.Tests.Tools;

/// <summary>
/// The measurement of scripts/batches.sh: sets per second of single calls, of batches and of atomic batches in turn,
/// transactions per second, and the rate of a delete by prefix. Stateless.
/// </summary>
internal static class BatchesCommand
{
    public const string Defaults = "--workers=64 --items=100 --seconds=3 --rounds=3";

    private const int Keys = 10_000;
    private const int Buckets = 64;

    private static readonly byte[] s_value = new byte[128];

    public static void Run(Measurement run)
    {
        ServerCluster cluster = new(run, "cluster");
        cluster.Up("--partitions", "1");
        MeasureAsync(run, cluster.Endpoints).GetAwaiter().GetResult();
        cluster.Clean();
    }

    private static async Task MeasureAsync(Measurement run, string endpoints)
    {
        await using KahunaClient client = KahunaClient.Connect(
            endpoints, options => options.TrustedCaFile = Path.Combine(run.Certificates, "ca.pem"));
        int items = run.Options.Number("items");
        (string Name, Func<Random, Task<int>> Call)[] forms =
        [
            ("single", random => SetAsync(client, random)),
            ("batch", random => SetManyAsync(client, random, items, isAtomic: false)),
            ("atomic batch", random => SetManyAsync(client, random, items, isAtomic: true)),
            ("transaction", random => TransactAsync(client, random)),
            ("interactive transaction", random => InteractAsync(client, random)),
        ];
        Dictionary<string, List<double>> rates = forms.ToDictionary(
            static form => form.Name, static _ => new List<double>());
        await RateAsync(run, forms[1].Call);
        for (int round = 0; round < run.Options.Number("rounds"); round++)
        {
            foreach ((string name, Func<Random, Task<int>> call) in forms)
            {
                rates[name].Add(await RateAsync(run, call));
            }
        }

        double single = Median(rates["single"]);
        foreach ((string name, List<double> found) in rates)
        {
            string unit = name.EndsWith("transaction", StringComparison.Ordinal) ? "transactions/s" : "sets/s";
            run.Output.WriteLine($"{name}: {Median(found):F0} {unit}; ratio {Median(found) / single:F2}");
        }

        for (int from = 0; from < 200_000; from += 10_000)
        {
            (await client.KeyValues.SetManyAsync(
                Enumerable.Range(from, 10_000).Select(static i => new SetItem($"gone/{i:000000}", s_value))))
                .ThrowIfAnyFailed();
        }

        Stopwatch watch = Stopwatch.StartNew();
        long deleted = await client.KeyValues.DeleteByPrefixAsync("gone/");
        run.Output.WriteLine($"delete by prefix: {deleted} keys, {deleted / watch.Elapsed.TotalSeconds:F0} keys/s");
    }

    private static async Task<int> SetAsync(KahunaClient client, Random random)
    {
        await client.KeyValues.SetAsync(KeyOf(random), s_value);
        return 1;
    }

    private static async Task<int> SetManyAsync(KahunaClient client, Random random, int items, bool isAtomic)
    {
        int first = random.Next(Keys);
        string bucket = $"{random.Next(Buckets)}";
        BatchResult<SetResult> result = await client.KeyValues.SetManyAsync(
            Enumerable.Range(first, items).Select(i => new SetItem($"b/{bucket}/{i % Keys}", s_value)),
            new BatchOptions { Atomic = isAtomic });
        result.ThrowIfAnyFailed();
        return items;
    }

    /// <summary>Two reads and two writes under a condition.</summary>
    private static async Task<int> TransactAsync(KahunaClient client, Random random)
    {
        string bucket = $"b/{random.Next(Buckets)}/";
        int first = random.Next(Keys);
        TransactionResult result = await client.Transactions
            .If(KeyCondition.Absent(bucket + "closed"))
            .Then(
                KeyOperation.Get(Nth(0)),
                KeyOperation.Get(Nth(1)),
                KeyOperation.Set(Nth(2), s_value),
                KeyOperation.Set(Nth(3), s_value))
            .CommitAsync();
        return result.Succeeded ? 1 : throw new InvalidOperationException("A condition of a transaction failed.");

        string Nth(int i) => $"{bucket}{(first + i) % Keys}";
    }

    /// <summary>Two reads, each with its own round trip, and two writes.</summary>
    private static Task<int> InteractAsync(KahunaClient client, Random random)
    {
        string bucket = $"b/{random.Next(Buckets)}/";
        int first = random.Next(Keys);
        return client.Transactions.RunAsync(async transaction =>
        {
            await transaction.GetAsync(Nth(0));
            await transaction.GetAsync(Nth(1));
            await transaction.SetAsync(Nth(2), s_value);
            await transaction.SetAsync(Nth(3), s_value);
            return 1;
        });

        string Nth(int i) => $"{bucket}{(first + i) % Keys}";
    }

    private static string KeyOf(Random random) => $"b/{random.Next(Buckets)}/{random.Next(Keys)}";

    private static async Task<double> RateAsync(Measurement run, Func<Random, Task<int>> call)
    {
        Task until = Task.Delay(TimeSpan.FromSeconds(run.Options.Number("seconds")));
        long sets = 0;
        Stopwatch watch = Stopwatch.StartNew();
        await Task.WhenAll(Enumerable.Range(0, run.Options.Number("workers")).Select(number => Task.Run(async () =>
        {
            Random random = new(number);
            while (!until.IsCompleted)
            {
                Interlocked.Add(ref sets, await call(random));
            }
        })));
        return sets / watch.Elapsed.TotalSeconds;
    }

    private static double Median(List<double> values) => values.Order().ElementAt(values.Count / 2);
}
