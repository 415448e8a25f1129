using Kahuna.Tests.Tools.Compare;
using Kahuna.Tests.Tools.Load;
using Kahuna.Tests.Tools.Processes;

namespace Kahuna.Tests.Tools;

/// <summary>
/// The measurement of scripts/memory.sh: what a node needs for its keys, and how long its collector stops it.
/// Stateless.
/// </summary>
internal static class MemoryCommand
{
    public const string Defaults = "--keys=1000000 --value-size=128 --seconds=20 --workers=256";

    public static void Run(Measurement run)
    {
        int keys = run.Options.Number("keys");
        int valueSize = run.Options.Number("value-size");
        ServerNode node = ComparedSystems.StartStandalone(run);

        // Keys are drawn at random: after 9 draws per key, 1 in 8,000 is still missing.
        long wanted = 9L * keys;
        run.Say($"filling {keys} keys with {valueSize} bytes each, in random order");
        for (long drawn = 0; drawn < wanted;)
        {
            drawn += Load(run, node, 5).Count;
            run.Say($"{drawn} sets done, {wanted} are wanted");
        }

        int before = node.RequireStatus().Gc.Pauses;
        run.Say($"overwriting for {run.Options.Number("seconds")} s");
        LoadRow load = Load(run, node, run.Options.Number("seconds"));
        MemoryReport.Print(run.Output, keys, valueSize, load, node.Memory, node.RequireStatus().Gc, before);
    }

    private static LoadRow Load(Measurement run, ServerNode node, int seconds) =>
        LoadGenerator.Run(run, new LoadPlan(node.Url, "set", run.Options.Number("workers"), seconds)
        {
            Warmup = 1,
            KeySpace = run.Options.Number("keys"),
            ValueSize = run.Options.Number("value-size"),
        }).Aggregate;
}
