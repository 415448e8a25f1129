using Kahuna.Tests.Tools.Load;
using Kahuna.Tests.Tools.Processes;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools;

/// <summary>
/// The measurement of scripts/option-cost.sh: the same load on two clusters with two values of an option, in short
/// turns whose order changes from pair to pair, and with an order of starts that changes from round to round. What
/// else the machine does meets both turns of a pair; what the processes of one cluster have by chance, as where their
/// leaders and their memory are, differs from round to round. Twice the same value shows what the comparison itself
/// gives. Stateless.
/// </summary>
internal static class OptionCostCommand
{
    public const string Defaults = "--option=metrics --first=on --second=off --rounds=3 --turns=10 --seconds=2 "
        + "--workers=256 --workloads=set,get";

    private const int WarmUpSeconds = 8;

    /// <summary>Until the runtime has compiled what makes a page: the first ones take 20 times as long.</summary>
    private const int WarmUpPages = 200;

    /// <summary>Longer than a page is kept.</summary>
    private static readonly TimeSpan s_pageInterval = TimeSpan.FromMilliseconds(110);

    public static void Run(Measurement run)
    {
        (string Workload, int Workers)[] points =
        [
            .. run.Options.List("workloads").SelectMany(
                _ => run.Options.Numbers("workers"), static (workload, workers) => (workload, workers)),
        ];
        List<(Turn First, Turn Second)>[] turns =
            [.. points.Select(static _ => new List<(Turn First, Turn Second)>())];
        string option = run.Options.Text("option");
        for (int round = 0; round < run.Options.Number("rounds"); round++)
        {
            (ServerCluster first, ServerCluster second) = (new(run, "first"), new(run, "second"));
            using Scraper? scraper =
                option == "metrics" && run.Options.Text("first") == "on" ? new Scraper(first) : null;
            bool firstLeads = round % 2 == 0;
            Start(run, firstLeads ? [(first, "first", scraper), (second, "second", null)]
                : [(second, "second", null), (first, "first", scraper)]);
            for (int point = 0; point < points.Length; point++)
            {
                for (int i = 0; i < run.Options.Number("turns"); i++)
                {
                    Turn? early = (i % 2 == 0) == firstLeads ? Load(run, first, points[point], scraper) : null;
                    Turn other = Load(run, second, points[point], null);
                    turns[point].Add((early ?? Load(run, first, points[point], scraper), other));
                }
            }

            first.Clean();
            second.Clean();
        }

        run.Output.WriteLine($"--{option} {run.Options.Text("first")} and {run.Options.Text("second")}; "
            + "ratio: the median of the pairs of turns, and half of them between");
        for (int point = 0; point < points.Length; point++)
        {
            string name = FormattableString.Invariant($"{points[point].Workload} {points[point].Workers}");
            Print(run, name, "operations/s", turns[point], static turn => turn.Rate);
            Print(run, name, "processor us", turns[point], static turn => turn.Microseconds);
            Print(run, name, "p50 ms", turns[point], static turn => turn.P50);
            Print(run, name, "p99 ms", turns[point], static turn => turn.P99);
        }
    }

    private static void Start(Measurement run, (ServerCluster Cluster, string Value, Scraper? Scraper)[] clusters)
    {
        foreach ((ServerCluster cluster, string value, _) in clusters)
        {
            cluster.Up("--" + run.Options.Text("option"), run.Options.Text(value));
        }

        // Leaders move to where they belong. Then the first pages and operations compile what they need.
        run.Sleep(4);
        foreach ((ServerCluster cluster, _, Scraper? scraper) in clusters)
        {
            Warm(run, cluster, scraper);
        }
    }

    private static void Warm(Measurement run, ServerCluster cluster, Scraper? scraper)
    {
        for (int i = 0; scraper is not null && i < WarmUpPages; i++)
        {
            scraper.Scrape();
            run.Sleep(s_pageInterval.TotalSeconds);
        }

        int workers = run.Options.Numbers("workers").Max();
        foreach (string workload in run.Options.List("workloads"))
        {
            LoadGenerator.Run(run, new LoadPlan(cluster.Endpoints, workload, workers, WarmUpSeconds));
        }
    }

    private static Turn Load(
        Measurement run, ServerCluster cluster, (string Workload, int Workers) point, Scraper? scraper)
    {
        LoadPlan plan = new(cluster.Endpoints, point.Workload, point.Workers, run.Options.Number("seconds"))
        {
            Warmup = 1,
            More = ["--seed-keys", "0"],
        };
        using LoadGenerator load = new(run, plan);
        load.AwaitMeasurement();
        double before = cluster.Nodes.Sum(static node => ProcFiles.ProcessorSeconds(node.ProcessId));
        scraper?.Scrape();
        LoadRow all = load.End().Aggregate;
        double used = cluster.Nodes.Sum(static node => ProcFiles.ProcessorSeconds(node.ProcessId)) - before;
        return new Turn(all.Rps, 1e6 * used / (all.Rps * plan.Seconds), all.P50Ms, all.P99Ms);
    }

    private static void Print(
        Measurement run, string point, string what, List<(Turn First, Turn Second)> turns, Func<Turn, double> value)
    {
        double[] ratios = [.. turns.Select(pair => value(pair.First) / value(pair.Second)).Order()];
        double first = turns.Select(pair => value(pair.First)).Median();
        double second = turns.Select(pair => value(pair.Second)).Median();
        run.Output.WriteLine(
            FormattableString.Invariant($"{point,-9} {what,-12} {first,11:N2} {second,11:N2}  ")
            + FormattableString.Invariant($"ratio {ratios.Median():F3}  ({ratios[ratios.Length / 4]:F3} to ")
            + FormattableString.Invariant($"{ratios[ratios.Length * 3 / 4]:F3}, {ratios.Length} pairs)"));
    }

    /// <summary>What one turn of load has given.</summary>
    /// <param name="Rate">Operations per second.</param>
    /// <param name="Microseconds">Processor time of the three nodes for each operation.</param>
    /// <param name="P50">Median of the latencies, in ms.</param>
    /// <param name="P99">Their 99th percentile, in ms.</param>
    private readonly record struct Turn(double Rate, double Microseconds, double P50, double P99);

    /// <summary>Reads the metrics of all nodes of a cluster.</summary>
    private sealed class Scraper(ServerCluster cluster) : IDisposable
    {
        private readonly HttpClient _http = new(new HttpClientHandler
        {
            ServerCertificateCustomValidationCallback = HttpClientHandler.DangerousAcceptAnyServerCertificateValidator,
        });

        public void Scrape() => Task.WaitAll(
            [.. cluster.Nodes.Select(node => _http.GetByteArrayAsync(new Uri(new Uri(node.Url), "/metrics")))]);

        public void Dispose() => _http.Dispose();
    }
}
