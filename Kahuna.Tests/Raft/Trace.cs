using System.Globalization;
using System.Text;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Tests.Raft;

/// <summary>
/// A cluster driven by lines of text; it writes every message, write and change of state as text, and checks
/// <see cref="ClusterRules"/> after every line. Owned by one test.
/// <code>
/// # text                        a remark, copied to the output
/// node 3 term 2 vote 1 cut 1 log 1 2  (before anything else) durable term, vote and the terms of the log, whose first
///                               entries are cut
/// tick 1 10 · campaign 1 · propose 1 text · read 1 · transfer 1 2 · unreachable 1 2
/// persist 1                     all waiting writes of a node, in order;  "persist all"
/// deliver 1->2                  what waits on a link now;  * stands for all nodes
/// drop 1->2 · dup 1->2 · reverse 1->2      the same for what is lost, doubled, turned around
/// settle                        deliver and persist everything until nothing is left
/// cut 1 · heal 1                all links of a node lose everything · carry again
/// trim 1 5                      the log is cut up to 5
/// install 1->3 · install 1->3 5 the state of 1, as of 5, is installed on 3;  ended 1->3 5 · ended 1->3 fails
/// wipe 1 · rejoin 1 · unproven 1 (its next start) · allow 1 · forget 1 3
/// crash 1 · restart 1 · fetch 1 (storage answers) · state (prints all nodes) · quiet · loud
/// </code>
/// </summary>
internal sealed class Trace
{
    private readonly StringBuilder _output = new();
    private readonly Dictionary<int, RaftNode> _nodes = [];
    private readonly List<Packet> _network = [];
    private readonly HashSet<int> _cut = [];
    private readonly Dictionary<int, string> _shown = [];
    private readonly ClusterRules _rules;
    private bool _quiet;

    public Trace(TraceOptions options)
    {
        NodeId[] ids = [.. Enumerable.Range(1, options.Voters + options.Learners).Select(i => new NodeId((ushort)i))];
        foreach (NodeId id in ids)
        {
            _nodes.Add(id.Value, new RaftNode(new RaftConfig
            {
                Self = id,
                Group = new GroupId(1),
                Voters = ids[..options.Voters],
                Learners = ids[options.Voters..],
                Limits = new RaftLimits
                {
                    AppendBytesMax = options.AppendBytesMax,
                    CacheBytes = options.CacheBytes,
                    CacheBytesMax = options.CacheBytesMax,
                },
                Seed = id.Value,
            }));
        }

        _rules = new ClusterRules([.. _nodes.Values], options.Voters);
        foreach (RaftNode node in _nodes.Values)
        {
            _rules.Watch(node);
            Action<ReadState> confirmed = node.OnRead;
            node.OnRead = read =>
            {
                confirmed(read);
                Reads.Add((node.Id.Value, read.Ticket, read.Index.Value));
            };
            node.Send = packet => Sent(node, packet);
            node.OnSnapshotWanted = follower => SnapshotsWanted.Add((node.Id.Value, follower.Value));
            node.Trace = text => Write("  " + text);
            _shown.Add(node.Id.Value, StateOf(node));
        }
    }

    public string Output => _output.ToString();

    public ClusterRules Rules => _rules;

    /// <summary>Confirmed reads: node, ticket, index.</summary>
    public List<(int Node, ulong Ticket, ulong Index)> Reads { get; } = [];

    /// <summary>Reported followers that need a snapshot: leader, follower.</summary>
    public List<(int Leader, int Follower)> SnapshotsWanted { get; } = [];

    /// <summary>Every message that left a node, in order.</summary>
    public List<RaftMessage> Messages { get; } = [];

    public RaftCore this[int node] => _nodes[node].Core;

    /// <summary>The hard states that were handed out to be saved, in order.</summary>
    public IReadOnlyList<HardState> SavedBy(int node) => _nodes[node].Saved;

    public string LogOf(int node) => string.Join(' ', _nodes[node].Log.Items.Select(item => item.Term));

    public string TextOf(int node) =>
        string.Join(' ', _nodes[node].Log.Items.Where(item => item.Text.Length > 0).Select(item => item.Text));

    /// <summary>The applied entries, from the log or from a snapshot.</summary>
    public string StateTextOf(int node) =>
        string.Join(' ', _nodes[node].Applied.Where(item => item.Text.Length > 0).Select(item => item.Text));

