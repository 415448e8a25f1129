using System.Diagnostics;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Tests.Tools.Processes;

namespace Kahuna.Tests.Tools;

/// <summary>
/// The measurement of scripts/batches.sh: sets per second of single calls, of batches and of atomic batches in turn,
/// and the rate of a delete by prefix. Stateless.
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
            run.Output.WriteLine($"{name}: {Median(found):F0} sets/s; ratio {Median(found) / single:F2}");
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
