using System.Diagnostics;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Faults;
using Kahuna.Tests.Simulation.Rules;

namespace Kahuna.Tests.Simulation;

/// <summary>Runs one seed from beginning to end.</summary>
internal static class SimRun
{
    /// <summary>
    /// Runs a seed on a thread of its own. With <paramref name="without"/> the faults of these numbers are left out;
    /// <paramref name="rule"/> is one more rule, which says what is wrong.
    /// </summary>
    public static SimResult Run(
        ulong seed,
        double seconds,
        TextWriter? trace = null,
        IReadOnlySet<int>? without = null,
        Func<SimCluster, string?>? rule = null)
    {
        SimResult? result = null;
        Exception? failure = null;
        Thread thread = new(() =>
        {
            try
            {
                result = RunHere(seed, seconds, trace, without, rule);
            }
            catch (Exception error)
            {
                failure = error;
            }
        });
        thread.Start();
        thread.Join();
        return result ?? throw new InvalidOperationException($"The run of seed {seed} has failed by itself.", failure);
    }

    /// <summary>Runs a seed on this thread, which must have no synchronization context.</summary>
    public static SimResult RunHere(
        ulong seed,
        double seconds,
        TextWriter? trace = null,
        IReadOnlySet<int>? without = null,
        Func<SimCluster, string?>? rule = null)
    {
        long began = Stopwatch.GetTimestamp();
        SimConfig config = SimConfig.Draw(seed, seconds);
        Fault[] faults = [.. FaultPlan.Draw(config).Where(fault => without?.Contains(fault.Number) != true)];
        trace?.WriteLine(config.ToString());
        SimCluster cluster = new(config, faults, trace) { FurtherRule = rule };
        SimViolation? violation = null;
        try
        {
            cluster.Run();
        }
        catch (Exception error)
        {
            RuleBrokenException broken = cluster.Rules.Broken
                ?? error as RuleBrokenException
                ?? new RuleBrokenException("the run goes through", error.ToString());
            cluster.Scheduler.Note(SimEvent.Violation, 0, words: broken.Message);
            violation = new SimViolation(
                seed,
                cluster.Scheduler.Step,
                broken.Rule,
                broken.Message,
                [.. cluster.Log.Story()],
                [
                    .. faults.Where(fault => fault.AtNs <= cluster.Scheduler.NowNs)
                        .Select(static fault => fault.ToString()),
                ]);
        }

        return SimResult.Of(cluster, Stopwatch.GetElapsedTime(began).TotalSeconds, violation);
    }

    /// <summary>The numbers of all faults of a seed but these.</summary>
    public static IReadOnlySet<int> AllBut(ulong seed, double seconds, IEnumerable<int> kept) =>
        FaultPlan.Draw(SimConfig.Draw(seed, seconds)).Select(static fault => fault.Number).Except(kept).ToHashSet();

    /// <summary>
    /// Leaves out as many faults as it can while the seed still breaks the same rule. Returns the numbers of those that
    /// are needed.
    /// </summary>
    public static IReadOnlyList<int> Minimize(SimResult failed, double seconds, Func<SimCluster, string?>? rule = null)
    {
        SimConfig config = SimConfig.Draw(failed.Seed, seconds);

        // A microsecond more: the fault of the very last moment counts, whatever the seconds were rounded to.
        double lastNs = (failed.VirtualSeconds * 1e9) + 1_000;
        List<int> needed =
            [.. FaultPlan.Draw(config).Where(fault => fault.AtNs <= lastNs).Select(static fault => fault.Number)];
        int[] all = [.. FaultPlan.Draw(config).Select(static fault => fault.Number)];
        int size = needed.Count;
        bool again;
        do
        {
            size = Math.Max(1, size / 2);
            int before = needed.Count;
            for (int at = 0; at < needed.Count;)
            {
                List<int> tried = [.. needed.Take(at), .. needed.Skip(at + size)];
                SimResult result = Run(failed.Seed, seconds, without: all.Except(tried).ToHashSet(), rule: rule);
                if (result.Violation?.Rule == failed.Violation!.Rule)
                {
                    needed = tried;
                }
                else
                {
                    at += size;
                }
            }

            // With a fault gone another may be needed no longer, so single ones are tried until none can go.
            again = size > 1 || needed.Count < before;
        }
        while (again);

        return needed;
    }
}
