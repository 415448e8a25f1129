using System.Buffers.Binary;
using System.Diagnostics;
using Kahuna.Client;
using Kahuna.Client.Watches;
using Kahuna.Tests.Tools.Processes;

namespace Kahuna.Tests.Tools;

/// <summary>
/// The measurement of scripts/watches.sh: how late a watch delivers, what watches cost writes, and what idle ones take
/// up. Stateless.
/// </summary>
internal static class WatchesCommand
{
    public const string Defaults = "--workers=64 --seconds=3 --rounds=3 --distinct=1000 --same=10000 --idle=100000";

    private const int Keys = 10_000;
    private const int Clients = 10;
    private const double WarmUpSeconds = 2;
    private const double Mega = 1 << 20;

    private static readonly byte[] s_value = new byte[128];

    public static void Run(Measurement run)
    {
        ServerCluster cluster = new(run, "cluster");
        cluster.Up("--partitions", "1");
        MeasureAsync(run, cluster).GetAwaiter().GetResult();
        cluster.Clean();
    }

    /// <summary>
    /// What scripts/compare.sh compares: how late changes arrive, and sets beside watches of distinct keys.
    /// </summary>
    public static async Task<WatchFigures> CompareAsync(
        Measurement run, string endpoints, WatchLoad load, int watches)
    {
        await using KahunaClient writer = Connect(run, endpoints);
        double most = await RateAsync(load, writer);
        (List<double> roundTrips, List<double> late) = await DeliveryAsync(run, endpoints, load, writer, most / 2);
        Func<int, string> keyOf = KeyOf;

        // In the first round the nodes compile what it needs.
        await BesideAsync(run, endpoints, load, writer, watches, keyOf, static () => { });
        (double alone, double beside) =
            await BesideAsync(run, endpoints, load, writer, watches, keyOf, static () => { });
        return new WatchFigures(roundTrips, late, alone, beside);
    }

    private static async Task MeasureAsync(Measurement run, ServerCluster cluster)
    {
        WatchLoad load = new(run.Options.Number("workers"), run.Options.Number("seconds"));
        await using KahunaClient writer = Connect(run, cluster.Endpoints);
        await RateAsync(load, writer);
        double most = await RateAsync(load, writer);
        await LatencyAsync(run, cluster.Endpoints, load, writer, most / 2);
        int distinct = run.Options.Number("distinct");
        await CostAsync(run.Options.Number("same"), "of one key", static _ => KeyOf(0));
        await CostAsync(distinct, "of keys that are not written", static i => $"other/{i}");
        await CostAsync(distinct, "of distinct keys", KeyOf);
        await MemoryAsync(run, cluster);

        Task CostAsync(int watches, string what, Func<int, string> keyOf) =>
            WatchesCommand.CostAsync(run, cluster.Endpoints, load, writer, watches, what, keyOf);
    }

    private static async Task LatencyAsync(
        Measurement run, string endpoints, WatchLoad load, KahunaClient writer, double rate)
    {
        (List<double> roundTrips, List<double> late) = await DeliveryAsync(run, endpoints, load, writer, rate);
        double set = At(roundTrips, 0.5);
        run.Output.WriteLine(
            $"latency at {rate:F0} sets/s: a set takes p50 {set:F3}, p99 {At(roundTrips, 0.99):F3} ms; its change "
                + $"arrives after p50 {At(late, 0.5):F3}, p99 {At(late, 0.99):F3} ms; ratio "
                + $"{At(late, 0.5) / set:F2}; {late.Count} of {roundTrips.Count} changes");
    }

