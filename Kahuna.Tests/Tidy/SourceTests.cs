using System.Text.RegularExpressions;

namespace Kahuna.Tests.Tidy;

/// <summary>House style that can be read off the source files.</summary>
public sealed partial class SourceTests
{
    /// <summary>No file is longer.</summary>
    private const int LinesMax = 600;

    /// <summary>A longer file says below why it is one idea that would be harder to follow in pieces.</summary>
    private const int LinesWithoutReason = 400;

    private const int ColumnsMax = 120;

    /// <summary>
    /// The reasons of the files with more than <see cref="LinesWithoutReason"/> lines. An entry whose file became
    /// short, or is gone, fails too.
    /// </summary>
    private static readonly Dictionary<string, string> s_longFiles = new()
    {
        ["Kahuna.Server/Partitions/Groups/GroupDurability.cs"] =
            "What a group's promises rest on, with the log batch that stores them.",
        ["Kahuna.Client/KeyValues/KeyValueClient.cs"] =
            "what a user can do with keys, of which more than half is its documentation",
        ["Kahuna.Client/Coordination/CommitAttempt.cs"] =
            "One attempt of a two-phase commit, from its first part to the decision that is forgotten.",
        ["Kahuna.Client/Transactions/Transaction.cs"] =
            "what a user can do in a transaction, of which more than half is its documentation",
        ["Kahuna.Client/Connection/NodeStream.cs"] =
            "One stream from its opening to its end: the writing loop, the reading loop, and what wakes them.",
        ["Kahuna.Client/Connection/Operation.cs"] =
            "The life of an operation, and of the result that the caller awaits.",
        ["Kahuna.Client/Wire/Checks/CommandCheck.cs"] =
            "What makes a command valid, kind by kind, with the sentences of the refusals.",
        ["Kahuna.Server/Api/ExchangeStream.cs"] =
            "The framed stream in one piece: frames are read, and replies are written as the reader takes them.",
        ["Kahuna.Server/Api/Watches/WatchReader.cs"] =
            "The watches of one stream, from a request to the frames of what they are told.",
        ["Kahuna.Server/Hosting/KahunaNode.cs"] =
            "The composition root: what a node consists of, and in which order it starts and stops.",
        ["Kahuna.Server/Partitions/Changes/ChangeLog.cs"] = "A log's segments, and the form of a record in them.",
        ["Kahuna.Server/Partitions/Groups/PeerMessages.cs"] =
            "Messages to peers, from a promise that waits to the bytes of a frame.",
        ["Kahuna.Server/Partitions/Loops/LoopSet.cs"] =
            "The way in: from any thread through an inbox to the group that it is for.",
        ["Kahuna.Server/Partitions/Loops/PartitionLoop.cs"] =
            "One turn of a loop: who runs it, which groups it serves, and what leaves at its end.",
        ["Kahuna.Server/Partitions/Requests/LockWaiters.cs"] =
            "Long polls, from the question that is held to the answer, and the polls of locks.",
        ["Kahuna.Server/Partitions/Requests/PendingReads.cs"] =
            "The way of a read: queued, confirmed, parked, served.",
        ["Kahuna.Server/Partitions/Requests/PendingRequests.cs"] =
            "What clients want of a group, the rules for taking it in, and the frames of the answers.",
        ["Kahuna.Server/Partitions/Requests/ProposalQueue.cs"] =
            "The way of a write from a client's batch into the bytes of an entry.",
        ["Kahuna.Server/Raft/EntryLog.cs"] =
            "The log of the core: marks, terms and entries change in step.",
        ["Kahuna.Server/Raft/Leadership.cs"] =
            "What a leader does: replicates, counts acknowledgements, commits, confirms reads.",
        ["Kahuna.Server/Raft/Roles.cs"] =
            "What a node does as a follower and candidate, and how it changes between roles.",
        ["Kahuna.Server/State/StateMachine.cs"] =
            "One dispatch over the tables, and what surrounds it.",
        ["Kahuna.Server/State/Rows/HistoryTable.cs"] =
            "Replaced revisions and forgotten keys: what is kept of the past, and for how long.",
        ["Kahuna.Server/State/Rows/KeyTable.cs"] =
            "The table of rows with the layout of an entry and the sets of rows.",
        ["Kahuna.Server/Storage/LogPositions.cs"] =
            "Where each group's entries lie: one index, and its part for one group.",
        ["Kahuna.Server/Transport/PeerLinks.cs"] =
            "The links of a node and the connections that carry them.",
        ["Kahuna.Server/Api/Calls/RawStream.cs"] =
            "The bytes of one stream, on its call and on its direct link, with the same limits.",
        ["Kahuna.Server/State/Rows/KeyStore.cs"] =
            "What happens to a key is one idea: tables, history, deadlines and digest change in step.",
        ["Kahuna.Server/State/Rows/SlabAllocator.cs"] =
            "One allocator: its lists of pages, slabs and arrays name each other, and are checked where they change.",
        ["Kahuna.Server/State/Sessions/SessionTable.cs"] =
            "What happens to a number, from its first command until it is forgotten, is read in one piece.",
        ["Kahuna.Server/Raft/RaftCore.cs"] =
            "The core's whole interface with what each part of it promises; what it does is in the parts.",
        ["Kahuna.Server/Raft/Progress.cs"] =
            "One state machine: each event of a follower changes the same few fields.",
        ["Kahuna.Server/Storage/GroupCommit.cs"] =
            "The way of a batch from a writer's buffer to its report, in one file as in Pebble.",
        ["Kahuna.Server/Storage/LogRecovery.cs"] =
            "One pass over the log: torn, damaged and unused are told apart by the same facts.",
        ["Kahuna.Server/Storage/SegmentedLog.cs"] =
            "The log's whole interface and the order of its steps; the work is in the parts.",
        ["Kahuna.Server/Storage/Checkpoints/RocksStateStore.cs"] =
            "One database and the rules that keep its families, files and errors consistent.",
        ["Kahuna.Server/Partitions/Groups/Group.cs"] =
            "One turn of a group is read from top to bottom, with the reasons of its order.",
        ["scripts/cluster.sh"] = "The commands of a cluster on this machine, and what they share.",
        ["Kahuna.Tests/Raft/PaperScenarioTests.cs"] = "A catalogue of the papers' scenarios, one method each.",
        ["Kahuna.Client/Connection/ClusterConnection.cs"] =
            "The life of an operation outside of a stream: started, refused, parked, sent again, or ended.",
        ["Kahuna.Client/Connection/RequestQueue.cs"] =
            "The life of an operation inside a stream, with the open frame that its request is encoded into.",
        ["Kahuna.Client/Locks/Acquirer.cs"] =
            "The acquire protocol is one idea: claim, wait, verify the grant, and abandon what is no longer wanted.",
        ["Kahuna.Tests/Api/Grpc/Foreign/GrpcDotnetTests.cs"] = "Every method of every service, one call each.",
        ["Kahuna.Tests/Client/AcquireTests.cs"] = "One scenario for each step and failure of the acquire protocol.",
        ["Kahuna.Tests/Partitions/ModelCluster.cs"] = "A model of a cluster of loops, step by step.",
        ["Kahuna.Tests/Simulation/SimConfig.cs"] = "Everything that a seed draws, in the order of the draws.",
        ["Kahuna.Tests/Simulation/SimCluster.cs"] = "Everything that a run consists of, in one place.",
        ["Kahuna.Tests/Simulation/Workload/SimClient.cs"] = "One client of a run, and what its callers draw.",
        ["Kahuna.Tests/Simulation/Nodes/SimNode.cs"] = "One node of the simulator, from start to crash.",
        ["Kahuna.Tests/Simulation/Rules/AvailabilityRules.cs"] = "One rule, and the facts that it judges by.",
        ["Kahuna.Tests/Simulation/Rules/WatchedKeys.cs"] = "What one watch has to be told, by a node or by the client.",
        ["Kahuna.Tests/Simulation/Workload/Watcher.cs"] = "One watcher of a run, and what it asks for and hears.",
        ["Kahuna.Tests/Simulation/Rules/VolatileRules.cs"] = "One family of rules, and the facts that they judge by.",
        ["Kahuna.Tests/State/CommandCostTests.cs"] = "A catalogue of costs, one command each.",
        ["Kahuna.Tests/Traces/GroupChecker.cs"] = "The rules of one group's trace, event by event.",
        ["Kahuna.Tests/Raft/RaftNode.cs"] = "Carries out every part of a Ready on a simulated disk.",
        ["Kahuna.Tests/Raft/Trace.cs"] = "The language of the golden traces: its commands and its output.",
        ["Kahuna.Tests/Storage/LogCutModelTests.cs"] =
            "A model of the log beside the real one, operation by operation.",
        ["Kahuna.Tests/Transport/PeerLinksTests.cs"] = "A catalogue of what links promise, one method each.",
    };

