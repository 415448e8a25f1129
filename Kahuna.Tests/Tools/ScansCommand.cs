using System.Diagnostics;
using System.Net.Security;
using System.Security.Cryptography.X509Certificates;
using Grpc.Net.Client;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Tools.Processes;
using Kahuna.Tests.Tools.Reporting;
using KeyValueEntry = Kahuna.Client.Outcomes.KeyValueEntry;

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
    private const int SetWorkers = 64;
    private const int SetKeys = 20_000;
    private const int SetRounds = 3;
    private const int BusyKeys = 1_000;

    private static readonly TimeSpan s_setTime = TimeSpan.FromSeconds(4);
    private static readonly ScanOptions s_newest = new();
    private static readonly ScanOptions s_moment = new() { Consistent = true };

    /// <summary>Pages that the greedy client has in flight all the time.</summary>
    private const int Pipelined = 256;

    private static readonly TimeSpan s_beside = TimeSpan.FromSeconds(5);

    public static void Run(Measurement run)
    {
        int keys = run.Options.Number("keys");
        ServerCluster cluster = new(run, "cluster");
        cluster.Up("--partitions", "1");
        MeasureAsync(run, cluster.Endpoints, keys, run.Options.Number("rounds")).GetAwaiter().GetResult();
        cluster.Clean();
        ServerCluster spread = new(run, "spread");
        spread.Up("--partitions", "3");
        MeasureSetsAsync(run, spread.Endpoints).GetAwaiter().GetResult();
        spread.Clean();
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
        Task<long> scan = Task.Run(() => ScanAsync(client, "many/", s_newest));
        double[] beside = await GetsAsync(other, scan);
        double seconds = watch.Elapsed.TotalSeconds;
        run.Output.WriteLine($"scan of {await scan} keys: {seconds:F2} s, {await scan / seconds:F0} keys/s");
        Tell(run, "gets beside it", beside);
        watch.Restart();
        long count = await client.KeyValues.CountAsync("many/");
        run.Output.WriteLine($"count of {count} keys: {watch.Elapsed.TotalMilliseconds:F0} ms");
        watch.Restart();
        count = await ScanAsync(client, "many/", s_moment);
        seconds = watch.Elapsed.TotalSeconds;
        run.Output.WriteLine($"consistent scan of {count} keys: {seconds:F2} s, {count / seconds:F0} keys/s");
        await StreamAsync(run, new Uri(endpoints.Split(',')[0]));
        await PipelineAsync(run, other, "pages", async random =>
        {
            // One entry is decoded of each page, so that the generator leaves the processors to the nodes.
            ScanOptions page = new() { From = KeyOf("many/", random.Next(1, keys)), Limit = PageKeys };
            await foreach (KeyValueEntry entry in client.KeyValues.ScanAsync("many/", page))
            {
                break;
            }
        });
        await PipelineAsync(run, other, "counts of all keys", async _ => await client.KeyValues.CountAsync("many/"));
    }

    /// <summary>The rate of a gRPC client that streams all keys.</summary>
    private static async Task StreamAsync(Measurement run, Uri node)
    {
        X509Certificate2Collection roots = [];
        roots.ImportFromPemFile(Path.Combine(run.Certificates, "ca.pem"));
        X509ChainPolicy policy = new()
        {
            TrustMode = X509ChainTrustMode.CustomRootTrust,
            RevocationMode = X509RevocationMode.NoCheck,
        };
        policy.CustomTrustStore.AddRange(roots);
        using GrpcChannel channel = TestChannels.To(
            node, new SslClientAuthenticationOptions { CertificateChainPolicy = policy });
        StreamKeyValuesRequest request = new()
        {
            Prefix = "many/",
            Durability = Server.Api.Protos.Durability.Persistent,
        };
        Stopwatch watch = Stopwatch.StartNew();
        long read = 0;
        await foreach (StreamKeyValuesResponse message in channel.ServerStreamingAsync(
            "/kahuna.v1.KeyValues/StreamKeyValues", request, StreamKeyValuesResponse.Parser))
        {
            read += message.Entries.Count;
        }

        run.Output.WriteLine($"gRPC stream of {read} keys: {read / watch.Elapsed.TotalSeconds:F0} keys/s");
    }

    /// <summary>The gets of a client while another one has many calls in flight.</summary>
    private static async Task PipelineAsync(
        Measurement run, KahunaClient gets, string what, Func<Random, Task> call)
    {
        Task until = Task.Delay(s_beside);
        long calls = 0;
        Task greedy = Task.WhenAll(Enumerable.Range(0, Pipelined).Select(number => Task.Run(async () =>
        {
            Random random = new(number);
            while (!until.IsCompleted)
            {
                await call(random);
                Interlocked.Increment(ref calls);
            }
        })));
        double[] times = await GetsAsync(gets, until);
        await greedy;
        Tell(run, $"gets beside {Pipelined} {what} at a time ({calls} in all)", times);
    }

    private static string KeyOf(string prefix, long number) => $"{prefix}{number * 7919L % 1_000_000_007:0000000000}";

    /// <summary>
    /// Sets of existing keys in three partitions: alone, beside a cut that stays open, and beside consistent scans of
    /// the same keys, each begun when the one before has ended.
    /// </summary>
    private static async Task MeasureSetsAsync(Measurement run, string endpoints)
    {
        await using KahunaClient client = KahunaClient.Connect(
            endpoints, options => options.TrustedCaFile = Path.Combine(run.Certificates, "ca.pem"));
        await using KahunaClient other = KahunaClient.Connect(
            endpoints, options => options.TrustedCaFile = Path.Combine(run.Certificates, "ca.pem"));
        string[] keys = [.. Enumerable.Range(0, SetKeys).Select(static i => $"sets/{i % 64}/{i}")];
        await SetAsync(client, keys, s_setTime);
        for (int round = 0; round < SetRounds; round++)
        {
            TellSets(run, "sets alone", await SetAsync(client, keys, s_setTime));
            await using IAsyncEnumerator<KeyValueEntry> open = other.KeyValues.ScanAsync("sets/", s_moment)
                .GetAsyncEnumerator();
            await open.MoveNextAsync();
            TellSets(run, "sets beside an open cut", await SetAsync(client, keys, s_setTime));
            await open.DisposeAsync();
            using CancellationTokenSource end = new();
            Task<(int Done, int Expired)> scans = Task.Run(() => ScanAgainAsync(other, end.Token));
            TellSets(run, "sets beside consistent scans", await SetAsync(client, keys, s_setTime));
            await end.CancelAsync();
            (int done, int expired) = await scans;
            run.Output.WriteLine($"consistent scans: {done} of up to {BusyKeys} keys, {expired} expired");
        }
    }

    private static async Task<(int Done, int Expired)> ScanAgainAsync(KahunaClient client, CancellationToken ct)
    {
        (int done, int expired) = (0, 0);
        while (!ct.IsCancellationRequested)
        {
            try
            {
                await ScanAsync(client, "sets/", s_moment with { Limit = BusyKeys });
                done++;
            }
            catch (KahunaException failure) when (failure.Code == KahunaErrorCode.ScanExpired)
            {
                expired++;
            }
        }

        return (done, expired);
    }

    /// <summary>Sets keys for a time; how many per second, and the longest.</summary>
    private static async Task<(double Rate, double LongestMs)> SetAsync(
        KahunaClient client, string[] keys, TimeSpan time)
    {
        byte[] value = new byte[128];
        int next = 0;
        Stopwatch watch = Stopwatch.StartNew();
        double[] longest = await Task.WhenAll(Enumerable.Range(0, SetWorkers).Select(async _ =>
        {
            double most = 0;
            while (watch.Elapsed < time)
            {
                long begun = Stopwatch.GetTimestamp();
                await client.KeyValues.SetAsync(keys[Interlocked.Increment(ref next) % keys.Length], value);
                most = Math.Max(most, Stopwatch.GetElapsedTime(begun).TotalMilliseconds);
            }

            return most;
        }));
        return (next / watch.Elapsed.TotalSeconds, longest.Max());
    }

    private static void TellSets(Measurement run, string what, (double Rate, double LongestMs) sets) =>
        run.Output.WriteLine($"{what}: {sets.Rate:F0}/s, longest {sets.LongestMs:F1} ms");

    private static Task LoadAsync(KahunaClient client, string prefix, int keys)
    {
        byte[] value = new byte[128];
        int next = 0;
        return Task.WhenAll(Enumerable.Range(0, Loaders).Select(async _ =>
        {
            while (Interlocked.Increment(ref next) is var number && number <= keys)
            {
                // Neighbours in the order of the keys are not written one after the other.
                await client.KeyValues.SetAsync(KeyOf(prefix, number), value);
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
                From = KeyOf(prefix, number),
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

    private static async Task<long> ScanAsync(KahunaClient client, string prefix, ScanOptions options)
    {
        long read = 0;
        await foreach (KeyValueEntry entry in client.KeyValues.ScanAsync(prefix, options))
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
