using System.Diagnostics;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Tests.Tools.Processes;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools;

/// <summary>
/// The measurement of scripts/scans.sh: what a page costs among few and among many keys, how fast a scan of all keys
/// is, and what it does to the calls of another client. Stateless.
/// </summary>
internal static class ScansCommand
{
    public const string Defaults = "--keys=1000000 --rounds=200";

    private const int Few = 2_000;
    private const int PageKeys = 1_000;
    private const int Loaders = 256;

    public static void Run(Measurement run)
    {
        int keys = run.Options.Number("keys");
        ServerCluster cluster = new(run, "cluster");
        cluster.Up("--partitions", "1");
        MeasureAsync(run, cluster.Endpoints, keys, run.Options.Number("rounds")).GetAwaiter().GetResult();
        cluster.Clean();
    }

    private static async Task MeasureAsync(Measurement run, string endpoints, int keys, int rounds)
    {
        await using KahunaClient client = KahunaClient.Connect(
            endpoints, options => options.TrustedCaFile = Path.Combine(run.Certificates, "ca.pem"));
        await using KahunaClient other = KahunaClient.Connect(
            endpoints, options => options.TrustedCaFile = Path.Combine(run.Certificates, "ca.pem"));
        await LoadAsync(client, "few/", Few);
        await PageAsync(client, "few/", Few, rounds: 2_000);
        double few = await PageAsync(client, "few/", Few, rounds);
        await LoadAsync(client, "many/", keys);
        double many = await PageAsync(client, "many/", keys, rounds);
        run.Output.WriteLine(
            $"page of {PageKeys} among {Few}: {few:F2} ms; among {keys}: {many:F2} ms; ratio {many / few:F2}");
        Tell(run, "gets alone", await GetsAsync(other, Task.Delay(TimeSpan.FromSeconds(3))));
        Stopwatch watch = Stopwatch.StartNew();
        Task<long> scan = Task.Run(() => ScanAsync(client, "many/"));
        double[] beside = await GetsAsync(other, scan);
        double seconds = watch.Elapsed.TotalSeconds;
        run.Output.WriteLine($"scan of {await scan} keys: {seconds:F2} s, {await scan / seconds:F0} keys/s");
        Tell(run, "gets beside it", beside);
        watch.Restart();
        long count = await client.KeyValues.CountAsync("many/");
        run.Output.WriteLine($"count of {count} keys: {watch.Elapsed.TotalMilliseconds:F0} ms");
    }

    private static Task LoadAsync(KahunaClient client, string prefix, int keys)
    {
        byte[] value = new byte[128];
        int next = 0;
        return Task.WhenAll(Enumerable.Range(0, Loaders).Select(async _ =>
        {
            while (Interlocked.Increment(ref next) is var number && number <= keys)
            {
                // Neighbours in the order of the keys are not written one after the other.
                await client.KeyValues.SetAsync($"{prefix}{number * 7919L % 1_000_000_007:0000000000}", value);
            }
        }));
    }

    /// <summary>The median time of a page from a random key on.</summary>
    private static async Task<double> PageAsync(KahunaClient client, string prefix, int keys, int rounds)
    {
        Random random = new(1);
        List<double> times = [];
        for (int i = 0; i < rounds; i++)
        {
            long number = random.Next(1, keys);
            ScanOptions options = new()
            {
                From = $"{prefix}{number * 7919L % 1_000_000_007:0000000000}",
                Limit = PageKeys,
            };
            Stopwatch watch = Stopwatch.StartNew();
            int read = 0;
            await foreach (KeyValueEntry entry in client.KeyValues.ScanAsync(prefix, options))
            {
                read++;
            }

            if (read == PageKeys)
            {
                times.Add(watch.Elapsed.TotalMilliseconds);
            }
        }

        return times.Median();
    }

    private static async Task<long> ScanAsync(KahunaClient client, string prefix)
    {
        long read = 0;
        await foreach (KeyValueEntry entry in client.KeyValues.ScanAsync(prefix))
        {
            read++;
        }

        return read;
    }

    /// <summary>The times of gets, one after the other, until something else is over.</summary>
    private static async Task<double[]> GetsAsync(KahunaClient client, Task until)
    {
        List<double> times = [];
        while (!until.IsCompleted)
        {
            long begun = Stopwatch.GetTimestamp();
            await client.KeyValues.GetAsync("few/0000007919");
            times.Add(Stopwatch.GetElapsedTime(begun).TotalMilliseconds);
        }

        return [.. times.Order()];
    }

    private static void Tell(Measurement run, string what, double[] times) => run.Output.WriteLine(
        $"{what}: {times.Length}, p50 {times[times.Length / 2]:F2} ms, p99 {times[times.Length * 99 / 100]:F2} ms, "
            + $"max {times[^1]:F2} ms");
}
