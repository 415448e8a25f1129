using System.CommandLine;
using System.CommandLine.Help;
using Kahuna.Benchmark.CommandLine;
using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Recording;
using Kahuna.Benchmark.Reporting;
using Kahuna.Benchmark.Running;
using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Workloads;

namespace Kahuna.Benchmark;

/// <summary>The tool without its process: from arguments to exit code. Used once per run.</summary>
/// <param name="streams">Where the run writes.</param>
/// <param name="workloads">The workloads that can be asked for.</param>
/// <param name="createTarget">Creates the system under load.</param>
internal sealed class BenchApp(
    BenchStreams streams, IReadOnlyList<Workload> workloads, Func<BenchOptions, ITarget> createTarget)
{
    private const string Name = "kahuna-bench";

    /// <summary>Embedded nodes stop in well under a second; more than this is a fault.</summary>
    private static readonly TimeSpan s_closeMax = TimeSpan.FromSeconds(15);

    /// <summary>
    /// Whether standard output belongs to the report, so that all lines for people go to standard error.
    /// </summary>
    private bool IsReportOnOutput { get; set; }

    /// <summary>Runs the command line; <paramref name="stop"/> ends the load early with a partial report.</summary>
    public async Task<int> RunAsync(string[] arguments, CancellationToken stop)
    {
        OptionTable table = new(workloads);
        ParseResult parsed = table.Root.Parse(arguments);
        if (parsed.Action is HelpAction
            || parsed.GetResult(table.Root.Options.OfType<VersionOption>().Single()) is not null)
        {
            InvocationConfiguration configuration =
                new() { Output = streams.OutputText, Error = streams.Error, ProcessTerminationTimeout = null };
            return await parsed.InvokeAsync(configuration, CancellationToken.None).ConfigureAwait(false);
        }

        try
        {
            return await RunAsync(new OptionReader(table, parsed).Read(), stop).ConfigureAwait(false);
        }
        catch (OptionException failure)
        {
            return Fail($"{FailureLog.Line(failure.Message)} Try --help.", ExitCode.Failed);
        }
        catch (TargetException failure)
        {
            return Fail(FailureLog.Line(failure.Message), ExitCode.Failed);
        }
        catch (OperationCanceledException) when (stop.IsCancellationRequested)
        {
            return Fail("interrupted before the measurement began.", ExitCode.Interrupted);
        }
        catch (Exception failure) when (failure is IOException or UnauthorizedAccessException)
        {
            return Fail($"The report cannot be written: {FailureLog.Line(failure.Message)}", ExitCode.Failed);
        }
    }

    private async Task<int> RunAsync(BenchCommand command, CancellationToken stop)
    {
        BenchOptions options = command.Options;
        foreach (string warning in command.Warnings)
        {
            await streams.Error.WriteLineAsync($"{Name}: {warning}.").ConfigureAwait(false);
        }

        ITarget target = createTarget(options);
        try
        {
            TargetDescription description = await target.ConnectAsync(stop).ConfigureAwait(false);
            IsReportOnOutput = options.Format != ReportFormat.Console;
            ConsoleReport lines = new(IsReportOnOutput ? streams.Error : streams.OutputText, options);
            lines.WriteHeader(description);

            LoadShape load = new(options, target, command.Workload.Begin(options), new FailureLog());
            Seeding seeding = new(load);
            if (seeding.Keys > 0)
            {
                lines.WriteSeeding(seeding);
                await seeding.RunAsync(stop).ConfigureAwait(false);
            }

            await load.Workload.PrepareAsync(target, stop).ConfigureAwait(false);
            BenchReport report = await MeasureAsync(load, description, lines, stop).ConfigureAwait(false);
            lines.WriteTable(report);
            Write(report);
            return report.Verified is { IsGood: false } ? ExitCode.Violation
                : report.Result.IsInterrupted ? ExitCode.Interrupted
                : report.WhyFailed is { } reason ? Fail(reason, ExitCode.TooManyErrors)
                : ExitCode.Finished;
        }
        finally
        {
            await CloseAsync(target).ConfigureAwait(false);
        }
    }

    /// <summary>
    /// Closes the target, which must not keep a finished run from ending: its report is already written.
    /// </summary>
    private async Task CloseAsync(ITarget target)
    {
        try
        {
            await target.DisposeAsync().AsTask().WaitAsync(s_closeMax).ConfigureAwait(false);
        }
        catch (TimeoutException)
        {
            await streams.Error.WriteLineAsync(
                $"{Name}: the target did not close within {s_closeMax.TotalSeconds:G} s.").ConfigureAwait(false);
        }
    }

    private async Task<BenchReport> MeasureAsync(
        LoadShape load, TargetDescription description, ConsoleReport lines, CancellationToken stop)
    {
        // What seeding and start-up left behind is collected now rather than in the middle of the measurement.
        GC.Collect();
        DateTimeOffset startedAt = DateTimeOffset.UtcNow + load.Options.Warmup;
        LoadRun run = new(load);
        Task<LoadResult> running = run.RunAsync(stop);
        if (load.Options.Warmup > TimeSpan.Zero)
        {
            lines.WriteWarmup();
            using LiveLine? live = CreateLiveLine(run);
            await Task.WhenAny(running, Task.Delay(load.Options.Warmup, CancellationToken.None)).ConfigureAwait(false);
        }

        if (!stop.IsCancellationRequested)
        {
            lines.WriteMeasurement();
        }

        LoadResult result;
        using (CreateLiveLine(run))
        {
            result = await running.ConfigureAwait(false);
        }

        return new BenchReport(load.Options, description, result)
        {
            StartedAt = startedAt,
            Failures = load.Failures.ToList(),
            Verified = await load.Workload.VerifyAsync(load.Target).ConfigureAwait(false),
        };
    }

    private LiveLine? CreateLiveLine(LoadRun run)
    {
        (TextWriter writer, bool isTerminal) = IsReportOnOutput
            ? (streams.Error, streams.IsErrorTerminal)
            : (streams.OutputText, streams.IsOutputTerminal);
        return isTerminal ? new LiveLine(writer, run) : null;
    }

    private void Write(BenchReport report)
    {
        BenchOptions options = report.Options;
        if (options.HistogramLog is { } log)
        {
            using StreamWriter writer = new(log);
            HistogramLog.Write(
                writer,
                report.StartedAt,
                report.Result.ElapsedSec,
                report.Totals.Select(total => (total.Name, total.Latencies)));
        }

        if (options.Format == ReportFormat.Console)
        {
            return;
        }

        // Composed as a whole, so that a file is either the old report or the new one in full.
        using MemoryStream body = new();
        if (options.Format == ReportFormat.Json)
        {
            JsonReport.Write(body, report);
        }
        else
        {
            using StreamWriter writer = new(body, leaveOpen: true);
            CsvReport.Write(writer, report);
        }

        if (options.Output is { } file)
        {
            File.WriteAllBytes(file, body.ToArray());
            return;
        }

        streams.Output.Write(body.GetBuffer(), 0, (int)body.Length);
        streams.Output.Flush();
    }

    private int Fail(string message, int code)
    {
        streams.Error.WriteLine($"{Name}: {message}");
        streams.Error.Flush();
        return code;
    }
}