    private static IEnumerable<(string File, int Lines)> Lengths => Repository.Files
        .Where(file => Path.GetExtension(file) is ".cs" or ".sh" or ".py" or ".mjs")
        .Select(file => (file, Repository.Lines(file).Length));

    [Fact]
    public void Files_are_short() =>
        Findings.AssertNone(Lengths
            .Where(file => file.Lines > LinesMax)
            .Select(file => $"{file.File}: {file.Lines} lines"));

    [Fact]
    public void Longer_files_have_a_reason() =>
        Findings.AssertNone(Lengths
            .Where(file => file.Lines > LinesWithoutReason && !s_longFiles.ContainsKey(file.File))
            .Select(file => $"{file.File}: {file.Lines} lines and no reason for more than {LinesWithoutReason}"));

    [Fact]
    public void Reasons_for_the_length_are_still_needed()
    {
        Dictionary<string, int> lengths = Lengths.ToDictionary(file => file.File, file => file.Lines);
        Findings.AssertNone(s_longFiles.Keys
            .Where(file => lengths.GetValueOrDefault(file) <= LinesWithoutReason));
    }

    [Fact]
    public void Lines_end_at_120_columns() =>
        Findings.AssertNone(Repository.SourceFiles.SelectMany(LongLines));

    [Fact]
    public void Namespaces_equal_folders()
    {
        List<string> wrong = [];
        foreach (string file in Repository.SourceFiles)
        {
            string? declared = Repository.Lines(file)
                .Select(line => FileScopedNamespace().Match(line))
                .FirstOrDefault(match => match.Success)?.Groups[1].Value;
            string expected = NamespaceOf(Path.GetDirectoryName(file)!);

            // The entry point of a program is top-level statements, without a namespace.
            if (declared != expected && !(declared is null && Path.GetFileName(file) == "Program.cs"))
            {
                wrong.Add($"{file}: {declared ?? "no file-scoped namespace"}, expected {expected}");
            }
        }

        Findings.AssertNone(wrong);
    }

