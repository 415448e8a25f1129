using Kahuna.Tests.Tools.Load;
using Kahuna.Tests.Tools.Processes;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools;

/// <summary>
/// The measurement of scripts/metrics-cost.sh: the same load on two clusters, with and without metrics, in short turns
/// whose order changes from pair to pair. What else the machine does meets both turns of a pair; what the processes of
/// one cluster have by chance, as where their leaders and their memory are, differs from round to round. Stateless.
/// </summary>
internal static class MetricsCostCommand
{
    public const string Defaults = "--rounds=3 --turns=10 --seconds=2 --workers=256 --workloads=set,get";

    private const int WarmUpSeconds = 8;

    public static void Run(Measurement run)
    {
        string[] workloads = run.Options.List("workloads");
        Dictionary<string, List<(Turn On, Turn Off)>> turns =
            workloads.ToDictionary(static workload => workload, static _ => new List<(Turn, Turn)>());
        for (int round = 0; round < run.Options.Number("rounds"); round++)
        {
            (ServerCluster on, ServerCluster off) = (new(run, "on"), new(run, "off"));
            on.Up("--metrics", "on");
            off.Up("--metrics", "off");

            // Leaders move to where they belong. Then the first pages and operations compile what they need.
            run.Sleep(4);
            using Scraper scraper = new(on);
            Warm(run, on, scraper);
            Warm(run, off, null);
            foreach (string workload in workloads)
            {
                for (int i = 0; i < run.Options.Number("turns"); i++)
                {
                    Turn? early = i % 2 == 0 ? Load(run, on, workload, scraper) : null;
                    Turn without = Load(run, off, workload, null);
                    turns[workload].Add((early ?? Load(run, on, workload, scraper), without));
                }
            }

            on.Clean();
            off.Clean();
        }

        run.Output.WriteLine(FormattableString.Invariant(
            $"{run.Options.Number("workers")} workers; on/off: the median of the pairs, and half of them between"));
        foreach (string workload in workloads)
        {
            Print(run, workload, "operations/s", turns[workload], static turn => turn.Rate);
            Print(run, workload, "processor us", turns[workload], static turn => turn.Microseconds);
        }
    }

    private static void Warm(Measurement run, ServerCluster cluster, Scraper? scraper)
    {
        foreach (string workload in run.Options.List("workloads"))
        {
            scraper?.Scrape();
            LoadGenerator.Run(
                run, new LoadPlan(cluster.Endpoints, workload, run.Options.Number("workers"), WarmUpSeconds));
        }
    }

    private static Turn Load(Measurement run, ServerCluster cluster, string workload, Scraper? scraper)
    {
        LoadPlan plan = new(
            cluster.Endpoints, workload, run.Options.Number("workers"), run.Options.Number("seconds"))
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
        return new Turn(all.Rps, 1e6 * used / (all.Rps * plan.Seconds));
    }

    private static void Print(
        Measurement run, string workload, string what, List<(Turn On, Turn Off)> turns, Func<Turn, double> value)
    {
        double[] ratios = [.. turns.Select(pair => value(pair.On) / value(pair.Off)).Order()];
        double on = turns.Select(pair => value(pair.On)).Median();
        double off = turns.Select(pair => value(pair.Off)).Median();
        run.Output.WriteLine(
            FormattableString.Invariant($"{workload,-6} {what,-12} on {on,9:N1}  off {off,9:N1}  ")
            + FormattableString.Invariant($"on/off {ratios.Median():F3}  ({ratios[ratios.Length / 4]:F3} to ")
            + FormattableString.Invariant($"{ratios[ratios.Length * 3 / 4]:F3}, {ratios.Length} pairs)"));
    }

    /// <summary>What one turn of load has given.</summary>
    /// <param name="Rate">Operations per second.</param>
    /// <param name="Microseconds">Processor time of the three nodes for each operation.</param>
    private readonly record struct Turn(double Rate, double Microseconds);

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
