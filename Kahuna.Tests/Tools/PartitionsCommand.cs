using Kahuna.Tests.Tools.Load;
using Kahuna.Tests.Tools.Processes;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools;

/// <summary>
/// The measurement of scripts/partitions.sh: one partition or several, leaders together or spread. Stateless.
/// </summary>
internal static class PartitionsCommand
{
    private static readonly int[] s_workers = [64, 256, 1024];

    public static void Run(Measurement run)
    {
        run.Output.WriteLine($"{"P",-4} {"leaders",-10} {"64",10} {"256",10} {"1024",10}");
        foreach (int partitions in (int[])[1, 3, 8])
        {
            foreach (string leaders in (string[])["together", "spread"])
            {
                ServerCluster cluster = new(run, "cluster");
                cluster.Up("--partitions", $"{partitions}", "--leaders", leaders);

                // Leaders move to where they belong.
                run.Sleep(4);
                LoadPlan plan = new(cluster.Endpoints, "set", 0, 3) { Warmup = 1, More = ["--buckets", "64"] };
                double[] rates =
                [
                    .. from workers in s_workers
                       select LoadGenerator.Run(run, plan with { Workers = workers }).Aggregate.Rps,
                ];
                run.Output.Line($"{partitions,-4} {leaders,-10} {rates[0],10:F0} {rates[1],10:F0} {rates[2],10:F0}");
                cluster.Clean();
            }
        }
    }
}