    /// <summary>
    /// The wire is a project of its own, and the words that all share are in the product's own namespace.
    /// </summary>
    private static string NamespaceOf(string folder)
    {
        string name = folder.Replace('/', '.').Replace('\\', '.');
        return name.EndsWith(".Vocabulary", StringComparison.Ordinal)
            ? "Kahuna"
            : name.Replace("Kahuna.Client.Wire", "Kahuna.Wire", StringComparison.Ordinal);
    }

    /// <summary>System's namespaces first, the rest by the alphabet, as <c>dotnet format</c> puts them.</summary>
    [Fact]
    public void Usings_are_in_order()
    {
        List<string> wrong = [];
        foreach (string file in Repository.SourceFiles)
        {
            string[] names =
            [
                .. Repository.Lines(file)
                    .Select(line => PlainUsing().Match(line))
                    .Where(match => match.Success)
                    .Select(match => match.Groups[1].Value),
            ];
            string[] sorted =
            [
                .. names.OrderBy(name => name != "System" && !name.StartsWith("System.", StringComparison.Ordinal))
                    .ThenBy(name => name.Replace('.', '\0'), StringComparer.OrdinalIgnoreCase),
            ];
            wrong.AddRange(names.Zip(sorted)
                .Where(pair => pair.First != pair.Second)
                .Take(1)
                .Select(pair => $"{file}: {pair.First} where {pair.Second} should be"));
        }

        Findings.AssertNone(wrong);
    }