    /// <summary>How long sets take, and how late their changes arrive.</summary>
    private static async Task<(List<double> RoundTrips, List<double> Late)> DeliveryAsync(
        Measurement run, string endpoints, WatchLoad load, KahunaClient writer, double rate)
    {
        await using KahunaClient reader = Connect(run, endpoints);
        List<double> late = [];
        List<double> roundTrips = [];
        using CancellationTokenSource end = new();
        TaskCompletionSource begun = new();
        Task reading = Task.Run(async () =>
        {
            WatchOptions options = new() { ProgressInterval = TimeSpan.Zero };
            try
            {
                await foreach (WatchEvent change in reader.KeyValues.WatchAsync("w/", options, end.Token))
                {
                    begun.TrySetResult();
                    if (change.Kind == WatchEventKind.Set)
                    {
                        late.Add(MillisecondsSince(BinaryPrimitives.ReadInt64LittleEndian(change.Value.Memory.Span)));
                    }
                    else if (change.Kind is WatchEventKind.Lagging or WatchEventKind.Compacted)
                    {
                        run.Output.WriteLine($"the watch said {change.Kind}");
                    }
                }
            }
            catch (KahunaCanceledException)
            {
                // The measurement is over.
            }
        });
        await begun.Task;
        await PacedAsync(load, writer, rate, roundTrips);
        await Task.Delay(TimeSpan.FromSeconds(1));
        await end.CancelAsync();
        await reading;
        return (roundTrips, late);
    }

    /// <summary>Sets at a fixed rate, which carry the time at which they were begun.</summary>
    private static async Task PacedAsync(WatchLoad load, KahunaClient writer, double rate, List<double> roundTrips)
    {
        Stopwatch watch = Stopwatch.StartNew();
        long next = -1;
        await Task.WhenAll(Enumerable.Range(0, load.Workers).Select(number => Task.Run(async () =>
        {
            byte[] value = new byte[128];
            List<double> own = [];
            while (true)
            {
                double due = Interlocked.Increment(ref next) / rate;
                if (due >= load.Seconds)
                {
                    break;
                }

                if (due - watch.Elapsed.TotalSeconds is var wait and > 0.001)
                {
                    await Task.Delay(TimeSpan.FromSeconds(wait));
                }

                long began = Stopwatch.GetTimestamp();
                BinaryPrimitives.WriteInt64LittleEndian(value, began);
                await writer.KeyValues.SetAsync($"w/{number}", value);
                own.Add(MillisecondsSince(began));
            }

            lock (roundTrips)
            {
                roundTrips.AddRange(own);
            }
        })));
    }

    /// <summary>Sets per second without watches and with them, in turn.</summary>
    private static async Task CostAsync(
        Measurement run,
        string endpoints,
        WatchLoad load,
        KahunaClient writer,
        int watches,
        string what,
        Func<int, string> keyOf)
    {
        List<double> alone = [];
        List<double> beside = [];
        long events = 0;
        for (int round = 0; round <= run.Options.Number("rounds"); round++)
        {
            (double rateAlone, double rateBeside) = await BesideAsync(
                run, endpoints, load, writer, watches, keyOf, () => Interlocked.Increment(ref events));
            alone.Add(rateAlone);
            beside.Add(rateBeside);
        }

        // The first round is the one in which the nodes compile what it needs.
        alone.RemoveAt(0);
        beside.RemoveAt(0);
        run.Output.WriteLine(
            $"{watches} watches {what}, of {Clients} clients: {Median(alone):F0} sets/s without, {Median(beside):F0} "
                + $"with; ratio {Median(beside) / Median(alone):F2}; {events} events");
    }

    /// <summary>Sets per second without watches, and then beside them.</summary>
    private static async Task<(double Alone, double Beside)> BesideAsync(
        Measurement run,
        string endpoints,
        WatchLoad load,
        KahunaClient writer,
        int watches,
        Func<int, string> keyOf,
        Action onEvent)
    {
        double alone = await SteadyRateAsync(load, writer);
        KahunaClient[] clients = [.. Enumerable.Range(0, Clients).Select(_ => Connect(run, endpoints))];
        using CancellationTokenSource end = new();
        Task[] readers = await BeginAsync(clients, watches, WatchScope.Key, keyOf, onEvent, end.Token);
        double beside = await SteadyRateAsync(load, writer);
        await end.CancelAsync();
        await Task.WhenAll(readers);
        foreach (KahunaClient client in clients)
        {
            await client.DisposeAsync();
        }

        return (alone, beside);
    }

