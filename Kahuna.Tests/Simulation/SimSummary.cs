using System.Diagnostics;
using System.Globalization;
using System.Text.Json;

namespace Kahuna.Tests.Simulation;

/// <summary>What many runs did, all together. Any thread.</summary>
internal sealed class SimSummary(SimOptions options)
{
    /// <summary>So many of a hundred keys may be too hard for the checker.</summary>
    private const int UndecidedPercentMax = 1;

    private readonly Lock _gate = new();
    private readonly SortedDictionary<ulong, SimResult> _results = [];
    private readonly long _began = Stopwatch.GetTimestamp();
    private double _shownAt;
    private int _violations;

    /// <summary>The lowest seed that broke a rule.</summary>
    public SimResult? First
    {
        get
        {
            lock (_gate)
            {
                return _results.Values.FirstOrDefault(static result => result.Violation is not null);
            }
        }
    }

    /// <summary>The results by seed, as of now.</summary>
    public IReadOnlyList<SimResult> Results
    {
        get
        {
            lock (_gate)
            {
                return [.. _results.Values];
            }
        }
    }

    /// <summary>How many seeds broke a rule.</summary>
    public int Violations
    {
        get
        {
            lock (_gate)
            {
                return _violations;
            }
        }
    }

    /// <summary>What a set of seeds of this size should have seen and did not: it proved nothing there.</summary>
    public IReadOnlyList<string> Missed => FindMissed();

    private double Elapsed => Stopwatch.GetElapsedTime(_began).TotalSeconds;

    public void Add(SimResult result)
    {
        lock (_gate)
        {
            _results[result.Seed] = result;
            _violations += result.Violation is null ? 0 : 1;
        }
    }

    /// <summary>One line, at most once a second.</summary>
    public void Progress(TextWriter output)
    {
        if (Elapsed - _shownAt < 1)
        {
            return;
        }

        _shownAt = Elapsed;
        lock (_gate)
        {
            double seconds = _results.Values.Sum(static result => result.VirtualSeconds);
            output.WriteLine(string.Create(
                CultureInfo.InvariantCulture,
                $"{_results.Count} seeds, {seconds / Elapsed:0} virtual s per s, "
                    + $"{_results.Values.Sum(static result => result.Events):N0} events, "
                    + $"{_results.Values.Count(static result => result.Violation is not null)} violations"));
        }
    }

    public void Print(TextWriter output)
    {
        CultureInfo culture = CultureInfo.InvariantCulture;
        double seconds = Sum(static result => result.VirtualSeconds);
        double work = Sum(static result => result.RealSeconds);
        SimResult? slowest = _results.Values.MaxBy(static result => result.RealSeconds);
        output.WriteLine();
        output.WriteLine(string.Create(
            culture,
            $"seeds          {_results.Count:N0} of {options.Seconds:0} virtual seconds, {options.Jobs} side by side"));
        output.WriteLine(string.Create(
            culture,
            $"virtual time   {seconds / 3600:0.00} h in {Elapsed:0.0} s; "
                + $"{seconds / Math.Max(work, 1e-9):0} virtual s per s and job"));
        output.WriteLine(string.Create(culture, $"events         {Sum(static result => result.Events):N0}"));
        output.WriteLine(string.Create(
            culture,
            $"leaders        {Sum(static result => result.LeaderChanges):N0}, median "
                + $"{Median(static result => result.LeaderChanges):0} a seed"));
        output.WriteLine(string.Create(
            culture,
            $"crashes        {Sum(static result => result.Crashes):N0}, median "
                + $"{Median(static result => result.Crashes):0}"));
        output.WriteLine(string.Create(culture, $"partitions     median {Median(Partitions):0}"));
        output.WriteLine(string.Create(
            culture,
            $"operations     median {Median(Operations):0}; {Words(Totals(static result => result.Operations))}"));
        output.WriteLine(string.Create(
            culture,
            $"undecided      {Sum(static result => result.Undecided):N0} keys, whose histories "
                + $"were too much for the checker"));
        output.WriteLine("faults         " + Words(Totals(static result => result.Faults)));
        output.WriteLine(string.Create(culture, $"slowest seed   {slowest?.Seed} in {slowest?.RealSeconds:0.00} s"));
        output.WriteLine($"event log      {Hash():x16}");
        foreach (string missed in Missed)
        {
            output.WriteLine($"proved nothing {missed}");
        }

        foreach (SimResult result in _results.Values.Where(static result => result.Violation is not null))
        {
            output.WriteLine(
                $"VIOLATION      seed {result.Seed}, step {result.Violation!.Step}: "
                    + $"{result.Violation.Words.Split('\n')[0]}");
        }
    }