    [Fact]
    public void No_unfinished_work_is_marked()
    {
        // The words are put together here so that this file does not find itself.
        Regex marks = new(
            @"\b(" + string.Join('|', "TO" + "DO", "FIX" + "ME", "HA" + "CK", "Not" + "ImplementedException") + @")\b");
        Findings.AssertNone(LinesMatching(marks));
    }

    [Fact]
    public void No_path_of_somebodys_machine_is_written_down()
    {
        string homes = string.Join('|', new[] { "home", "root", "Users", "work", "mnt" }.Select(name => $"/{name}/"));
        Findings.AssertNone(LinesMatching(new Regex($@"(?<![\w.$}}~/-])({homes})|\b[A-Z]:\\\w")));
    }

    [Fact]
    public void Files_end_with_one_newline_and_have_no_trailing_blanks()
    {
        List<string> wrong = [];
        foreach (string file in Repository.TextFiles.Where(IsWrittenByHand))
        {
            string text = File.ReadAllText(Repository.FullPath(file));
            if (text.Length > 0 && (!text.EndsWith('\n') || text.EndsWith("\n\n", StringComparison.Ordinal)))
            {
                wrong.Add($"{file}: does not end with one newline");
            }

            if (TrailingBlank().IsMatch(text))
            {
                wrong.Add($"{file}: blanks at the end of a line");
            }
        }

        Findings.AssertNone(wrong);
    }

    /// <summary>
    /// Lines over <see cref="ColumnsMax"/>, except URLs, data of theories, and raw strings, which are golden text.
    /// </summary>
    private static IEnumerable<string> LongLines(string file)
    {
        bool isRaw = false;
        int number = 0;
        foreach (string line in Repository.Lines(file))
        {
            number++;
            int quotes = RawQuotes().Count(line);
            bool isException = isRaw
                || quotes > 0
                || line.Contains("://", StringComparison.Ordinal)
                || line.TrimStart().StartsWith("[InlineData(", StringComparison.Ordinal);
            if (line.Length > ColumnsMax && !isException)
            {
                yield return $"{file}:{number}: {line.Length} columns";
            }

            isRaw ^= quotes % 2 == 1;
        }
    }

    private static bool IsWrittenByHand(string file) =>
        !file.Contains("/Golden/", StringComparison.Ordinal)
            && !file.EndsWith(".lock.json", StringComparison.Ordinal)
            && !file.EndsWith(".sln", StringComparison.Ordinal);

    private static IEnumerable<string> LinesMatching(Regex pattern) =>
        from file in Repository.TextFiles
        from line in Repository.Lines(file).Select((text, i) => (text, number: i + 1))
        where pattern.IsMatch(line.text)
        select $"{file}:{line.number}: {line.text.Trim()}";

    [GeneratedRegex("\"\"\"+")]
    private static partial Regex RawQuotes();

    [GeneratedRegex(@"^using ([\w.]+);$")]
    private static partial Regex PlainUsing();

    [GeneratedRegex(@"^namespace ([\w.]+);")]
    private static partial Regex FileScopedNamespace();

    [GeneratedRegex(@"[ \t]\r?$", RegexOptions.Multiline)]
    private static partial Regex TrailingBlank();
}
