using System.Globalization;
using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Recording;
using Kahuna.Benchmark.Running;
using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Verification;

namespace Kahuna.Benchmark.Reporting;

/// <summary>Everything that a report says, whatever its format. Immutable.</summary>
internal sealed class BenchReport
{
    /// <summary>Below this share of the target rate a run is said to have fallen short.</summary>
    public const double AchievedShareMin = 0.99;

    public BenchReport(BenchOptions options, TargetDescription description, LoadResult result)
    {
        Options = options;
        Description = description;
        Result = result;
        Totals = result.Rows;
        AggregateTotal = OperationTotal.Aggregate(Totals);
        Rows = [.. Totals.Select(total => ReportRow.From(total, result.ElapsedSec))];
        Aggregate = ReportRow.From(AggregateTotal, result.ElapsedSec);
        Findings = GeneratorFindings.Of(this);
    }

    public BenchOptions Options { get; }

    public TargetDescription Description { get; }

    public LoadResult Result { get; }

    public IReadOnlyList<OperationTotal> Totals { get; }

    public OperationTotal AggregateTotal { get; }

    public IReadOnlyList<ReportRow> Rows { get; }

    public ReportRow Aggregate { get; }

    /// <summary>Sentences about what limits the trust in the numbers; empty for a clean run.</summary>
    public IReadOnlyList<string> Findings { get; }

    public MachineDescription Machine { get; init; } = MachineDescription.Read();

    public DateTimeOffset StartedAt { get; init; }

    public IReadOnlyList<(string Message, long Count)> Failures { get; init; } = [];

    /// <summary>What <c>--verify</c> has shown; null without.</summary>
    public IFindings? Verified { get; init; }

    /// <summary>Requests per second that ended in any way, up to the last answer.</summary>
    public double AchievedRate => Result.ElapsedSec > 0 ? Result.Recorded / Result.ElapsedSec : 0;

    /// <summary>
    /// Why the run proves nothing about the target, as a sentence; null for a good run. A miss is an answer.
    /// </summary>
    public string? WhyFailed
    {
        get
        {
            long errors = Aggregate.Errors + Aggregate.Timeouts;
            long backlog = Result.NotSent + Result.Unanswered;
            return Aggregate.Count + Aggregate.Misses == 0 ? Text($"no request was answered; {errors} failed.")
                : errors + backlog <= (Options.MaxErrors ?? long.MaxValue) ? null
                : backlog == 0 ? Text($"{errors} requests failed; --max-errors allows {Options.MaxErrors}.")
                : Text($"{errors} requests failed and {backlog} were not finished; ")
                    + Text($"--max-errors allows {Options.MaxErrors}.");
        }
    }

    public string ModeName => Options.Source.EmbeddedNodes > 0 ? "embedded" : "remote";

    private static string Text(FormattableString text) => text.ToString(CultureInfo.InvariantCulture);
}
