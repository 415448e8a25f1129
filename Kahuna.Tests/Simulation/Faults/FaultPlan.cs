using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Faults;

/// <summary>Draws the faults of a run from its seed, all of them before it begins.</summary>
internal static class FaultPlan
{
    private static readonly FaultClass[] s_always = [FaultClass.Loss, FaultClass.Duplication, FaultClass.Reordering, FaultClass.SlowNetwork];

    public static IReadOnlyList<Fault> Draw(SimConfig config)
    {
        SimRandom random = new SimRandom(config.Seed).Fork(2);
        FaultClass[] classes = [.. config.Classes.Except(s_always).Order()];
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

        return faults;

        double Add(double begin)
        {
            double lasts = Math.Min(random.Chance(0.2) ? config.FaultLastsSeconds * (2.5 + random.Exponential(5)) : 0.1 + random.Exponential(config.FaultLastsSeconds), 30);
            faults.Add(new Fault(faults.Count + 1, (long)(begin * 1e9), random.Pick(classes), (long)(lasts * 1e9), random.Next()));
            return lasts;
        }
    }
}