    public Trace Run(string script)
    {
        foreach (string raw in script.Split('\n'))
        {
            string line = raw.Trim();
            if (line.Length > 0)
            {
                RunLine(line);
            }
        }

        return this;
    }

    private void RunLine(string line)
    {
        Write(line.StartsWith('#') ? line : "> " + line);
        if (line.StartsWith('#'))
        {
            return;
        }

        string[] words = line.Split(' ', StringSplitOptions.RemoveEmptyEntries);
        Execute(words);
        foreach (RaftNode node in _nodes.Values)
        {
            Settle(node);
        }

        if (words[0] != "node")
        {
            // Disks with a past make sense together only.
            _rules.Check();
        }
    }

    private void Execute(string[] words)
    {
        switch (words[0])
        {
            case "quiet" or "loud":
                _quiet = words[0] == "quiet";
                break;
            case "node":
                Preset(words);
                break;
            case "state":
                foreach (RaftNode node in _nodes.Values)
                {
                    Write($"  {node.Id} {StateOf(node)} log {LogOf(node.Id.Value)}".TrimEnd());
                }

                break;
            case "settle":
                DeliverUntilQuiet();
                break;
            case "deliver" or "drop" or "dup" or "reverse":
                Network(words[0], words[1]);
                break;
            case "install" or "ended":
                Snapshot(words);
                break;
            case "persist" when words[1] == "all":
                foreach (RaftNode node in _nodes.Values)
                {
                    Persist(node);
                }

                break;
            default:
                OnNode(words, _nodes[Number(words[1])]);
                break;
        }
    }

    private void OnNode(string[] words, RaftNode node)
    {
        switch (words[0])
        {
            case "tick":
                for (int i = Number(words[2]); i > 0; i--)
                {
                    node.Core.Tick();
                    Settle(node);
                }

                break;
            case "campaign":
                node.Core.Campaign();
                break;
            case "propose":
                foreach (string text in words[2..])
                {
                    Write(
                        node.Propose(text) ? $"  accepted {text} at {node.Core.LastIndex}" : $"  not accepted {text}");
                }

                break;
            case "read":
                bool isLeader = node.Core.TryRead(out ulong ticket);
                Write(isLeader ? $"  ticket {ticket}" : "  not accepted");
                _rules.ReadRegistered(node, isLeader ? ticket : ulong.MaxValue);
                break;
            case "transfer":
                Write(node.Core.TryTransfer(new NodeId((ushort)Number(words[2]))) ? "  begun" : "  not accepted");
                break;
            case "unreachable":
                node.Core.ReportUnreachable(new NodeId((ushort)Number(words[2])));
                break;
            case "persist":
                Persist(node);
                break;
            case "fetch":
                node.AnswerFetch(fails: words.Length > 2);
                break;
            case "cut":
                _cut.Add(node.Id.Value);
                break;
            case "heal":
                _cut.Remove(node.Id.Value);
                break;
            case "crash":
                _rules.ReadsForgotten(node);
                node.Crash();
                break;
            case "restart" or "rejoin":
                node.Restart(default);
                break;
            default:
                OnLogOrVote(words, node);
                break;
        }
    }

    private void OnLogOrVote(string[] words, RaftNode node)
    {
        switch (words[0])
        {
            case "trim":
                Write(node.Trim((ulong)Number(words[2])) ? $"  cut through {node.Core.LogStart}" : "  nothing to cut");
                break;
            case "wipe":
                node.Wipe();
                break;
            case "unproven":
                node.Voting = VotingRight.Unproven;
                node.Restart(default);
                break;
            case "allow":
                node.Voting = VotingRight.Full;
                node.Core.AllowVoting();
                break;
            case "forget":
                node.Core.ForgetFollower(new NodeId((ushort)Number(words[2])));
                break;
            default:
                throw new ArgumentException($"unknown line: {string.Join(' ', words)}");
        }
    }

    private void Snapshot(string[] words)
    {
        string[] ends = words[1].Split("->");
        RaftNode leader = _nodes[Number(ends[0])];
        RaftNode follower = _nodes[Number(ends[1])];
        bool fails = words[^1] == "fails";
        int index = words.Length > 2 && !fails ? Number(words[2]) : leader.Applied.Count;
        if (words[0] == "ended")
        {
            leader.Core.SnapshotEnded(follower.Id, new LogIndex((ulong)index), !fails);
            return;
        }

        StateCopy state = leader.CopyState((ulong)index);
        Write(
            follower.Install(state)
                ? $"  {follower.Id} installs {state.Index}/{state.Term}"
                : $"  {follower.Id} does not take {state.Index}/{state.Term}");
    }