    /// <summary>
    /// Memory of the nodes and of this process before and with many watches of which nothing is heard.
    /// </summary>
    private static async Task MemoryAsync(Measurement run, ServerCluster cluster)
    {
        int watches = run.Options.Number("idle");
        await using KahunaClient client = Connect(run, cluster.Endpoints);
        await client.KeyValues.SetAsync("idle", "x");
        long heap = GC.GetTotalMemory(forceFullCollection: true);
        long[] nodes = [.. cluster.Nodes.Select(static node => node.Memory.Anonymous)];
        WatchOptions options = new() { Scope = WatchScope.Key };
        IAsyncEnumerator<WatchEvent>[] idle = new IAsyncEnumerator<WatchEvent>[watches];
        for (int i = 0; i < watches; i++)
        {
            idle[i] = client.KeyValues.WatchAsync($"idle/{i:000000}", options).GetAsyncEnumerator();
            _ = idle[i].MoveNextAsync();
        }

        await Task.Delay(TimeSpan.FromSeconds(10));
        double own = (GC.GetTotalMemory(forceFullCollection: true) - heap) / Mega;
        double others = cluster.Nodes.Select((node, i) => node.Memory.Anonymous - nodes[i]).Sum() / Mega;
        run.Output.WriteLine(
            $"{watches} idle watches of one client: {others:F1} MiB in the nodes, {own:F1} MiB in the client");
        GC.KeepAlive(idle);
    }

    /// <summary>Begins watches, spread over the clients. Returns when all have begun.</summary>
    private static async Task<Task[]> BeginAsync(
        KahunaClient[] clients,
        int watches,
        WatchScope scope,
        Func<int, string> keyOf,
        Action onEvent,
        CancellationToken ct)
    {
        Task[] readers = new Task[watches];
        TaskCompletionSource[] begun = new TaskCompletionSource[watches];
        WatchOptions options = new() { Scope = scope, ProgressInterval = TimeSpan.FromDays(1) };
        for (int i = 0; i < watches; i++)
        {
            int number = i;
            begun[i] = new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously);
            readers[i] = ReadAsync(clients[i % clients.Length], keyOf(i), options, begun[number], onEvent, ct);
        }

        await Task.WhenAll(begun.Select(static each => each.Task));
        return readers;
    }

    private static async Task ReadAsync(
        KahunaClient client,
        string key,
        WatchOptions options,
        TaskCompletionSource begun,
        Action onEvent,
        CancellationToken ct)
    {
        try
        {
            await foreach (WatchEvent change in client.KeyValues.WatchAsync(key, options, ct))
            {
                begun.TrySetResult();
                if (change.Kind == WatchEventKind.Set)
                {
                    onEvent();
                }
            }
        }
        catch (KahunaCanceledException)
        {
            // The measurement is over.
        }
        catch (Exception failure)
        {
            begun.TrySetException(failure);
            throw;
        }
    }

    /// <summary>
    /// Sets per second, after a while in which connections are opened and code is compiled.
    /// </summary>
    private static async Task<double> SteadyRateAsync(WatchLoad load, KahunaClient client)
    {
        await RateAsync(load with { Seconds = WarmUpSeconds }, client);
        return await RateAsync(load, client);
    }

    private static async Task<double> RateAsync(WatchLoad load, KahunaClient client)
    {
        Task until = Task.Delay(TimeSpan.FromSeconds(load.Seconds));
        long sets = 0;
        Stopwatch watch = Stopwatch.StartNew();
        await Task.WhenAll(Enumerable.Range(0, load.Workers).Select(number => Task.Run(async () =>
        {
            Random random = new(number);
            while (!until.IsCompleted)
            {
                await client.KeyValues.SetAsync(KeyOf(random.Next(Keys)), s_value);
                Interlocked.Increment(ref sets);
            }
        })));
        return sets / watch.Elapsed.TotalSeconds;
    }

    private static KahunaClient Connect(Measurement run, string endpoints) => KahunaClient.Connect(
        endpoints, options => options.TrustedCaFile = Path.Combine(run.Certificates, "ca.pem"));

    private static string KeyOf(int i) => $"k/{i:00000}";

    private static double MillisecondsSince(long timestamp) => Stopwatch.GetElapsedTime(timestamp).TotalMilliseconds;

    private static double At(List<double> values, double part)
    {
        values.Sort();
        return values.Count == 0 ? double.NaN : values[(int)(part * (values.Count - 1))];
    }

    private static double Median(List<double> values) => values.Order().ElementAt(values.Count / 2);
}
