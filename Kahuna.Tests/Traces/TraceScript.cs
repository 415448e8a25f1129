using System.Globalization;

namespace Kahuna.Tests.Traces;

/// <summary>Writes traces of a cluster of three nodes by hand, one event after the other. Owned by one test.</summary>
internal sealed class TraceScript
{
    public const string SomeHash = "00000000000000aa";
    public const string OtherHash = "00000000000000bb";

    private readonly SortedDictionary<int, List<string>> _lines = new() { [1] = [], [2] = [], [3] = [] };
    private readonly Dictionary<int, string> _runs = [];
    private readonly Dictionary<int, int> _batches = [];
    private long _t = 1000;

    public IReadOnlyDictionary<int, List<string>> Lines => _lines;

    /// <summary>Three nodes on empty directories; node 1 is elected in term 1 with the vote of node 2.</summary>
    public static TraceScript Elected()
    {
        TraceScript script = new();
        script.Start(1).Start(2).Start(3);
        return script.Elect(1, term: 1, voter: 2);
    }

    /// <summary>And entry 1 of term 1 is on nodes 1 and 2, committed, acknowledged and applied by both.</summary>
    public static TraceScript WithOneEntry() =>
        Elected().Stored(1, 1).Stored(2, 1).Commit(1, 1).Acknowledge(1, 1).Apply(1, 1).Commit(2, 1).Apply(2, 1);

    public TraceScript Start(
        int node, string run = "r1", string directory = "d1", int last = 0, int term = 0, int vote = 0, int commit = 0)
    {
        _runs[node] = run;
        _batches[node] = 0;
        Add(node, "start", $"\"voters\":3,\"groups\":1,\"directory\":\"{directory}\"", group: false);
        Add(
            node,
            "recover",
            $"\"start\":0,\"startTerm\":0,\"last\":{last},\"terms\":[{(last > 0 ? "[1,1]" : string.Empty)}],"
                + $"\"term\":{term},\"vote\":{vote},\"commit\":{commit}");
        return Add(node, "state", $"\"index\":{commit},\"term\":{(commit > 0 ? 1 : 0)},\"digest\":\"{commit:x16}\"");
    }

    public TraceScript Replay(int node, int first, string hash = SomeHash) =>
        Add(node, "replay", $"\"first\":{first},\"entries\":[[1,\"{hash}\"]]");

    public TraceScript Elect(int node, int term, int voter) => Promise(node, term, node)
        .Vote(node, term, node)
        .Promise(voter, term, node)
        .Vote(voter, term, node)
        .Lead(node, term);

    /// <summary>
    /// The hard state is on the disk of the node, whose log is as the tests have it: entry 1 or none.
    /// </summary>
    public TraceScript Promise(int node, int term, int vote, int last = 0) =>
        Persisted(node, ++_batches[node], last, last, term, vote);

    public TraceScript Persisted(int node, int batch, int index, int indexTerm, int term, int vote) =>
        Add(
            node,
            "persisted",
            $"\"batch\":{batch},\"index\":{index},\"indexTerm\":{indexTerm},\"term\":{term},\"vote\":{vote}");

    public TraceScript Vote(int node, int term, int candidate) =>
        Add(node, "vote", $"\"term\":{term},\"candidate\":{candidate}");

    public TraceScript Lead(int node, int term) =>
        Add(node, "becomeLeader", $"\"term\":{term},\"last\":1,\"commit\":0");

    public TraceScript Append(int node, int first, int term = 1, string hash = SomeHash) =>
        Add(node, "append", $"\"batch\":{++_batches[node]},\"first\":{first},\"entries\":[[{term},\"{hash}\"]]");

    /// <summary>Entry 1 or a later one, of term 1, is on the node's disk; its vote of term 1 is for node 1.</summary>
    public TraceScript Stored(int node, int index) =>
        Append(node, index).Persisted(node, _batches[node], index, 1, 1, node == 3 ? 0 : 1);

    public TraceScript Commit(int node, int index, int term = 1) =>
        Add(node, "commit", $"\"index\":{index},\"term\":{term}");

    public TraceScript Acknowledge(int node, int index, int term = 1) =>
        Add(node, "acknowledged", $"\"index\":{index},\"term\":{term},\"writes\":2");

    public TraceScript Apply(int node, int first, string? digest = null) =>
        Add(
            node,
            "apply",
            $"\"first\":{first},\"digests\":[\"{digest ?? first.ToString("x16", CultureInfo.InvariantCulture)}\"]");

    public TraceScript Add(int node, string name, string fields, bool group = true)
    {
        string line = $$"""{"t":{{_t++}},"node":{{node}},"run":"{{_runs[node]}}","event":"{{name}}",{{(group ? "\"group\":1," : string.Empty)}}{{fields}}}""";
        _lines[node].Add(line);
        return this;
    }

    /// <summary>A line as it stands.</summary>
    public TraceScript Raw(int node, string line)
    {
        _lines[node].Add(line);
        return this;
    }
}
