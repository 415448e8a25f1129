using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State.Meta;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Simulation.Rules;

/// <summary>
/// The promises of one ephemeral group, over all nodes, lives and epochs. What a node has is in its memory, so that it
/// is looked at there, and what it has acknowledged is remembered here when the node has forgotten it. Owned by one
/// run.
/// </summary>
internal sealed class VolatileRules(
    int slot, SimConfig config, IReadOnlyList<SimNode> nodes, Action<string, string> breaks)
{
    private const ulong Unknown = 0;

    private readonly List<Epoch> _epochs = [];
    private readonly Dictionary<(int Node, ulong Term), int> _votes = [];
    private readonly Dictionary<(int Node, ulong Epoch), ulong> _released = [];
    private readonly Seen[] _seen = [.. Enumerable.Range(0, nodes.Count + 1).Select(_ => new Seen())];

    public int LeaderChanges => _epochs.Sum(static epoch => epoch.Leaders.Count);

    /// <summary>Epochs that were closed.</summary>
    public int Closed => Math.Max(0, _epochs.Count - 1);

    /// <summary>Nodes that voted after they had forgotten what they acknowledged, and were restored.</summary>
    public int Restored { get; private set; }

    /// <summary>Entries committed in the newest epoch.</summary>
    public ulong Committed => _epochs.Count == 0 ? 0 : (ulong)_epochs[^1].Committed.Count;

    public ulong Newest => (ulong)_epochs.Count;

    /// <summary>When the first node was in an epoch; the end of time when none was yet.</summary>
    public long OpenedNs(ulong epoch) =>
        epoch == 0 || epoch > Newest ? long.MaxValue : _epochs[(int)epoch - 1].OpenedNs;

    public void Ended(SimNode node) => _seen[node.Id] = new Seen();

    /// <summary>A node has lost its disk: it may vote again in a term that it voted in.</summary>
    public void Wiped(SimNode node)
    {
        foreach ((int Node, ulong Term) key in _votes.Keys.Where(key => key.Node == node.Id).ToArray())
        {
            _votes.Remove(key);
        }
    }

    /// <summary>A message leaves a node.</summary>
    public void Left(SimNode node, in RaftMessage message, in MessageStamp stamp, Group partition)
    {
        RaftCore core = partition.Core;
        HardState stored = node.Witness.Durable(slot).HardState;
        bool votes = message.Kind == RaftMessageKind.VoteReply && !message.Reject;
        bool acknowledges = message.Kind == RaftMessageKind.AppendReply && !message.Reject && !message.Uncounted;
        if (message.Kind == RaftMessageKind.Forward || !(votes || acknowledges || message.Kind == RaftMessageKind.Vote))
        {
            return;
        }

        ulong term = message.Term.Value;
        Require(
            stored.Term.Value >= term,
            "a term is durable before it is used",
            $"node {node.Id} sends {message.Kind} of term {term}, and its disk says {stored.Term}");
        Require(
            EpochMembership.JoinedIn(stored) >= stamp.Epoch,
            "an epoch is joined durably before the first promise in it",
            $"node {node.Id} sends {message.Kind} in epoch {stamp.Epoch}, and its disk says "
                + $"{EpochMembership.JoinedIn(stored)}");
        Require(
            stamp.Epoch == partition.Stamp.Epoch,
            "nobody promises in an epoch that it knows to be closed",
            $"node {node.Id} sends {message.Kind} in epoch {stamp.Epoch}, and is in {partition.Stamp.Epoch}");
        ulong number = stamp.Epoch.Value;
        (ulong Epoch, ulong Number) pledged = _seen[node.Id].Pledged;
        Require(
            pledged.Epoch != number || pledged.Number <= _released.GetValueOrDefault((node.Id, number)),
            "who has pledged keeps out",
            $"node {node.Id} sends {message.Kind} in epoch {stamp.Epoch}, and has said pledge {pledged.Number}");
        Require(
            core.IsVoting || (acknowledges && node.IsRejoining),
            acknowledges ? "who lost its log acknowledges nothing that counts" : "who lost its promises does not vote",
            $"node {node.Id} sends {message.Kind} in term {term}");
        Epoch epoch = EpochOf(number, node);
        if (acknowledges)
        {
            Remember(epoch.AcknowledgedBy(node.Id), message.Index.Value, core, epoch);
        }
        else
        {
            int candidate = votes ? message.To.Value : node.Id;
            Require(
                _votes.TryAdd((node.Id, term), candidate) || _votes[(node.Id, term)] == candidate,
                "one vote per node and term",
                $"node {node.Id} votes for {candidate} in term {term}, and did for {_votes[(node.Id, term)]}");
            CheckMemory(node, epoch, core);
        }
    }

    /// <summary>
    /// Entries leave a leader: each command that is for one epoch is in the log of that one, since in another it would
    /// be carried out twice.
    /// </summary>
    public void Carries(SimNode node, in MessageStamp stamp, ReadOnlySpan<byte> entries)
    {
        while (EntryCodec.TryRead(ref entries, out _, out EntryKind kind, out ReadOnlySpan<byte> payload))
        {
            if (kind != EntryKind.Commands
                || !CommandEntry.TryReadHeader(payload, out _, out _, out ReadOnlySpan<byte> items))
            {
                continue;
            }

            while (CommandEntry.TryReadItem(ref items, out ReadOnlySpan<byte> command))
            {
                ushort wanted = Command.EpochOf(command);
                Require(
                    wanted == 0 || wanted == stamp.Epoch.Short,
                    "a command is carried out in its epoch only",
                    $"node {node.Id} has a command for epoch {wanted} in the log of epoch {stamp.Epoch}");
            }
        }
    }

    /// <summary>A node asks the meta group for something, or gives it to its log.</summary>
    public void Said(SimNode node, MetaCommand command)
    {
        if (command.Kind == CommandKind.Pledge
            && command.Node.Value == node.Id
            && command.Incarnation == node.Loops?.Group(slot).Stamp.Incarnation)
        {
            _seen[node.Id].Pledged = (command.Epoch.Value, command.Number);
        }
        else if (command.Kind == CommandKind.ReleasePledge)
        {
            (int, ulong) key = (command.Node.Value, command.Epoch.Value);
            _released[key] = Math.Max(command.Number, _released.GetValueOrDefault(key));
        }
    }

    /// <summary>After code of a node has run.</summary>
    public void Look(SimNode node, Group partition)
    {
        ulong number = partition.Stamp.Epoch.Value;
        if (number == 0)
        {
            return;
        }

        Seen seen = _seen[node.Id];
        RaftCore core = partition.Core;
        Epoch epoch = EpochOf(number, node);
        if (seen.Epoch != number)
        {
            Require(
                number > seen.Epoch,
                "an epoch never goes back",
                $"node {node.Id} is in epoch {number} after {seen.Epoch}");
            seen.Begin(number);
        }

        if (core.Term.Value != seen.Term || core.Role != seen.Role)
        {
            Require(
                core.Term.Value >= seen.Term,
                "a term never goes back",
                $"node {node.Id} is in term {core.Term} after {seen.Term}");
            seen.Term = core.Term.Value;
            seen.Role = core.Role;
            if (core.Role == RaftRole.Leader)
            {
                CheckLeader(node, epoch, core);
            }
        }

        if (core.CommitIndex.Value != seen.Commit)
        {
            Require(
                core.CommitIndex.Value > seen.Commit,
                "a commit index never goes back",
                $"node {node.Id} says {core.CommitIndex} after {seen.Commit} in epoch {number}");
            CheckCommit(node, epoch, core, seen.Commit);
            seen.Commit = core.CommitIndex.Value;
        }

        if (partition.Applied.Value != seen.Applied)
        {
            Require(
                partition.Applied.Value > seen.Applied,
                "entries are applied once and in order",
                $"node {node.Id} has applied {partition.Applied} after {seen.Applied}");
            seen.Applied = partition.Applied.Value;
            ulong digest = partition.State.Digest;
            Require(
                epoch.Digests.TryAdd(seen.Applied, digest) || epoch.Digests[seen.Applied] == digest,
                "equal states after equal entries",
                $"node {node.Id} differs after entry {seen.Applied} of epoch {number}");
        }
    }

    private Epoch EpochOf(ulong number, SimNode node)
    {
        while (Newest < number)
        {
            CheckClosing();
            _epochs.Add(new Epoch(node.Scheduler.NowNs, nodes.Count));
        }

        return _epochs[(int)number - 1];
    }

    /// <summary>Whoever takes part in an epoch that is over is one of a minority.</summary>
    private void CheckClosing()
    {
        if (Newest == 0)
        {
            return;
        }

        int left = nodes.Count(node =>
            node.Loops?.Group(slot) is { } partition
                && partition.Stamp.Epoch.Value == Newest
                && partition.MayPromise(partition.Stamp));
        Require(
            left <= config.Nodes - (config.Nodes / 2) - 1,
            "an epoch is closed only when a majority keeps out of it",
            $"epoch {Newest} is closed while {left} of {config.Nodes} nodes take part in it");
    }

    private void CheckLeader(SimNode node, Epoch epoch, RaftCore core)
    {
        ulong term = core.Term.Value;
        bool isNew = epoch.Leaders.TryAdd(term, node.Id);
        if (isNew)
        {
            node.Scheduler.Note(SimEvent.Leader, node.Id, slot, (long)term, "ephemeral ");
        }

        Require(
            isNew || epoch.Leaders[term] == node.Id,
            "one leader per term",
            $"nodes {epoch.Leaders[term]} and {node.Id} lead in term {term}");
        ulong committed = (ulong)epoch.Committed.Count;
        if (committed > 0 && epoch.Committed[^1] <= term)
        {
            Require(
                Holds(core, committed, epoch.Committed[^1]),
                "a leader has everything committed",
                $"node {node.Id} leads in term {term} with {core.LastIndex} entries; committed are {committed}, the "
                    + $"last in term {epoch.Committed[^1]}");
        }
    }

    private void CheckCommit(SimNode node, Epoch epoch, RaftCore core, ulong before)
    {
        ulong commit = core.CommitIndex.Value;
        if (core.Role == RaftRole.Leader && commit > (ulong)epoch.Committed.Count)
        {
            Require(
                core.TermOf(new LogIndex(commit)) == core.Term,
                "a leader counts only entries of its own term",
                $"node {node.Id} of term {core.Term} commits entry {commit}");
        }

        for (ulong index = Math.Max(before + 1, core.LogStart.Value); index <= commit; index++)
        {
            ulong term = core.TermOf(new LogIndex(index)).Value;
            while ((ulong)epoch.Committed.Count < index)
            {
                // What was committed and let go within a turn lies between two that are known.
                epoch.Committed.Add(
                    (ulong)epoch.Committed.Count + 1 == index
                        || (epoch.Committed.Count > 0 && epoch.Committed[^1] == term)
                        ? term
                        : Unknown);
            }

            if (index > 0 && epoch.Committed[(int)index - 1] == Unknown)
            {
                epoch.Committed[(int)index - 1] = term;
            }

            Require(
                index == 0 || epoch.Committed[(int)index - 1] == term,
                "a committed entry never changes",
                $"node {node.Id} has committed entry {index} with term {term}; committed was one with term "
                    + $"{(index == 0 ? 0 : epoch.Committed[(int)index - 1])}");
        }
    }

    /// <summary>
    /// A node that votes has everything committed that it ever acknowledged in this epoch, in this life or an earlier
    /// one.
    /// </summary>
    private void CheckMemory(SimNode node, Epoch epoch, RaftCore core)
    {
        Seen seen = _seen[node.Id];
        if (seen.IsChecked)
        {
            return;
        }

        seen.IsChecked = true;
        List<ulong> acknowledged = epoch.AcknowledgedBy(node.Id);
        Restored += acknowledged.Count > 0 ? 1 : 0;
        for (int i = Math.Min(acknowledged.Count, epoch.Committed.Count) - 1; i >= 0; i--)
        {
            if (acknowledged[i] == epoch.Committed[i])
            {
                Require(
                    Holds(core, (ulong)i + 1, acknowledged[i]),
                    "who votes has what it acknowledged",
                    $"node {node.Id} votes in term {core.Term} with {core.LastIndex} entries; entry {i + 1} of term "
                        + $"{acknowledged[i]} was acknowledged by it and is committed");
                return;
            }
        }
    }

    private static bool Holds(RaftCore core, ulong index, ulong term) =>
        index < core.LogStart.Value
            || (index <= core.LastIndex.Value && core.TermOf(new LogIndex(index)).Value == term);

    /// <summary>
    /// The terms of the entries that a node has, up to the acknowledged one; below the start of its log everything is
    /// committed.
    /// </summary>
    private static void Remember(List<ulong> acknowledged, ulong through, RaftCore core, Epoch epoch)
    {
        ulong index = Math.Min(through, (ulong)acknowledged.Count);
        for (;
            index > core.LogStart.Value && acknowledged[(int)index - 1] != core.TermOf(new LogIndex(index)).Value;
            index--)
        {
            acknowledged[(int)index - 1] = core.TermOf(new LogIndex(index)).Value;
        }

        for (index = (ulong)acknowledged.Count + 1; index <= through; index++)
        {
            acknowledged.Add(
                index < core.LogStart.Value ? epoch.Committed[(int)index - 1] : core.TermOf(new LogIndex(index)).Value);
        }
    }

    private void Require(bool holds, string rule, string words)
    {
        if (!holds)
        {
            breaks(rule, $"ephemeral group {slot - config.Groups + 1}: {words}");
        }
    }

    private sealed class Epoch(long openedNs, int nodes)
    {
        private readonly List<ulong>[] _acknowledged =
            [.. Enumerable.Range(0, nodes + 1).Select(static _ => new List<ulong>())];

        public long OpenedNs => openedNs;

        public Dictionary<ulong, int> Leaders { get; } = [];

        /// <summary>The terms of the committed entries.</summary>
        public List<ulong> Committed { get; } = [];

        public Dictionary<ulong, ulong> Digests { get; } = [];

        /// <summary>The terms of the entries that a node has acknowledged, over all its lives.</summary>
        public List<ulong> AcknowledgedBy(int node) => _acknowledged[node];
    }

    /// <summary>What was seen of one life of a node.</summary>
    private sealed class Seen
    {
        public ulong Epoch { get; private set; }

        public ulong Term { get; set; }

        public RaftRole Role { get; set; }

        public ulong Commit { get; set; }

        public ulong Applied { get; set; }

        public bool IsChecked { get; set; }

        /// <summary>The newest pledge that was said.</summary>
        public (ulong Epoch, ulong Number) Pledged { get; set; }

        public void Begin(ulong epoch)
        {
            Epoch = epoch;
            Commit = 0;
            Applied = 0;
            IsChecked = false;
        }
    }
}