    private void Preset(string[] words)
    {
        int term = Number(words[Array.IndexOf(words, "term") + 1]);
        int vote = words.Contains("vote") ? Number(words[Array.IndexOf(words, "vote") + 1]) : 0;
        var log = new List<LogItem>();
        foreach (string word in words[(Array.IndexOf(words, "log") + 1)..])
        {
            log.Add(new LogItem(new Term((ulong)Number(word)), EntryKind.Commands, $"{log.Count + 1}.{word}"));
        }

        RaftNode node = _nodes[Number(words[1])];
        int cut = words.Contains("cut") ? Number(words[Array.IndexOf(words, "cut") + 1]) : 0;
        node.Preset(new HardState(new Term((ulong)term), new NodeId((ushort)vote), default), log, cut);
    }

    private void Network(string verb, string link)
    {
        string[] ends = link.Split("->");
        List<Packet> chosen = [.. _network.Where(packet =>
            (ends[0] == "*" || packet.Message.From.Value == Number(ends[0]))
                && (ends[1] == "*" || packet.Message.To.Value == Number(ends[1])))];
        foreach (Packet packet in verb == "dup" ? [] : chosen)
        {
            _network.Remove(packet);
        }

        switch (verb)
        {
            case "deliver":
                chosen.ForEach(Deliver);
                break;
            case "dup":
                _network.AddRange(chosen);
                break;
            case "reverse":
                chosen.Reverse();
                _network.AddRange(chosen);
                break;
            default:
                break;
        }
    }

    private void DeliverUntilQuiet()
    {
        while (_network.Count > 0 || _nodes.Values.Any(node => node.IsUp && node.PendingWrites > 0))
        {
            Packet[] packets = [.. _network];
            _network.Clear();
            foreach (Packet packet in packets)
            {
                Deliver(packet);
            }

            foreach (RaftNode node in _nodes.Values)
            {
                Persist(node);
            }
        }
    }

    private void Deliver(Packet packet)
    {
        RaftNode target = _nodes[packet.Message.To.Value];
        if (!target.IsUp || _cut.Contains(packet.Message.From.Value) || _cut.Contains(packet.Message.To.Value))
        {
            return;
        }

        if (!target.Receive(packet, _nodes[packet.Message.From.Value].Life))
        {
            Write($"  dropped {MessageText.Of(packet.Message)}: its sender has another life");
        }

        Settle(target);
    }

    private void Persist(RaftNode node)
    {
        while (node.IsUp && node.PendingWrites > 0)
        {
            node.Persist();
            Settle(node);
        }
    }

    /// <summary>The node carries out its Ready and shows what changed.</summary>
    private void Settle(RaftNode node)
    {
        node.Drain();
        string state = StateOf(node);
        if (_shown[node.Id.Value] != state)
        {
            _shown[node.Id.Value] = state;
            Write($"  {node.Id} is {state}");
        }
    }

    private void Sent(RaftNode node, Packet packet)
    {
        _rules.Left(node, packet.Message);
        Messages.Add(packet.Message);
        if (!_cut.Contains(node.Id.Value))
        {
            packet.ReceiverStarts = _nodes[packet.Message.To.Value].Starts;
            _network.Add(packet);
        }
    }

    private void Write(string line)
    {
        if (!_quiet || !line.StartsWith(' '))
        {
            _output.Append(line).Append('\n');
        }
    }

    private static int Number(string word) => int.Parse(word, CultureInfo.InvariantCulture);

    private static string StateOf(RaftNode node) => node.IsUp
        ? $"{node.Core.Role}{(node.Core.IsVoting ? "" : node.Core.CanRejoin ? " (can rejoin)" : " (no vote)")} term "
            + $"{node.Core.Term} leader {node.Core.Leader} last {node.Core.LastIndex} durable "
            + $"{node.Core.DurableIndex} commit "
            + $"{node.Core.CommitIndex}{(node.Core.LogStart.Value > 0 ? $" start {node.Core.LogStart}" : "")}"
        : "down";
}
