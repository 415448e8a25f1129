using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Rules;

namespace Kahuna.Tests.Simulation.Faults;

/// <summary>Draws the faults of a run from its seed, all of them before it begins.</summary>
internal static class FaultPlan
{
    /// <summary>Its own draws, so that the other faults of a seed are as they were.</summary>
    private const int StandstillFork = 12;

    private const int LostLogFork = 18;
    private const int ReplacedTailFork = 24;
    private const int DeafLeaderFork = 26;

    private static readonly FaultClass[] s_always =
        [FaultClass.Loss, FaultClass.Duplication, FaultClass.Reordering, FaultClass.SlowNetwork];

    public static IReadOnlyList<Fault> Draw(SimConfig config)
    {
        SimRandom random = new SimRandom(config.Seed).Fork(2);
        FaultClass[] classes =
        [
            .. config.Classes
                .Except(s_always)
                .Where(
                    static kind => kind is not (FaultClass.LostLog or FaultClass.ReplacedTail or FaultClass.DeafLeader))
                .Order(),
        ];
        List<Fault> faults = [];
        if (classes.Length == 0)
        {
            return faults;
        }

        double at = 2 + random.Exponential(2);
        while (at < config.Seconds)
        {
            double lasts = Add(at);
            double again = at + lasts + random.Exponential(0.3);
            if (random.Chance(0.3) && again < config.Seconds)
            {
                // What has just begun to recover is hit again.
                Add(again);
            }

            at += random.Exponential(config.FaultSeconds);
        }

        if (config.SessionLimits
            && classes.Contains(FaultClass.Pause)
            && new SimRandom(config.Seed).Fork(StandstillFork) is var standstill
            && standstill.Chance(0.5))
        {
            // For longer than idle sessions are kept: what lay at the node meanwhile is as late as can be.
            double begin = 2 + (standstill.NextDouble() * config.Seconds / 3);
            double lasts = ((config.AllStateLimits.CommandLifeMs + config.AllStateLimits.SessionIdleMs) / 1e3)
                + (standstill.NextDouble() * 10);
            int drawn = faults.Count;
            if (standstill.Chance(0.5))
            {
                // A leader that has led for as long as commands live forgets.
                faults.RemoveAll(
                    fault => fault.AtNs + fault.LastsNs > begin * 1e9 && fault.AtNs < (begin + lasts) * 1e9);
            }

            faults.Add(
                new Fault(drawn + 1, (long)(begin * 1e9), FaultClass.Pause, (long)(lasts * 1e9), standstill.Next()));
        }

        if (config.Classes.Contains(FaultClass.LostLog))
        {
            SimRandom lost = new SimRandom(config.Seed).Fork(LostLogFork);
            double begin = 2 + (lost.NextDouble() * Math.Max(0, config.Seconds - 4));
            faults.Add(new Fault(
                faults.Count + 1,
                (long)(begin * 1e9),
                FaultClass.LostLog,
                (long)((0.1 + lost.NextDouble()) * 1e9),
                lost.Next()));
        }

        if (config.Classes.Contains(FaultClass.ReplacedTail))
        {
            SimRandom replaced = new SimRandom(config.Seed).Fork(ReplacedTailFork);
            for (int i = replaced.Between(1, 3); i > 0; i--)
            {
                double begin = 2 + (replaced.NextDouble() * Math.Max(0, config.Seconds - 4));
                faults.Add(
                    new Fault(faults.Count + 1, (long)(begin * 1e9), FaultClass.ReplacedTail, 0, replaced.Next()));
            }
        }

        if (config.Classes.Contains(FaultClass.DeafLeader))
        {
            SimRandom deaf = new SimRandom(config.Seed).Fork(DeafLeaderFork);
            long lastsNs = (2 * AvailabilityRules.LimitOf(config)) + 1_000_000_000;
            long beginNs = 2_000_000_000
                + (long)(deaf.NextDouble() * Math.Max(0, (config.Seconds * 1e9) - 4_000_000_000 - lastsNs));
            int drawn = faults.Count;
            faults.RemoveAll(fault => fault.AtNs + fault.LastsNs > beginNs && fault.AtNs < beginNs + lastsNs);
            faults.Add(new Fault(drawn + 1, beginNs, FaultClass.DeafLeader, lastsNs, deaf.Next()));
        }

        return faults;

        double Add(double begin)
        {
            double lasts = Math.Min(
                random.Chance(0.2)
                    ? config.FaultLastsSeconds * (2.5 + random.Exponential(5))
                    : 0.1 + random.Exponential(config.FaultLastsSeconds),
                30);
            faults.Add(new Fault(
                faults.Count + 1, (long)(begin * 1e9), random.Pick(classes), (long)(lasts * 1e9), random.Next()));
            return lasts;
        }
    }
}
