using Kahuna.Tests.Cluster;
using Kahuna.Tests.Tools.Processes;
using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools.Cost;

/// <summary>
/// Counts the system calls of a cluster and its client per batch, with strace, one process after the other. Tracing
/// slows the traced process down: the counts hold, times do not. A batch is a log entry of the leader; for reads,
/// which have none, as many answers of the leader as there are callers. Stateless.
/// </summary>
internal static class CallCommand
{
    /// <summary>Calls that are made less often are left out.</summary>
    private const double ShownFrom = 0.05;

    public static bool IsThere => Child.TryRead("sh", "-c", "command -v strace") is not null;

    /// <param name="run">The measurement.</param>
    /// <param name="nodes">The nodes, the leader first.</param>
    /// <param name="bench">The process of the load.</param>
    /// <param name="callersOfReads">The callers, if they only read; else 0.</param>
    /// <param name="seconds">For which each process is traced.</param>
    public static void Run(Measurement run, ServerNode[] nodes, int bench, int callersOfReads, double seconds)
    {
        run.Output.Line($"  {"process",-11} {"threads",-29} {"system call",-26} {"per batch",10} {"bytes",9}");
        string[] names = ["client", "leader", "a follower"];
        int[] processes = [bench, nodes[0].ProcessId, nodes[^1].ProcessId];
        foreach ((string name, int process) in names.Zip(processes))
        {
            double before = Batches(nodes[0], callersOfReads);
            Dictionary<CallKind, CallCount> counts = Trace(run, process, seconds);
            Print(run.Output, name, counts, Batches(nodes[0], callersOfReads) - before);
        }

        run.Output.WriteLine();
    }

    /// <summary>Prints a row for each kind of call, the dearest threads first.</summary>
    public static void Print(
        TextWriter output, string process, Dictionary<CallKind, CallCount> counts, double batches)
    {
        foreach (var threads in counts.GroupBy(static pair => pair.Key.Threads)
            .OrderByDescending(static threads => threads.Sum(static pair => pair.Value.Calls)))
        {
            foreach ((CallKind kind, CallCount count) in threads.OrderByDescending(static pair => pair.Value.Calls))
            {
                double each = count.Calls / Math.Max(1, batches);
                string bytes = count.Bytes > 0
                    ? FormattableString.Invariant($" {(double)count.Bytes / count.Calls,9:F0}") : "";
                if (each >= ShownFrom)
                {
                    output.Line($"  {process,-11} {kind.Threads,-29} {kind.Call,-26} {each,10:F2}{bytes}");
                }
            }
        }
    }

    private static Dictionary<CallKind, CallCount> Trace(Measurement run, int process, double seconds)
    {
        string file = run.PathOf("calls.txt");
        File.Delete(file);
        Dictionary<int, string> threads = ProcFiles.ThreadNames(process);
        Child strace = run.Start(
            "strace.log", "strace", "-f", "-q", "-e", "raw=all", "-o", file, "-p", $"{process}");
        run.Sleep(seconds);
        strace.Send(Signal.Interrupt);
        run.WaitFor(20, "strace does not end", () => strace.HasExited, 0.02);
        foreach ((int thread, string name) in ProcFiles.ThreadNames(process))
        {
            threads[thread] = name;
        }

        return CallLog.Count(
            File.ReadLines(file), thread => CostReport.KindOf(threads.GetValueOrDefault(thread, "")));
    }

    private static double Batches(ServerNode leader, int callersOfReads) => callersOfReads > 0
        ? leader.Metric("kahuna_operation_duration_seconds_count") / callersOfReads
        : leader.RequireStatus().Partitions.Aggregate(
            0.0, static (sum, partition) => sum + partition.CommitIndex);
}