    public string ToJson() => JsonSerializer.Serialize(
        new
        {
            seeds = _results.Count,
            virtualSeconds = Sum(static result => result.VirtualSeconds),
            realSeconds = Elapsed,
            jobs = options.Jobs,
            events = (long)Sum(static result => result.Events),
            leaderChanges = (long)Sum(static result => result.LeaderChanges),
            crashes = (long)Sum(static result => result.Crashes),
            faults = Totals(static result => result.Faults),
            operations = Totals(static result => result.Operations),
            undecidedKeys = (long)Sum(static result => result.Undecided),
            medians = new
            {
                leaderChanges = Median(static result => result.LeaderChanges),
                crashes = Median(static result => result.Crashes),
                partitions = Median(Partitions),
                operations = Median(Operations),
            },
            violations = _results.Values.Where(static result => result.Violation is not null).Select(static result =>
                new { seed = result.Seed, step = result.Violation!.Step, rule = result.Violation.Rule }),
            missed = Missed,
            eventLogHash = Hash().ToString("x16", CultureInfo.InvariantCulture),
        },
        new JsonSerializerOptions { WriteIndented = true });

    private static double Partitions(SimResult result) =>
        result.Count(nameof(FaultClass.Partition))
            + result.Count(nameof(FaultClass.LeaderCut))
            + result.Count(nameof(FaultClass.OneWayCut));

    private static double Operations(SimResult result) =>
        result.Operations["ok"] + result.Operations["fail"] + result.Operations["unknown"];

    private static string Words(SortedDictionary<string, long> totals) =>
        string.Join(
            ", ",
            totals.Select(static pair => string.Create(CultureInfo.InvariantCulture, $"{pair.Key} {pair.Value:N0}")));

    private ulong Hash()
    {
        ulong hash = 0;
        foreach (SimResult result in _results.Values)
        {
            hash = ((hash ^ result.Hash) * 0x9E3779B97F4A7C15) + result.Seed;
        }

        return hash;
    }

    private double Sum(Func<SimResult, double> of) => _results.Values.Sum(of);

    private double Median(Func<SimResult, double> of)
    {
        double[] sorted = [.. _results.Values.Select(of).Order()];
        return sorted.Length == 0 ? 0 : sorted[sorted.Length / 2];
    }

    private SortedDictionary<string, long> Totals(Func<SimResult, IReadOnlyDictionary<string, long>> of)
    {
        SortedDictionary<string, long> totals = new(StringComparer.Ordinal);
        foreach (KeyValuePair<string, long> pair in _results.Values.SelectMany(of))
        {
            totals[pair.Key] = totals.GetValueOrDefault(pair.Key) + pair.Value;
        }

        return totals;
    }

    private List<string> FindMissed()
    {
        const int Enough = 100;
        List<string> missed = [];
        if (_results.Count < Enough || First is not null)
        {
            return missed;
        }

        missed.AddRange(Totals(static result => result.Faults).Where(static pair => pair.Value == 0).Select(
            static pair => $"{pair.Key} never happened"));
        missed.AddRange(Totals(static result => result.Operations).Where(static pair => pair.Value == 0).Select(
            static pair => $"no operation ended as {pair.Key}"));
        double undecided = Sum(static result => result.Undecided);
        double keys = Sum(static result => result.Keys);
        if (undecided * 100 > keys * UndecidedPercentMax)
        {
            missed.Add(string.Create(CultureInfo.InvariantCulture, $"{undecided:0} of {keys:0} keys are undecided"));
        }

        if (options.Seconds >= 60)
        {
            Need(missed, "leader changes", Median(static result => result.LeaderChanges), 5);
            Need(missed, "crashes", Median(static result => result.Crashes), 3);
            Need(missed, "partitions", Median(Partitions), 1);
            Need(missed, "operations", Median(Operations), 300);
        }

        return missed;
    }

    private static void Need(List<string> missed, string what, double median, double least)
    {
        if (median < least)
        {
            missed.Add(string.Create(
                CultureInfo.InvariantCulture, $"the median of {what} is {median:0}, and {least:0} are wanted"));
        }
    }
}
