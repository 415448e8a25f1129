using System.Diagnostics;
using Kahuna.Tests.Hosting;
using Kahuna.Tests.Tidy;
using static Kahuna.Tests.Traces.TraceScript;

namespace Kahuna.Tests.Traces;

/// <summary>
/// The command check-traces and its script, on traces written by hand: one that is good, one for each broken rule, and
/// what cannot be checked.
/// </summary>
public sealed class CheckTracesTests : IDisposable
{
    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Fact]
    public void Clean_is_0()
    {
        (int code, string output, string error) = Run(WithOneEntry());
        Assert.Equal((0, string.Empty), (code, error));
        Assert.Matches(
            @"^clean: 3 nodes, 3 runs, 1 groups, 1 entries, 1 leaders, 2 votes, "
                + @"1 acknowledged entries with 2 writes, 0 torn lines, in \d+\.\d\d s\n$",
            output);
    }

    [Fact]
    public void A_killed_leader_comes_back_with_its_entries() =>
        Clean(WithOneEntry().Raw(1, """{"t":5,"no""").Start(1, run: "r2", last: 1, term: 1, vote: 1, commit: 1).Stored(3, 1).Promise(3, 2, 3, last: 1).Vote(3, 2, 3).Promise(2, 2, 3, last: 1).Vote(2, 2, 3).Lead(3, 2));

    [Fact]
    public void A_restart_may_find_what_others_have_replaced() =>
        Clean(
            Elected().Stored(1, 1).Promise(3, 2, 3).Promise(2, 2, 3).Lead(3, 2).Append(3, 1, term: 2).Persisted(
                3, 2, 1, 2, 2, 3).Append(2, 1, term: 2).Persisted(2, 3, 1, 2, 2, 3).Commit(3, 1, term: 2)
            .Start(1, run: "r2", last: 1, term: 1, vote: 1).Replay(1, 1));

    [Fact]
    public void A_restart_that_finds_another_committed_entry() =>
        Broken(
            "log matching",
            "entry 1 of term 1 differs on nodes 1 and 2",
            WithOneEntry().Start(2, run: "r2", last: 1, term: 1, vote: 1, commit: 1).Replay(2, 1, OtherHash),
            lines: 2);

    [Fact]
    public void A_node_that_lost_its_disk_comes_back_with_nothing() =>
        Clean(
            WithOneEntry().Start(2, run: "r2", directory: "d2").Persisted(2, 1, 0, 0, 1, 2).Append(2, 1).Persisted(
                2, 2, 1, 1, 1, 2).Commit(2, 1).Apply(2, 1));

    [Fact]
    public void A_snapshot_takes_the_place_of_a_log() =>
        Clean(WithOneEntry().Promise(3, 1, 0).Add(3, "restart", """ "batch":2,"index":1,"term":1 """).Add(3, "state", """ "index":1,"term":1,"digest":"0000000000000001" """).Persisted(3, 2, 1, 1, 1, 0));

    [Fact]
    public void Two_leaders_in_a_term() =>
        Broken("one leader per term", "group 1: nodes 1 and 2 lead in term 1", Elected().Lead(2, 1), lines: 2);

    [Fact]
    public void Two_votes_in_a_term() =>
        Broken("one vote per node and term", "node 2 votes for 3 in term 1", Elected().Vote(2, 1, 3));

    [Fact]
    public void Another_vote_after_a_restart() =>
        Broken(
            "one vote per node and term",
            "node 2 has a vote for 3 in term 1 on its disk, and had one for 1",
            Elected().Start(2, run: "r2", term: 1, vote: 3));

    [Fact]
    public void A_term_that_goes_back() =>
        Broken("a term never goes back", "node 2 has term 0 on its disk, and had 1", Elected().Start(2, run: "r2"));

    [Fact]
    public void A_term_that_goes_back_without_a_restart() =>
        Broken(
            "a term never goes back",
            "node 1 has term 1 on its disk, and had 2",
            Elected().Promise(1, 2, 0).Promise(1, 1, 1));

    [Fact]
    public void A_vote_before_it_is_durable() =>
        Broken(
            "a term is durable before it is used",
            "node 3 votes in term 1, and has 0 on its disk",
            Elected().Vote(3, 1, 1));

    [Fact]
    public void A_leader_before_its_term_is_durable() =>
        Broken(
            "a term is durable before it is used",
            "node 1 leads in term 2, and has 1 on its disk",
            Elected().Lead(1, 2));

    [Fact]
    public void Different_entries_of_equal_index_and_term() =>
        Broken(
            "log matching",
            "entry 1 of term 1 differs on nodes 1 and 3",
            Elected().Stored(1, 1).Append(3, 1, hash: OtherHash),
            lines: 2);

    [Fact]
    public void Equal_entries_after_different_ones() =>
        Broken(
            "log matching",
            "entry 2 of term 2 follows on term 2 on node 3 and on term 1 on node 1",
            Elected().Append(1, 1).Append(1, 2, term: 2).Append(3, 1, term: 2).Append(3, 2, term: 2),
            lines: 2);

    [Fact]
    public void A_log_with_a_gap() =>
        Broken(
            "a log has no gaps", "node 1 appends from entry 3 on, and has 1 to 1", Elected().Append(1, 1).Append(1, 3));

    [Fact]
    public void A_committed_entry_that_changes() =>
        Broken(
            "a committed entry never changes", "node 2 puts entry 1 of term 2", WithOneEntry().Append(2, 1, term: 2));

    [Fact]
    public void A_committed_entry_that_is_dropped() =>
        Broken(
            "a committed entry never changes",
            "node 2 drops the committed entry 1",
            Elected().Stored(1, 1).Stored(2, 1).Commit(1, 1).Append(2, 1, term: 2));

    [Fact]
    public void A_committed_entry_that_a_restart_does_not_find() =>
        Broken(
            "a committed entry never changes",
            "node 2 had entry 1",
            WithOneEntry().Start(2, run: "r2", term: 1, vote: 1));

    [Fact]
    public void Two_different_committed_entries() =>
        Broken(
            "a committed entry never changes",
            "node 3 has another committed entry 1",
            WithOneEntry().Append(3, 1, term: 2).Commit(3, 1, term: 2));

    [Fact]
    public void A_commit_without_a_durable_majority() =>
        Broken(
            "what is committed is on the disks of a majority",
            "entry 1 of term 1 with hash 00000000000000aa is on 1 of 3 disks",
            Elected().Stored(1, 1).Append(2, 1).Commit(1, 1));

    [Fact]
    public void A_commit_of_nothing() =>
        Broken(
            "only what is in a log is committed", "node 3 commits 1, and has 0 entries", WithOneEntry().Commit(3, 1));

    [Fact]
    public void A_commit_index_that_goes_back() =>
        Broken("a commit index never goes back", "node 1 commits 1 after 1", WithOneEntry().Commit(1, 1));

    [Fact]
    public void An_acknowledgement_before_the_commit() =>
        Broken(
            "an acknowledged write is committed",
            "node 1 acknowledges entry 1 of term 1; 0 are committed there",
            Elected().Stored(1, 1).Stored(2, 1).Acknowledge(1, 1));

    [Fact]
    public void An_acknowledgement_of_an_entry_that_was_replaced() =>
        Broken(
            "an acknowledged write is committed",
            "node 1 acknowledges entry 1 of term 2",
            WithOneEntry().Acknowledge(1, 1, term: 2));

    [Fact]
    public void An_entry_applied_twice() =>
        Broken(
            "entries are applied once and in order",
            "node 1 applies from entry 1 on, and has applied 1",
            WithOneEntry().Apply(1, 1));

    [Fact]
    public void An_entry_left_out() =>
        Broken(
            "entries are applied once and in order",
            "node 1 applies from entry 2 on, and has applied 0",
            Elected().Stored(1, 1).Stored(2, 1).Commit(1, 1).Apply(1, 2));

    [Fact]
    public void An_entry_applied_before_it_is_committed() =>
        Broken(
            "only what is committed is applied",
            "node 1 applies up to entry 1, and has committed 0",
            Elected().Stored(1, 1).Stored(2, 1).Apply(1, 1));

    [Fact]
    public void States_that_differ() =>
        Broken(
            "equal states after equal entries",
            "after entry 1 the states of nodes 1 and 3 have the digests 0000000000000001 and 0000000000000002",
            WithOneEntry().Stored(3, 1).Commit(3, 1).Apply(3, 1, "2"),
            lines: 2);

    [Fact]
    public void A_state_installed_that_differs() =>
        Broken(
            "equal states after equal entries",
            "after entry 1",
            WithOneEntry().Add(3, "restart", """ "batch":1,"index":1,"term":1 """).Add(3, "state", """ "index":1,"term":1,"digest":"2" """),
            lines: 2);

    [Fact]
    public void A_state_of_what_is_not_committed() =>
        Broken("only what is committed is installed", "node 3 begins its log after entry 2", WithOneEntry().Add(3, "restart", """ "batch":1,"index":2,"term":1 """));

    [Fact]
    public void A_leader_that_lacks_a_committed_entry() =>
        Broken(
            "leader completeness",
            "node 3 leads in term 2 with 0 entries, and lacks the committed entry 1",
            WithOneEntry().Promise(3, 2, 3).Vote(3, 2, 3).Lead(3, 2));

    [Fact]
    public void A_commit_that_the_next_leader_lacks() =>
        Broken(
            "leader completeness",
            "is committed, and node 3, which leads in term 2, lacks it",
            Elected().Stored(1, 1).Stored(2, 1).Promise(3, 2, 3).Vote(3, 2, 3).Lead(3, 2).Commit(1, 1),
            lines: 2);

    [Fact]
    public void A_late_leader_of_an_earlier_term_need_not_have_what_a_later_one_committed() =>
        Clean(
            Elected().Promise(3, 2, 3).Promise(2, 3, 2).Lead(
                2,
                3).Append(2, 1, term: 3).Persisted(2, 3, 1, 3, 3, 2).Promise(1, 3, 2).Append(1, 1, term: 3).Persisted(
                    1, 3, 1, 3, 3, 2).Commit(2, 1, term: 3).Lead(3, 2));

    [Fact]
    public void What_is_long_over_is_forgotten_and_the_rest_still_checked()
    {
        TraceScript script = Elected();
        for (int index = 1; index <= 40; index++)
        {
            script.Stored(1, index).Stored(2, index).Commit(1, index).Acknowledge(1, index).Apply(1, index).Commit(
                2, index).Apply(2, index).Stored(3, index).Commit(3, index).Apply(3, index);
        }

        script.Start(2, run: "r2", last: 40, term: 1, vote: 1, commit: 40).Stored(1, 41).Stored(2, 41).Commit(1, 41);
        Forgetful(script);
        Assert.Equal(
            "a committed entry never changes",
            Assert.Throws<BrokenRuleException>(() => Forgetful(script.Append(2, 40, term: 2))).Rule);

        static void Forgetful(TraceScript script) =>
            new TraceChecker(voters: 3, keptEntries: 4).Check(TraceMerge.Merge(
                [
                    .. script.Lines.Select(static node =>
                        new TraceReader(new StringReader(string.Join('\n', node.Value)), $"node{node.Key}").Read()),
                ]));
    }

    [Theory]
    [InlineData(0, """{"t":2000,"node":1,"ru""")]
    [InlineData(2, """{"t":2000,"node":1,"ru""", """{"t":2001,"node":1,"run":"r1","event":"commit","group":1,"index":2,"term":1}""")]
    [InlineData(2, """{"t":2000,"node":1,"run":"r1","event":"rejoice","group":1}""")]
    [InlineData(2, """{"t":2000,"node":1,"run":"r1","event":"commit","group":1,"index":2}""")]
    [InlineData(2, """{"t":2000,"node":1,"run":"r1","event":"commit","group":1,"index":"2","term":1}""")]
    [InlineData(2, """{"t":2000,"node":1,"run":"r2","event":"commit","group":1,"index":2,"term":1}""")]
    [InlineData(2, """{"t":1,"node":1,"run":"r1","event":"commit","group":1,"index":2,"term":1}""")]
    [InlineData(2, """{"t":2000,"node":1,"run":"r1","event":"commit","group":2,"index":2,"term":1}""")]
    [InlineData(2, """{"t":2000,"node":1,"run":"r1","event":"persisted","group":1,"batch":2,"index":5,"indexTerm":1,"term":1,"vote":1}""")]
    [InlineData(2, "[1]")]
    [InlineData(2, "", """{"t":2001,"node":1,"run":"r1","event":"commit","group":1,"index":2,"term":1}""")]
    public void Only_the_last_line_of_a_run_may_be_torn(int expected, params string[] lines)
    {
        TraceScript script = WithOneEntry();
        foreach (string line in lines)
        {
            script.Raw(1, line);
        }

        (int code, string output, string error) = Run(script);
        Assert.Equal(expected, code);
        Assert.Equal(expected == 0, output.Contains(" 1 torn lines", StringComparison.Ordinal));
        Assert.Equal(expected != 0, error.StartsWith("check-traces: " + PathOf(1) + ":", StringComparison.Ordinal));
    }

    [Fact]
    public void What_proves_nothing_is_2()
    {
        Refused(
            "the traces prove nothing: no node became leader, or nothing was committed",
            new TraceScript().Start(1).Start(2).Start(3));
        Refused("the traces prove nothing: no node became leader, or nothing was committed", Elected());
        Refused(
            "the cluster has 3 voters, and there are traces of 2 nodes; the traces of all of them are needed",
            WithOneEntry(),
            1,
            2);
        Refused($"{PathOf(3)} holds no event", new TraceScript().Start(1).Start(2));
        Refused($"{PathOf(3)}:1: comes before any start of a node; the trace's beginning is missing", new TraceScript().Start(1).Start(2).Raw(3, """{"t":1,"node":3,"run":"r1","event":"commit","group":1,"index":1,"term":1}"""));
    }

    [Fact]
    public void The_script_says_the_same()
    {
        Assert.Equal(0, Script(WithOneEntry()).ExitCode);
        (int code, string output, _) = Script(Elected().Lead(2, 1));
        Assert.Equal(1, code);
        Assert.StartsWith("broken: one leader per term\n", output, StringComparison.Ordinal);
        (code, _, string error) = Script(Elected());
        Assert.Equal(2, code);
        Assert.StartsWith("check-traces: the traces prove nothing", error, StringComparison.Ordinal);
    }

    private void Clean(TraceScript script)
    {
        (int code, string output, string error) = Run(script);
        Assert.True(code == 0, output + error);
    }

    /// <summary>
    /// The rule, what is said of it, and the number of lines that show it; the last is the last that was written.
    /// </summary>
    private void Broken(string rule, string words, TraceScript script, int? lines = null)
    {
        (int code, string output, string error) = Run(script);
        Assert.True(code == 1, output + error);
        string[] said = output.TrimEnd('\n').Split('\n');
        Assert.Equal("broken: " + rule, said[0]);
        Assert.StartsWith("group 1: ", said[1], StringComparison.Ordinal);
        Assert.Contains(words, said[1], StringComparison.Ordinal);
        Assert.Equal(lines ?? said.Length - 2, said.Length - 2);
        Assert.All(said[2..], line => Assert.Matches(@"^.*node\d\.jsonl:\d+: \{""t"":", line));
    }

    private void Refused(string expected, TraceScript script, params int[] nodes)
    {
        (int code, _, string error) = Run(script, nodes);
        Assert.Equal((2, $"check-traces: {expected}\n"), (code, error));
    }

    private (int Code, string Output, string Error) Run(TraceScript script, params int[] nodes)
    {
        string[] files = Files(script);
        using StringWriter output = new();
        using StringWriter error = new();
        return (
            CheckTracesCommand.Run(nodes.Length == 0 ? files : [.. nodes.Select(PathOf)], output, error),
            output.ToString(),
            error.ToString());
    }

    private (int ExitCode, string Output, string Error) Script(TraceScript script)
    {
        ProcessStartInfo start = new(Repository.FullPath("scripts/check-traces.sh"), Files(script))
        {
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        };
        start.Environment["KAHUNA_TESTS_DLL"] = typeof(CheckTracesTests).Assembly.Location;
        using Process process = Process.Start(start)!;
        Task<string> error = process.StandardError.ReadToEndAsync();
        string output = process.StandardOutput.ReadToEnd();
        process.WaitForExit();
        return (process.ExitCode, output, error.Result);
    }

    private string[] Files(TraceScript script)
    {
        foreach ((int node, List<string> lines) in script.Lines)
        {
            File.WriteAllText(PathOf(node), string.Concat(lines.Select(static line => line + "\n")));
        }

        return [.. script.Lines.Keys.Select(PathOf)];
    }

    private string PathOf(int node) => Path.Combine(_directory.Path, $"node{node}.jsonl");
}
