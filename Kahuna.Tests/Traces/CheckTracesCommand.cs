using System.Diagnostics;
using System.Globalization;

namespace Kahuna.Tests.Traces;

/// <summary>
/// The command check-traces, which scripts/check-traces.sh runs: merges the traces of all nodes of a cluster and checks
/// the rules of Raft on them. Returns 0 when all hold, 1 when one is broken, and 2 when the traces cannot be checked.
/// Stateless; any thread.
/// </summary>
internal static class CheckTracesCommand
{
    private const int IsClean = 0;
    private const int IsBroken = 1;
    private const int HasNoVerdict = 2;

    public static int Run(string[] files, TextWriter output, TextWriter error)
    {
        if (files.Length == 0 || files.Any(static file => file.StartsWith('-')))
        {
            error.WriteLine(
                "check-traces: the names of the trace files are needed; scripts/check-traces.sh --help tells more");
            return HasNoVerdict;
        }

        List<StreamReader> sources = [];
        try
        {
            long begun = Stopwatch.GetTimestamp();
            TraceChecker checker = new(VotersOf(files));
            sources.AddRange(files.Select(Open));
            TraceReader[] readers = [.. sources.Select((source, i) => new TraceReader(source, files[i]))];
            checker.Check(TraceMerge.Merge([.. readers.Select(static reader => reader.Read())]));
            output.WriteLine(string.Create(
                CultureInfo.InvariantCulture,
                $"clean: {checker}, {readers.Sum(static reader => reader.Torn)} torn lines, in "
                    + $"{Stopwatch.GetElapsedTime(begun).TotalSeconds:0.00} s"));
            return IsClean;
        }
        catch (BrokenRuleException broken)
        {
            WriteFinding(broken, output);
            return IsBroken;
        }
        catch (Exception unreadable) when (unreadable is TraceException or IOException or UnauthorizedAccessException)
        {
            error.WriteLine($"check-traces: {unreadable.Message}");
        }
        finally
        {
            sources.ForEach(static source => source.Dispose());
        }

        return HasNoVerdict;
    }

    /// <summary>A node may still be writing.</summary>
    private static StreamReader Open(string file) =>
        new(new FileStream(file, FileMode.Open, FileAccess.Read, FileShare.ReadWrite, 1 << 16));

    private static TraceEvent FirstOf(string file)
    {
        using StreamReader source = Open(file);
        return new TraceReader(source, file).Read().FirstOrDefault()
            ?? throw new TraceException($"{file} holds no event");
    }

    /// <summary>With the trace of a node missing, nobody could tell what a majority has.</summary>
    private static int VotersOf(string[] files)
    {
        TraceEvent[] starts = [.. files.Select(FirstOf)];
        int nodes = starts.Select(static start => start.Node).Distinct().Count();
        return nodes == starts[0].Voters
            ? nodes
            : throw new TraceException(
                $"the cluster has {starts[0].Voters} voters, and there are traces of {nodes} nodes; the "
                    + $"traces of all of them are needed");
    }

    private static void WriteFinding(BrokenRuleException broken, TextWriter output)
    {
        output.WriteLine($"broken: {broken.Rule}");
        output.WriteLine(broken.Words);
        foreach (TracePlace place in broken.Places)
        {
            using StreamReader source = Open(place.File);
            string? line = null;
            for (long i = 0; i < place.Line; i++)
            {
                line = source.ReadLine();
            }

            output.WriteLine($"{place}: {line}");
        }
    }
}
