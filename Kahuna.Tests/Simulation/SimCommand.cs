using System.Diagnostics;
using System.Globalization;

namespace Kahuna.Tests.Simulation;

/// <summary><c>sim</c>: runs seeds side by side and reports.</summary>
internal static class SimCommand
{
    public static int Run(string[] args, TextWriter output, TextWriter errors)
    {
        if (SimOptions.Parse(args, out string? error) is not { } options)
        {
            errors.WriteLine($"sim.sh: {error}");
            errors.WriteLine(SimOptions.Usage);
            return 2;
        }

        StreamWriter? trace = null;
        try
        {
            trace = options.TracePath is { } path ? new StreamWriter(path) : null;
            SimSummary summary = Work(options, trace, output);
            summary.Print(output);
            if (options.JsonPath is { } json)
            {
                File.WriteAllText(json, summary.ToJson());
            }

            if (summary.First is { } failed)
            {
                Explain(failed, options, output);
            }

            return summary.First is null && summary.Missed.Count == 0 ? 0 : 1;
        }
        catch (Exception failure) when (failure is IOException or UnauthorizedAccessException)
        {
            errors.WriteLine($"sim.sh: {failure.Message}");
            return 2;
        }
        finally
        {
            trace?.Dispose();
        }
    }

    /// <summary>Runs the seeds, and tells once a second how far it is.</summary>
    public static SimSummary Work(SimOptions options, TextWriter? trace, TextWriter output)
    {
        SimSummary summary = new(options);
        long began = Stopwatch.GetTimestamp();
        ulong next = options.First;
        Lock gate = new();
        Thread[] workers = [.. Enumerable.Range(0, options.Jobs).Select(_ => new Thread(() =>
        {
            while (true)
            {
                ulong seed;
                lock (gate)
                {
                    bool more = options.Hours > 0
                        ? Stopwatch.GetElapsedTime(began).TotalHours < options.Hours
                        : next <= options.Last;
                    more &= summary.Violations < options.ViolationsMax;
                    if (!more)
                    {
                        return;
                    }

                    seed = next++;
                }

                summary.Add(SimRun.RunHere(
                    seed,
                    options.Seconds,
                    trace,
                    options.Only is { } only ? SimRun.AllBut(seed, options.Seconds, only) : null));
            }
        }))];
        foreach (Thread worker in workers)
        {
            worker.Start();
        }

        while (!workers.All(static worker => worker.Join(TimeSpan.FromSeconds(1.0 / 8))))
        {
            summary.Progress(output);
        }

        return summary;
    }

    private static void Explain(SimResult failed, SimOptions options, TextWriter output)
    {
        SimViolation violation = failed.Violation!;
        output.WriteLine();
        output.WriteLine($"seed {failed.Seed}, step {violation.Step}: {violation.Words}");
        output.WriteLine("what happened before, without the traffic of nodes");
        foreach (string line in violation.Story.TakeLast(60))
        {
            output.WriteLine($"  {line}");
        }

        output.WriteLine("faults before it");
        foreach (string fault in violation.Faults)
        {
            output.WriteLine($"  {fault}");
        }

        string only = options.Only is { } kept ? Only(kept) : "";
        output.WriteLine(string.Create(
            CultureInfo.InvariantCulture, $"replay: {Command(failed, options)}{only} --trace sim-{failed.Seed}.txt"));
        if (options.Minimize)
        {
            IReadOnlyList<int> needed = SimRun.Minimize(failed, options.Seconds);
            output.WriteLine(
                needed.Count == 0
                    ? "it needs no fault of the plan"
                    : $"it needs the faults {string.Join(", ", needed.Select(static number => "#" + number))}");
            output.WriteLine($"replay: {Command(failed, options)}{Only(needed)} --trace sim-{failed.Seed}.txt");
        }
    }

    /// <summary>The command that runs a seed again.</summary>
    internal static string Command(SimResult failed, SimOptions options) => string.Create(
        CultureInfo.InvariantCulture,
        $"scripts/sim.sh{(options.Mutant is { } mutant ? $" --mutant {mutant}" : "")} --seed {failed.Seed} "
            + $"--seconds {options.Seconds}");

    private static string Only(IReadOnlyCollection<int> numbers) =>
        $" --only {(numbers.Count == 0 ? "none" : string.Join(',', numbers.Order()))}";
}
