using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>
/// A node ends as the shipped host ends it when it is asked to: tells clients, hands leadership over, finishes what was
/// accepted or gives it up, and is gone. Stateless.
/// </summary>
internal static class GracefulStop
{
    /// <summary>How long the shipped host waits for what was accepted.</summary>
    public const long PatienceNsMax = 5_000_000_000;

    /// <summary>What is answered at the end has so long to leave.</summary>
    private const long LastWordsNs = 5_000_000;

    public static void Begin(SimNode node, long patienceNs, long tickNs, Action ended) => node.Do(node.Life, () =>
    {
        node.Scheduler.Note(SimEvent.Stop, node.Id);
        node.View!.BeginStop();
        node.EndUnaryWaits();
        node.Loops!.Drain();
        long untilNs = node.Scheduler.NowNs + patienceNs;
        Wait();

        void Wait() => node.After(Math.Min(tickNs, untilNs - node.Scheduler.NowNs), () =>
        {
            if (node.Scheduler.NowNs < untilNs && !node.Loops.IsDrained)
            {
                Wait();
                return;
            }

            node.Loops.Close();
            node.After(LastWordsNs, () =>
            {
                node.Crash(power: false);
                ended();
            });
        });
    });
}
