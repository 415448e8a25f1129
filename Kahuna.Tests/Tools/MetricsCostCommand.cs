using Kahuna.Tests.Tools.Load;
using Kahuna.Tests.Tools.Processes;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools;

/// <summary>
/// The measurement of scripts/metrics-cost.sh: the same load with and without metrics, in rounds whose medians count.
/// The two change their order from round to round. Stateless.
/// </summary>
internal static class MetricsCostCommand
{
    public const string Defaults = "--rounds=7 --seconds=5 --workers=256 --workloads=set,get";

    private const int WarmUpSeconds = 8;

    public static void Run(Measurement run)
    {
        string[] workloads = run.Options.List("workloads");
        Dictionary<(string Workload, bool IsOn), List<double>> rates = [];
        for (int round = 0; round < run.Options.Number("rounds"); round++)
        {
            foreach (bool isOn in (bool[])[round % 2 == 0, round % 2 != 0])
            {
                Measure(run, isOn, workloads, rates);
            }
        }

        run.Output.WriteLine($"{"workload",-10} {"on",12} {"off",12} {"on/off",8} {"lowest",8} {"highest",8}");
        foreach (string workload in workloads)
        {
            List<double> on = rates[(workload, true)];
            List<double> off = rates[(workload, false)];
            List<double> ratios = [.. on.Zip(off, static (a, b) => a / b)];
            run.Output.WriteLine(FormattableString.Invariant(
                $"{workload,-10} {on.Median(),12:F0} {off.Median(),12:F0} {ratios.Median(),8:F3}")
                + FormattableString.Invariant($" {ratios.Min(),8:F3} {ratios.Max(),8:F3}"));
        }
    }

    private static void Measure(
        Measurement run, bool isOn, string[] workloads, Dictionary<(string, bool), List<double>> rates)
    {
        ServerCluster cluster = new(run, "cluster");
        cluster.Up("--metrics", isOn ? "on" : "off");

        // Leaders move to where they belong.
        run.Sleep(4);
        using (Scraper? scraper = isOn ? new Scraper(cluster.Endpoints.Split(',')) : null)
        {
            // The first pages and operations compile what they need, in both clusters.
            LoadPlan first = new(cluster.Endpoints, workloads[0], run.Options.Number("workers"), WarmUpSeconds);
            LoadGenerator.Run(run, first);
            foreach (string workload in workloads)
            {
                LoadPlan plan = new(
                    cluster.Endpoints, workload, run.Options.Number("workers"), run.Options.Number("seconds"));
                double rate = LoadGenerator.Run(run, plan).Aggregate.Rps;
                if (!rates.TryGetValue((workload, isOn), out List<double>? list))
                {
                    rates[(workload, isOn)] = list = [];
                }

                list.Add(rate);
            }
        }

        cluster.Clean();
    }

    /// <summary>Reads the metrics of all nodes once a second, until it is disposed.</summary>
    private sealed class Scraper : IDisposable
    {
        private readonly HttpClient _http = new(new HttpClientHandler
        {
            ServerCertificateCustomValidationCallback = HttpClientHandler.DangerousAcceptAnyServerCertificateValidator,
        });

        private readonly CancellationTokenSource _stop = new();
        private readonly Task _scraping;

        public Scraper(string[] nodes) => _scraping = ScrapeAsync(nodes);

        public void Dispose()
        {
            _stop.Cancel();
            _scraping.Wait();
            _stop.Dispose();
            _http.Dispose();
        }

        private async Task ScrapeAsync(string[] nodes)
        {
            try
            {
                while (true)
                {
                    foreach (string node in nodes)
                    {
                        await _http.GetByteArrayAsync(new Uri(new Uri(node), "/metrics"), _stop.Token)
                            .ConfigureAwait(false);
                    }

                    await Task.Delay(TimeSpan.FromSeconds(1), _stop.Token).ConfigureAwait(false);
                }
            }
            catch (OperationCanceledException)
            {
                // The load is over.
            }
        }
    }
}
