using Kahuna.Tests.Tools.Load;
using Kahuna.Tests.Tools.Processes;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools.Cost;

/// <summary>Processor time per operation, split by process and by kind of thread. Pure.</summary>
internal static class CostReport
{
    private const string Whole = "whole process";

    /// <summary>What a thread is called, by the beginning of its name, in the order of the way of a write.</summary>
    private static readonly (string Start, string Kind)[] s_kinds =
    [
        (".NET Sockets", "client edge (sockets)"), (".NET TP Worker", "client edge and turns (pool)"),
        (".NET TP Gate", "client edge and turns (pool)"),
        ("client link", "links of clients, and turns"), ("peer ", "links to peers, and turns"),
        ("ticks", "ticks"), ("log", "log"), ("log-prepare", "log: preparing segments"),
        (".NET Tiered", "compiler"), ("", "rest"),
    ];

    /// <summary>The kind with the longest matching beginning: log-prepare is not log.</summary>
    public static string KindOf(string thread) =>
        s_kinds.Where(kind => thread.StartsWith(kind.Start, StringComparison.Ordinal))
            .MaxBy(static kind => kind.Start.Length).Kind;

    public static void Print(TextWriter output, string title, LoadRow load, CostSample sample) =>
        Print(output, title, load, sample, Environment.ProcessorCount);

    public static void Print(TextWriter output, string title, LoadRow load, CostSample sample, int processors)
    {
        double operations = load.Rps * sample.Seconds;
        string entries = sample.Entries > sample.Seconds * 2
            ? FormattableString.Invariant($", {operations / sample.Entries:F1} operations per log entry") : "";
        output.Line($"{title}: {load.Rps:N0}/s, p50 {load.P50Ms:F3} ms, p99 {load.P99Ms:F3} ms{entries}");
        output.Line(
            $"  {"process",-11} {"threads",-29} {"user us/op",10} {"system us/op",12} {"switches/op",11} forced/op");
        ThreadUse client = Sum(sample.Bench.Values);
        Dictionary<string, ThreadUse> followers = sample.Nodes.Skip(1).SelectMany(static node => node)
            .GroupBy(static pair => pair.Key).ToDictionary(
                static kind => kind.Key, static kind => Sum(kind.Select(static pair => pair.Value)));
        PrintProcess(output, "client", new() { [Whole] = client }, operations);
        PrintProcess(output, "leader", sample.Nodes[0], operations);
        PrintProcess(output, "a follower", followers, operations * Math.Max(1, sample.Nodes.Count - 1));
        double whole =
            (client + Sum(sample.Nodes.SelectMany(static node => node.Values))).Ticks / ProcFiles.TicksPerSecond;
        (double cost, double share) = (whole / operations * 1e6, 100 * whole / sample.Seconds / processors);
        string batch = entries.Length > 0
            ? FormattableString.Invariant($", {whole / sample.Entries * 1e6:F0} us per log entry") : "";
        output.Line($"  all four processes: {cost:F2} us/op{batch}, {share:F0} % of {processors} processors\n");
    }

    private static void PrintProcess(
        TextWriter output, string process, Dictionary<string, ThreadUse> kinds, double operations)
    {
        IEnumerable<string> order = s_kinds.Select(static kind => kind.Kind).Prepend(Whole).Distinct();
        foreach (string kind in order.Where(kinds.ContainsKey))
        {
            ThreadUse use = kinds[kind];
            if (use.Ticks == 0)
            {
                continue;
            }

            (double user, double system) = (Microseconds(use.User, operations), Microseconds(use.System, operations));
            (double switches, double forced) = (use.Switches / operations, use.Forced / operations);
            output.Line(
                $"  {process,-11} {kind,-29} {user,10:F2} {system,12:F2} {switches,11:F3} {forced,9:F3}");
        }
    }

    private static double Microseconds(long ticks, double operations) =>
        ticks / ProcFiles.TicksPerSecond / operations * 1e6;

    private static ThreadUse Sum(IEnumerable<ThreadUse> uses) =>
        uses.Aggregate(default(ThreadUse), static (sum, use) => sum + use);
}
