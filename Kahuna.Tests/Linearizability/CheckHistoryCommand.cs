using System.Diagnostics;
using System.Globalization;
using Kahuna.Tests.Serializability;
using Kahuna.Tests.WatchStreams;

namespace Kahuna.Tests.Linearizability;

/// <summary>
/// The command check-history, which scripts/check-history.sh runs: reads a history file, checks it, prints what is
/// wrong. Returns 0 when it is linearizable, 1 when it is not, and 2 when there is no verdict. Stateless; any thread.
/// </summary>
internal static class CheckHistoryCommand
{
    private const int IsLinearizable = 0;
    private const int IsNotLinearizable = 1;
    private const int HasNoVerdict = 2;

    public static int Run(string[] arguments, TextWriter output, TextWriter error)
    {
        if (!TryParse(arguments, out string file, out CheckerOptions options, out string refusal))
        {
            error.WriteLine($"check-history: {refusal}; scripts/check-history.sh --help tells more");
            return HasNoVerdict;
        }

        try
        {
            long begun = Stopwatch.GetTimestamp();
            if (AppendHistoryReader.IsOne(File.ReadLines(file).FirstOrDefault()))
            {
                return CheckAppends(file, output);
            }

            using StreamReader source = new(file, HistoryReader.Encoding);
            List<WatchStream> watches = [];
            List<HistoryOperation> operations = [.. HistoryReader.Read(source, watches)];
            History history = History.Of(operations);
            if (history.Keys.Count + watches.Count == 0)
            {
                // Nothing was checked, which must not look like a success.
                throw new HistoryException(0, "holds no operation");
            }

            HistoryVerdict verdict = LinearizabilityChecker.Check(history, options);
            verdict.WriteFindings(output);
            output.WriteLine(Summary(history, verdict, Stopwatch.GetElapsedTime(begun)));
            return !AgreeWith(operations, watches, options, output) ? IsNotLinearizable : verdict.Verdict switch
            {
                Verdict.Linearizable => IsLinearizable,
                Verdict.NotLinearizable => IsNotLinearizable,
                _ => HasNoVerdict,
            };
        }
        catch (HistoryException unreadable)
        {
            error.WriteLine($"check-history: {file}: {unreadable.Message}");
        }
        catch (Exception unreadable) when (unreadable is IOException or UnauthorizedAccessException)
        {
            error.WriteLine($"check-history: cannot read {file}: {unreadable.Message}");
        }

        return HasNoVerdict;
    }

    /// <summary>Checks what the watches of the history were told, and prints what is wrong.</summary>
    private static bool AgreeWith(
        List<HistoryOperation> operations, List<WatchStream> watches, CheckerOptions options, TextWriter output)
    {
        if (watches.Count == 0)
        {
            return true;
        }

        long begun = Stopwatch.GetTimestamp();
        List<WatchFinding> findings = WatchStreamChecker.Check(operations, watches, options);
        findings.ForEach(output.WriteLine);
        output.WriteLine(string.Create(
            CultureInfo.InvariantCulture,
            $"{(findings.Count == 0 ? "watches agree with the writes" : "watches do not agree with the writes")}: "
                + $"{watches.Count:N0} watches, {watches.Sum(static watch => watch.Events.Count):N0} events in "
                + $"{Stopwatch.GetElapsedTime(begun).TotalSeconds:0.00} s"));
        return findings.Count == 0;
    }

    private static int CheckAppends(string file, TextWriter output)
    {
        long begun = Stopwatch.GetTimestamp();
        using StreamReader source = new(file, HistoryReader.Encoding);
        List<AppendTransaction> transactions = AppendHistoryReader.Read(source);
        List<SerializabilityFinding> findings = SerializabilityChecker.Check(transactions);
        foreach (SerializabilityFinding finding in findings)
        {
            output.WriteLine(finding);
        }

        output.WriteLine(string.Create(
            CultureInfo.InvariantCulture,
            $"{(findings.Count == 0 ? "strictly serializable" : "not strictly serializable")}: "
                + $"{transactions.Count:N0} transactions ({CountOf(HistoryOutcome.Ok):N0} ok, "
                + $"{CountOf(HistoryOutcome.Fail):N0} fail, {CountOf(HistoryOutcome.Unknown):N0} unknown) in "
                + $"{Stopwatch.GetElapsedTime(begun).TotalSeconds:0.00} s"));
        return findings.Count == 0 ? IsLinearizable : IsNotLinearizable;

        int CountOf(HistoryOutcome outcome) => transactions.Count(each => each.Outcome == outcome);
    }

    private static string Summary(History history, HistoryVerdict verdict, TimeSpan elapsed)
    {
        int ok = history.Count(HistoryOutcome.Ok);
        int fail = history.Count(HistoryOutcome.Fail);
        int unknown = history.Count(HistoryOutcome.Unknown);
        int keys = history.Keys.Count;
        int concerned = verdict.Keys.Count(key => key.Verdict == verdict.Verdict);
        long states = verdict.Keys.Sum(key => (long)key.States);
        string found = verdict.Verdict switch
        {
            Verdict.Linearizable => $"linearizable: {keys} keys",
            Verdict.NotLinearizable => $"not linearizable: {concerned} of {keys} keys",
            _ => $"undecided (--states-max lets the search go on for longer): {concerned} of {keys} keys",
        };
        return string.Create(
            CultureInfo.InvariantCulture,
            $"{found}, {ok + fail + unknown:N0} operations ({ok:N0} ok, {fail:N0} fail, {unknown:N0} unknown), "
                + $"{states:N0} states in {elapsed.TotalSeconds:0.00} s");
    }

    private static bool TryParse(string[] arguments, out string file, out CheckerOptions options, out string refusal)
    {
        file = string.Empty;
        options = new CheckerOptions();
        refusal = string.Empty;
        for (int i = 0; i < arguments.Length && refusal.Length == 0; i++)
        {
            string argument = arguments[i];
            if (!argument.StartsWith("--", StringComparison.Ordinal))
            {
                refusal = file.Length > 0 ? $"one file at a time, not {argument} too" : string.Empty;
                file = argument;
                continue;
            }

            i++;
            refusal = i == arguments.Length || !TryReadNumber(arguments[i], out int number)
                ? $"{argument} needs a whole number from 0 on"
                : Apply(argument, number, ref options) ? string.Empty
                : $"unknown option {argument}";
        }

        if (refusal.Length == 0 && file.Length == 0)
        {
            refusal = "a history file is needed";
        }

        return refusal.Length == 0;
    }

    private static bool TryReadNumber(string text, out int number) =>
        int.TryParse(text, NumberStyles.None, CultureInfo.InvariantCulture, out number);

    private static bool Apply(string name, int number, ref CheckerOptions options)
    {
        switch (name)
        {
            case "--ttl-slack-ms":
                options = options with { TtlSlack = TimeSpan.FromMilliseconds(number) };
                return true;
            case "--ttl-lateness-ms":
                options = options with { TtlLatenessMax = TimeSpan.FromMilliseconds(number) };
                return true;
            case "--states-max":
                options = options with { StatesMax = number };
                return true;
            case "--explain-seconds":
                options = options with { ExplainTimeMax = TimeSpan.FromSeconds(number) };
                return true;
            default:
                return false;
        }
    }
}
