using Kahuna.Server.Hosting.Measurements;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Tools.Reporting;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Tools.Serial;

/// <summary>
/// The measurement of scripts/serial.sh: what the parts of a node that cannot be shared by two threads do at most, each
/// alone on one thread; and what counting operations adds to a loop. Slices of both kinds of loop take turns, so that
/// what else the machine does meets both. Stateless.
/// </summary>
internal static class SerialCommand
{
    public const string Defaults = "--callers=64,256 --slices=100";

    private static readonly (string Part, bool IsInline, bool Locks)[] s_clients =
        [("client set", true, false), ("client lock", true, true), ("client, pool", false, false)];

    private const int SliceOperations = 10_240;

    /// <summary>Until the runtime has compiled the hot methods for the last time.</summary>
    private const int WarmSlices = 40;

    public static void Run(Measurement run)
    {
        run.Output.WriteLine(
            $"{"part",-12} {"callers",7} {"ns/op",8} {"op/s",12} {"counted ns",11} {"half of the differences",24}");
        foreach (int callers in run.Options.Numbers("callers"))
        {
            foreach (CommandKind kind in (CommandKind[])[CommandKind.Set, CommandKind.Get, CommandKind.LockAcquire])
            {
                Measure(run, kind, callers);
            }

            MeasureOthersAsync(run, callers).GetAwaiter().GetResult();
        }
    }

    private static void Measure(Measurement run, CommandKind kind, int callers)
    {
        OperationReports reports = new(new NodeId(1), new MetricsOptions(), TimeProvider.System);
        LoneLoop counted = new(kind, callers, reports.Times(1) ?? throw new MeasureException("metrics are off"));
        LoneLoop bare = new(kind, callers, null);

        for (int i = 0; i < WarmSlices; i++)
        {
            counted.Run(SliceOperations);
            bare.Run(SliceOperations);
        }

        List<double> on = [];
        List<double> off = [];
        for (int i = 0; i < run.Options.Number("slices"); i++)
        {
            double early = i % 2 == 0 ? counted.Run(SliceOperations) : 0;
            off.Add(bare.Run(SliceOperations));
            on.Add(i % 2 == 0 ? early : counted.Run(SliceOperations));
        }

        double[] more = [.. on.Zip(off, static (a, b) => a - b).Order()];
        double ns = off.Median();
        run.Output.WriteLine(
            FormattableString.Invariant($"{"loop " + kind.ToString().ToLowerInvariant(),-12} {callers,7} {ns,8:N0} ")
            + FormattableString.Invariant($"{1e9 / ns,12:N0} {more.Median(),11:N1} ")
            + FormattableString.Invariant($"{$"{more[more.Length / 4]:N1} to {more[more.Length * 3 / 4]:N1}",24}"));
    }

    private static async Task MeasureOthersAsync(Measurement run, int callers)
    {
        string directory = run.PathOf(FormattableString.Invariant($"log-{callers}"));
        Directory.CreateDirectory(directory);
        await using (LoneLog log = new(directory, callers))
        {
            await MeasureAsync(run, "log", callers, () => Task.FromResult(log.Run(SliceOperations)));
        }

        await using (LonePeerLink link = await LonePeerLink.OpenAsync(run.PathOf("link"), callers))
        {
            await MeasureAsync(run, "peer link", callers, () => Task.FromResult(link.Run(SliceOperations)));
        }

        foreach ((string part, bool isInline, bool locks) in s_clients)
        {
            await using LoneClientStream stream = new(callers, isInline, locks);
            await MeasureAsync(run, part, callers, () => stream.RunAsync(SliceOperations));
        }
    }

    private static async Task MeasureAsync(Measurement run, string part, int callers, Func<Task<double>> slice)
    {
        for (int i = 0; i < WarmSlices; i++)
        {
            await slice();
        }

        List<double> slices = [];
        for (int i = 0; i < run.Options.Number("slices"); i++)
        {
            slices.Add(await slice());
        }

        double ns = slices.Median();
        run.Output.WriteLine(
            FormattableString.Invariant($"{part,-12} {callers,7} {ns,8:N0} {1e9 / ns,12:N0}"));
    }
}
