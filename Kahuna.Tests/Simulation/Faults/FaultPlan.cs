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
            double lasts = random.Chance(0.2) ? 5 + random.Exponential(10) : 0.1 + random.Exponential(2);
            faults.Add(new Fault(faults.Count + 1, (long)(at * 1e9), random.Pick(classes), (long)(Math.Min(lasts, 30) * 1e9), random.Next()));
            at += random.Exponential(config.FaultSeconds);
        }

        return faults;
    }
}
