using Kahuna.Tests.Tools.Load;
using Kahuna.Tests.Tools.Processes;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools;

/// <summary>
/// The measurement of scripts/partitions.sh: what further partitions cost and bring, in rounds whose medians count.
/// Stateless.
/// </summary>
internal static class PartitionsCommand
{
    private const int Rounds = 3;

    private static readonly int[] s_partitions = [1, 2, 4, 8, 16];
    private static readonly int[] s_workers = [1, 16, 64, 256];

    public static void Run(Measurement run)
    {
        Dictionary<(int Partitions, int Workers), List<double>> rates = [];
        for (int round = 0; round < Rounds; round++)
        {
            foreach (int partitions in s_partitions)
            {
                Measure(run, partitions, rates);
            }
        }

        run.Output.WriteLine($"{"P",-4} {string.Concat(s_workers.Select(static workers => $"{workers,18}"))}");
        foreach (int partitions in s_partitions)
        {
            string row = string.Concat(s_workers.Select(workers =>
            {
                double rate = rates[(partitions, workers)].Median();
                return FormattableString.Invariant($"{rate,10:F0} ({rate / rates[(1, workers)].Median(),5:F2})");
            }));
            run.Output.WriteLine($"{partitions,-4} {row}");
        }
    }

    private static void Measure(Measurement run, int partitions, Dictionary<(int, int), List<double>> rates)
    {
        ServerCluster cluster = new(run, "cluster");
        cluster.Up("--partitions", $"{partitions}");

        // Leaders move to where they belong.
        run.Sleep(4);
        foreach (int workers in s_workers)
        {
            LoadPlan plan = new(cluster.Endpoints, "set", workers, 3) { Warmup = 1 };
            double rate = LoadGenerator.Run(run, plan).Aggregate.Rps;
            if (!rates.TryGetValue((partitions, workers), out List<double>? list))
            {
                rates[(partitions, workers)] = list = [];
            }

            list.Add(rate);
        }

        cluster.Clean();
    }
}
