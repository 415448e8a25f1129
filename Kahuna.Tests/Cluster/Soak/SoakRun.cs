using System.Globalization;
using Kahuna.Tests.Simulation.Engine;
using Xunit.Abstractions;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>
/// Three real processes with TLS and disks under load and faults, and whether everything that clients were answered
/// makes sense: every history is linearizable, every caller comes back, all nodes end with the same state. Used once.
/// </summary>
internal sealed class SoakRun(SoakOptions options, ITestOutputHelper output)
{
    private static readonly TimeSpan s_tellEvery = TimeSpan.FromSeconds(10);

    /// <summary>A tolerant bound: the machine may be busy, and a call takes up to ten seconds.</summary>
    private static readonly TimeSpan s_within = LastNet.Span;

    /// <summary>So many of a hundred keys may be too hard for the checker.</summary>
    private const int UndecidedPercentMax = 1;

    private readonly SoakTally _tally = new();
    private readonly List<string> _problems = [];
    private string _digest = "";
    private string _ledgers = "";
    private string _bank = "";
    private string _lists = "";
    private long _changes;

    /// <summary>
    /// Runs, and returns what was done. Throws <see cref="SoakException"/> with everything that is wrong.
    /// </summary>
    public async Task<string> RunAsync()
    {
        SimRandom random = new SimRandom(options.Seed).Fork(2);
        int partitions = random.Pick([1, 3]);
        await using ProcessCluster cluster = new(
            output,
            3,
            "--cluster-id",
            "test-soak",
            "--partitions",
            $"{partitions}",
            "--log-keep",
            "16MB",
            "--state-store",
            random.Pick(["auto", "files"]));
        foreach (NodeProcess node in cluster.Nodes)
        {
            node.CanBeDeaf = true;
        }

        using SoakChecker checker = new(options);
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            output.WriteLine(
                $"seed {options.Seed}: {options.Duration.TotalSeconds:0} s of faults, {partitions} partitions");
            await RunAsync(cluster, checker);
            WriteSummary(checker);
            RequireProof(checker);
            if (_problems.Count > 0)
            {
                throw new SoakException(Failure(cluster, checker));
            }
        });
        return string.Create(
            CultureInfo.InvariantCulture,
            $"seed {options.Seed}: {_tally.Outcomes} on {checker.Checked:N0} keys, all linearizable "
                + $"({checker.Undecided} undecided); {_tally.FaultCount:N0} faults ({_tally.Faults}); at most "
                + $"{_tally.Silence.TotalSeconds:0.0} s without an answer; {_ledgers}; bank {_bank}; {_lists}; "
                + $"{_changes:N0} changes told to a watch; "
                + $"digest {_digest} on all nodes");
    }

    private async Task RunAsync(ProcessCluster cluster, SoakChecker checker)
    {
        SoakClock clock = new();
        await using SoakWatch watch = new(cluster.Connect(TimeSpan.FromSeconds(10)), clock, checker.AddAsync);
        await watch.StartAsync(s_within);
        SoakRecord record = new(new SoakKeys(options.KeySlots), watch, clock, _tally);
        SoakNemesis nemesis = new(cluster, options, _tally);
        await using SoakLedgers ledgers = new(cluster, options);
        await ledgers.StartAsync();
        await using SoakBank bank = new(cluster, options);
        bank.Start();
        await using SoakLists lists = new(cluster, options);
        lists.Start();
        await using (SoakLoad load = new(cluster, options, record))
        {
            using CancellationTokenSource end = new();
            Task telling = TellAsync(record, checker, end.Token);
            Task faults = nemesis.RunAsync(end.Token);
            await Task.WhenAny(faults, load.Broken, ledgers.Broken, bank.Broken, lists.Broken,
                watch.Broken, checker.Found);
            await end.CancelAsync();
            await telling;
            await RequireAsync(faults);
            await RequireAsync(load.GetThroughAsync(s_within));
            await RequireAsync(load.StopAsync(s_within));
        }

        await RequireAsync(NoteLedgersAsync(ledgers));
        await RequireAsync(NoteBankAsync(bank));
        await RequireAsync(NoteListsAsync(lists));

        await RequireAsync(NoteDigestAsync(cluster));
        await RequireAsync(record.FinishAsync(s_within, checker.Found));
        await RequireAsync(checker.FinishAsync([]));
        _changes = watch.Changes;
        if (checker.Violations > 0)
        {
            _problems.Insert(
                0,
                $"not linearizable, or told wrong: {checker.Violations} of {checker.Checked} keys\n{checker.Findings}");
        }
    }

    private async Task NoteLedgersAsync(SoakLedgers ledgers) => _ledgers = await ledgers.StopAsync(s_within);

    private async Task NoteBankAsync(SoakBank bank) => _bank = await bank.StopAsync(s_within);

    private async Task NoteListsAsync(SoakLists lists) => _lists = await lists.StopAsync(s_within);

    private async Task NoteDigestAsync(ProcessCluster cluster) => _digest = await cluster.DigestAsync(s_within);

    /// <summary>Whatever is wrong is told at the end, together with what else is.</summary>
    private async Task RequireAsync(Task step)
    {
        try
        {
            await step;
        }
        catch (Exception error)
        {
            string text = error is SoakException or TimeoutException ? error.Message : error.ToString();
            if (!_problems.Contains(text))
            {
                _problems.Add(text);
            }
        }
    }

    private async Task TellAsync(SoakRecord record, SoakChecker checker, CancellationToken end)
    {
        using PeriodicTimer timer = new(s_tellEvery);
        while (!end.IsCancellationRequested)
        {
            try
            {
                await timer.WaitForNextTickAsync(end);
            }
            catch (OperationCanceledException)
            {
                return;
            }

            output.WriteLine(string.Create(
                CultureInfo.InvariantCulture,
                $"{record.Clock.Elapsed.TotalSeconds,6:0} s: {_tally.Outcomes}, {_tally.FaultCount:N0} faults, "
                    + $"{checker.Checked:N0} keys checked, {checker.Violations} violations"));
        }
    }

    private void WriteSummary(SoakChecker checker)
    {
        output.WriteLine($"operations     {_tally.Outcomes}");
        output.WriteLine($"answered       {_tally.AnsweredKinds}");
        output.WriteLine($"errors         {_tally.Errors}");
        output.WriteLine($"faults         {_tally.Faults}");
        output.WriteLine(string.Create(
            CultureInfo.InvariantCulture,
            $"silence        {_tally.Silence.TotalSeconds:0.0} s at most without an answer"));
        output.WriteLine(string.Create(
            CultureInfo.InvariantCulture,
            $"keys           {checker.Checked:N0} checked: {checker.Violations} not linearizable or told wrong, "
                + $"{checker.Undecided} undecided"));
        output.WriteLine(string.Create(
            CultureInfo.InvariantCulture, $"watch          {_changes:N0} changes told"));
        output.WriteLine($"ledgers        {_ledgers}");
        output.WriteLine($"bank           {_bank}");
        output.WriteLine($"lists          {_lists}");
        output.WriteLine($"digest         {_digest}");
        if (checker.WroteFile)
        {
            output.WriteLine($"history        {options.FindingsFile}");
        }
    }

    /// <summary>A run that found nothing must have had the chance to.</summary>
    private void RequireProof(SoakChecker checker)
    {
        if (_problems.Count > 0)
        {
            return;
        }

        _problems.AddRange(_tally.Missed(options.Duration).Select(static missed => $"proved nothing: {missed}"));
        if (_changes == 0)
        {
            _problems.Add("proved nothing: the watch was told of no change");
        }

        if (checker.Undecided * 100 > checker.Checked * UndecidedPercentMax)
        {
            _problems.Add($"proved nothing: {checker.Undecided} of {checker.Checked} keys are undecided");
        }
    }

    /// <summary>
    /// Everything that is wrong, and where to look; the nodes' whole logs are put beside the history.
    /// </summary>
    private string Failure(ProcessCluster cluster, SoakChecker checker)
    {
        Directory.CreateDirectory(Path.GetDirectoryName(options.FindingsFile)!);
        foreach (NodeProcess node in cluster.Nodes.Where(static node => File.Exists(node.LogFile)))
        {
            File.Copy(node.LogFile, $"{options.FindingsFile}.node{node.Id}.log", overwrite: true);
        }

        string history = checker.WroteFile
            ? $"\nhistory: {options.FindingsFile}\ncheck it again: {checker.Command}"
            : "";
        return $"seed {options.Seed}: {_tally.Outcomes}, {_tally.FaultCount} faults "
            + $"({_tally.Faults})\n{string.Join('\n', _problems)}{history}\nlogs of the nodes: "
            + $"{options.FindingsFile}.node*.log";
    }
}
