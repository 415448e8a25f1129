using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Nodes;

namespace Kahuna.Tests.Simulation.Rules;

/// <summary>
/// The promises of Raft for one group, over all nodes and all their lives. Looks only at what has changed since the
/// last look. Owned by one run.
/// </summary>
internal sealed class GroupRules(
    int group, SimConfig config, IReadOnlyList<SimNode> nodes, Action<string, string> breaks)
{
    private readonly Dictionary<ulong, int> _leaders = [];
    private readonly List<EntryId> _committed = [];
    private readonly Dictionary<(ulong Index, ulong Term), (ulong PreviousTerm, ulong Hash)> _entries = [];
    private readonly Dictionary<ulong, (ulong Digest, int Node)> _digests = [];
    private readonly Dictionary<(int Node, ulong Term), (int Candidate, int Directory)> _votes = [];
    private readonly Seen[] _seen = [.. Enumerable.Range(0, nodes.Count + 1).Select(_ => new Seen())];

    public int LeaderChanges => _leaders.Count;

    public ulong Committed => (ulong)_committed.Count;

    /// <summary>A node's process has ended: its next one may be behind in what need not be durable.</summary>
    public void Ended(SimNode node) =>
        _seen[node.Id] = new Seen { Term = _seen[node.Id].DurableTerm, DurableTerm = _seen[node.Id].DurableTerm };

    /// <summary>A node has lost its disk.</summary>
    public void Wiped(SimNode node) => _seen[node.Id] = new Seen();

    /// <summary>A node hands entries to its log.</summary>
    public void Appended(SimNode node, ulong first, IReadOnlyList<EntryId> entries)
    {
        GroupImage memory = node.Witness.Memory(group);
        for (int i = 0; i < entries.Count; i++)
        {
            ulong index = first + (ulong)i;
            ulong previous = i > 0
                ? entries[i - 1].Term
                : index - 1 > memory.Start && index - 1 <= memory.Last
                ? memory[index - 1].Term
                : 0;
            (ulong, ulong) key = (index, entries[i].Term);
            if (!_entries.TryAdd(key, (previous, entries[i].Hash)))
            {
                (ulong PreviousTerm, ulong Hash) other = _entries[key];
                Require(
                    other.Hash == entries[i].Hash
                        && (other.PreviousTerm == previous || previous == 0 || other.PreviousTerm == 0),
                    "log matching",
                    $"entry {index} of term {entries[i].Term} differs on node {node.Id}");
                if (other.PreviousTerm == 0)
                {
                    _entries[key] = (previous, other.Hash);
                }
            }

            Require(
                index > _seen[node.Id].Commit || _committed[(int)index - 1] == entries[i],
                "a committed entry never changes",
                $"node {node.Id} puts entry {entries[i]} in the place of entry {index}, which it has committed");
        }
    }

    /// <summary>A message leaves a node: what it promises is on its disk.</summary>
    public void Left(SimNode node, in RaftMessage message, RaftCore core)
    {
        ulong term = message.Term.Value;
        HardState promised = node.Witness.Durable(group).HardState;
        ulong durable = promised.Term.Value;
        bool grants = message.Kind == RaftMessageKind.VoteReply && !message.Reject;
        bool asks = message.Kind == RaftMessageKind.Vote;
        if (grants || asks)
        {
            int candidate = grants ? message.To.Value : node.Id;
            Require(
                durable > term || (durable == term && promised.Vote.Value == candidate),
                "a vote is durable before it leaves",
                $"node {node.Id} votes for {candidate} in term {term}, and its disk has the term {durable} "
                    + $"and a vote for {promised.Vote}");
            Require(core.IsVoting, "who lost its promises does not vote", $"node {node.Id} votes in term {term}");
            (int, ulong) key = (node.Id, term);
            bool first = _votes.TryAdd(key, (candidate, node.Directory));
            Require(
                first
                    || _votes[key].Candidate == candidate
                    || (_votes[key].Candidate == node.Id && _votes[key].Directory < node.Directory),
                "one vote per node and term",
                $"node {node.Id} votes for {candidate} in term {term}, and did for "
                    + $"{(first ? 0 : _votes[key].Candidate)}");
        }

        if (message.Kind is RaftMessageKind.AppendReply && !message.Reject)
        {
            Require(
                durable >= term,
                "a term is durable before it is used",
                $"node {node.Id} answers in term {term}, and its disk says {durable}");

            // A leader of a later term may have replaced the entry in the same batch. What is acknowledged cannot be
            // committed then: that leader was elected without it.
            Require(
                durable > term || node.Witness.Durable(group).Last >= message.Index.Value,
                "an acknowledgement leaves after the sync",
                $"node {node.Id} acknowledges entry {message.Index}, and its disk has "
                    + $"{node.Witness.Durable(group).Last}");
        }

        if (message.Kind is RaftMessageKind.Append or RaftMessageKind.Heartbeat)
        {
            Require(
                durable >= term,
                "a term is durable before it is used",
                $"node {node.Id} leads in term {term}, and its disk says {durable}");
        }
    }

    /// <summary>After code of a node has run.</summary>
    public void Look(SimNode node, Group partition)
    {
        Seen seen = _seen[node.Id];
        RaftCore core = partition.Core;
        ulong term = core.Term.Value;
        ulong durable = node.Witness.Durable(group).HardState.Term.Value;
        if (durable > seen.DurableTerm)
        {
            seen.DurableTerm = durable;
        }

        if (term != seen.Term || core.Role != seen.Role)
        {
            Require(term >= seen.Term, "a term never goes back", $"node {node.Id} is in term {term} after {seen.Term}");
            seen.Term = term;
            seen.Role = core.Role;
            if (core.Role == RaftRole.Leader)
            {
                CheckLeader(node, term);
            }
        }

        // Entries that came in the turn in which a state begins to be put in place are not handed to the log, and the
        // state takes their place.
        ulong commit = core.CommitIndex.Value;
        if (commit != seen.Commit && !(partition.IsStill && commit > node.Witness.Memory(group).Last))
        {
            Require(
                commit > seen.Commit,
                "a commit index never goes back",
                $"node {node.Id} says {commit} after {seen.Commit}");
            seen.Commit = commit;
            CheckCommit(node, core, commit);
        }

        ulong applied = partition.Applied.Value;
        if (applied != seen.Applied)
        {
            Require(
                applied > seen.Applied,
                "entries are applied once and in order",
                $"node {node.Id} has applied {applied} after {seen.Applied}");
            seen.Applied = applied;
            Require(
                applied <= Committed,
                "only what is committed is applied",
                $"node {node.Id} has applied {applied} of {Committed}");
            CheckDigest(node, partition, applied);
        }
    }

    /// <summary>On how many disks an entry is, or was before the disk was lost.</summary>
    public int Durable(ulong index, EntryId entry) =>
        nodes.Count(node => node.IsRejoining || node.Witness.Durable(group).Holds(index, entry));

    public EntryId CommittedEntry(ulong index) => _committed[(int)index - 1];

    private void Require(bool holds, string rule, string words)
    {
        if (!holds)
        {
            breaks(rule, words);
        }
    }

    private void CheckLeader(SimNode node, ulong term)
    {
        bool isNew = _leaders.TryAdd(term, node.Id);
        if (isNew)
        {
            node.Scheduler.Note(SimEvent.Leader, node.Id, group + 1, (long)term);
        }

        Require(
            isNew || _leaders[term] == node.Id,
            "one leader per term",
            $"nodes {_leaders[term]} and {node.Id} lead group {group + 1} in term {term}");

        // Whoever is elected late, when the leader of a later term has already committed, need not have that.
        if (Committed > 0 && _committed[^1].Term <= term)
        {
            GroupImage memory = node.Witness.Memory(group);
            Require(
                memory.Last >= Committed && memory.Holds(Committed, _committed[^1]),
                "a leader has everything committed",
                $"node {node.Id} leads group {group + 1} in term {term} with {memory.Last} "
                    + $"entries; committed are {Committed}");
        }
    }

    private void CheckCommit(SimNode node, RaftCore core, ulong commit)
    {
        GroupImage memory = node.Witness.Memory(group);
        while (Committed < commit)
        {
            ulong index = Committed + 1;
            Require(
                index > memory.Start && index <= memory.Last,
                "only what is in a log is committed",
                $"node {node.Id} commits {commit} with entries {memory.Start + 1} to {memory.Last}, "
                    + $"and {Committed} were committed");
            EntryId entry = memory[index];
            int durable = Durable(index, entry);
            Require(
                durable > config.Nodes / 2,
                "what is committed is on the disks of a majority",
                $"entry {index} of term {entry.Term} of group {group + 1} is committed on node {node.Id} and durable "
                    + $"on {durable} of {config.Nodes}");
            if (index == commit && core.Role == RaftRole.Leader)
            {
                Require(
                    entry.Term == core.Term.Value,
                    "a leader counts only entries of its own term",
                    $"node {node.Id} of term {core.Term} commits entry {index} of term {entry.Term}");
            }

            _committed.Add(entry);
        }

        Require(
            commit == 0 || memory.Holds(commit, _committed[(int)commit - 1]),
            "a committed entry never changes",
            $"node {node.Id} has another committed entry {commit} of group {group + 1}: its log has entries "
                + $"{memory.Start + 1} to {memory.Last}");
    }

    private void CheckDigest(SimNode node, Group partition, ulong applied)
    {
        ulong digest = partition.State.Digest;
        if (!_digests.TryAdd(applied, (digest, node.Id)))
        {
            Require(
                _digests[applied].Digest == digest,
                "equal states after equal entries",
                $"nodes {_digests[applied].Node} and {node.Id} differ after entry {applied} of group {group + 1}");
        }
    }

    private sealed class Seen
    {
        public ulong Term { get; set; }

        public ulong DurableTerm { get; set; }

        public RaftRole Role { get; set; }

        public ulong Commit { get; set; }

        public ulong Applied { get; set; }
    }
}
