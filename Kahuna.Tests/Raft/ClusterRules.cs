using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Tests.Raft;

/// <summary>
/// Raft's guarantees, checked over all nodes of a test after every step: election safety, log matching, leader
/// completeness, state machine safety, commits only on a durable quorum, promises only after durability, linearizable
/// reads. Owned by one test.
/// </summary>
internal sealed class ClusterRules(IReadOnlyList<RaftNode> nodes, int voters)
{
    private readonly Dictionary<ulong, NodeId> _leaders = [];
    private readonly Dictionary<(ulong Index, ulong Term), (ulong PreviousTerm, LogItem Item)> _entries = [];
    private readonly Dictionary<(NodeId Voter, ulong Term), (NodeId Candidate, int Life)> _votes = [];
    private readonly Dictionary<(NodeId Node, ulong Ticket), int> _reads = [];

    /// <summary>All that was ever committed, in order.</summary>
    public List<LogItem> Committed { get; } = [];

    public int Leaders => _leaders.Count;

    public int ReadsConfirmed { get; private set; }

    public void Watch(RaftNode node)
    {
        node.OnStored = (index, item) => Stored(node, index, item);
        node.OnApplied = Applied;
        node.OnRead = read => Confirmed(node, read);
        node.OnInstalled = state => Installed(node, state);
    }

    public void ReadRegistered(RaftNode node, ulong ticket) => _reads[(node.Id, ticket)] = Committed.Count;

    public void ReadsForgotten(RaftNode node)
    {
        foreach ((NodeId Node, ulong Ticket) key in _reads.Keys.Where(key => key.Node == node.Id).ToList())
        {
            _reads.Remove(key);
        }
    }

    /// <summary>A message left a node: a promise in it must be on the disk.</summary>
    public void Left(RaftNode node, in RaftMessage message)
    {
        bool isVote = message.Kind is RaftMessageKind.Vote or RaftMessageKind.PreVote
            || (message.Kind is RaftMessageKind.VoteReply or RaftMessageKind.PreVoteReply && !message.Reject);
        Assert.True(!isVote || node.Core.IsVoting, $"node {node.Id} votes or campaigns without the right to");
        if (message.Kind == RaftMessageKind.VoteReply && !message.Reject)
        {
            Assert.True(node.DurableState.Term >= message.Term, "a vote leaves after its term is durable");
            VotesFor(node, message.To, message.Term);
        }
        else if (message.Kind == RaftMessageKind.Vote)
        {
            Assert.True(node.DurableState.Term >= message.Term, "a candidate's term is durable before it is used");
            VotesFor(node, node.Id, message.Term);
        }
        else if (message.Kind == RaftMessageKind.AppendReply && !message.Reject)
        {
            Assert.True(
                node.DurableLog.Last >= message.Index.Value, "an acknowledgement leaves after the entries are durable");
        }
    }

    public void Check()
    {
        foreach (RaftNode node in nodes)
        {
            if (!node.IsUp)
            {
                continue;
            }

            Assert.Equal((node.Log.Start, node.Log.Last), (node.Core.LogStart.Value, node.Core.LastIndex.Value));
            CheckCommit(node);
            if (node.Core.Role == RaftRole.Leader)
            {
                CheckLeader(node);
            }
        }
    }

    /// <summary>
    /// One vote per node and term, across all its starts. A candidacy that was lost with the directory is no vote: a
    /// node that received it has reported its term, and no node receives it later, because a link carries no message of
    /// an earlier start after a later one.
    /// </summary>
    private void VotesFor(RaftNode node, NodeId candidate, Term term)
    {
        (NodeId, ulong) key = (node.Id, term.Value);
        if (_votes.TryGetValue(key, out (NodeId Candidate, int Life) given) && given.Candidate != candidate)
        {
            Assert.True(
                given.Candidate == node.Id && given.Life < node.Life,
                $"one vote per node and term: {node.Id} votes for {candidate} and {given.Candidate} in term {term}");
        }

        _votes[key] = (candidate, node.Life);
    }

    private void CheckLeader(RaftNode node)
    {
        if (_leaders.TryGetValue(node.Core.Term.Value, out NodeId other))
        {
            Assert.True(other == node.Id, $"election safety: {other} and {node.Id} lead in term {node.Core.Term}");
            return;
        }

        _leaders.Add(node.Core.Term.Value, node.Id);
        for (int i = 0; i < Committed.Count; i++)
        {
            Assert.True(
                (ulong)i < node.Log.Last && ItemOf(node, (ulong)i + 1) == Committed[i],
                $"leader completeness: the leader of term {node.Core.Term} lacks committed entry {i + 1}");
        }
    }

    private void CheckCommit(RaftNode node)
    {
        ulong commit = node.Core.CommitIndex.Value;
        if (commit > (ulong)Committed.Count && node.Core.Role == RaftRole.Leader)
        {
            Assert.True(
                node.Log.TermAt(commit) == node.Core.Term,
                $"a leader of term {node.Core.Term} counts entry {commit} of term "
                    + $"{node.Log.TermAt(commit)} to commit it");
        }

        for (ulong index = (ulong)Committed.Count + 1; index <= commit; index++)
        {
            LogItem item = ItemOf(node, index);
            int durable = nodes.Take(voters).Count(voter => voter.Held(index, item));
            Assert.True(
                durable > voters / 2,
                $"entry {index} of term {item.Term} is committed and durable on {durable} of {voters}");
            Committed.Add(item);
        }

        if (commit > 0)
        {
            Assert.True(
                ItemOf(node, commit) == Committed[(int)commit - 1],
                $"node {node.Id} has another committed entry at {commit}");
        }
    }

    /// <summary>The entry as the log has it, or the state when the log is cut.</summary>
    private static LogItem ItemOf(RaftNode node, ulong index) =>
        index <= node.Log.Start ? node.Applied[(int)index - 1] : node.Log[index];

    private void Installed(RaftNode node, StateCopy state)
    {
        for (int i = 0; i < state.Items.Count; i++)
        {
            Assert.True(
                i < Committed.Count && state.Items[i] == Committed[i],
                $"state machine safety: node {node.Id} installs another entry at {i + 1}");
        }
    }

    private void Stored(RaftNode node, LogIndex index, LogItem item)
    {
        ulong previous = node.Log.TermAt(index.Value - 1).Value;
        (ulong, ulong) key = (index.Value, item.Term.Value);
        Assert.True(
            _entries.TryAdd(key, (previous, item)) || _entries[key] == (previous, item),
            $"log matching: entry {index} of term {item.Term} differs on node {node.Id}");
    }

    private void Applied(LogIndex index, LogItem item)
    {
        int position = (int)index.Value - 1;
        Assert.True(
            position >= Committed.Count || Committed[position] == item,
            $"state machine safety: another entry is applied at {index}");
    }

    private void Confirmed(RaftNode node, ReadState read)
    {
        foreach (((NodeId Node, ulong Ticket) key, int committed) in _reads
            .Where(pair => pair.Key.Node == node.Id && pair.Key.Ticket <= read.Ticket)
            .ToList())
        {
            Assert.True(
                read.Index.Value >= (ulong)committed,
                $"a read that began after {committed} commits is served at {read.Index}");
            _reads.Remove(key);
            ReadsConfirmed++;
        }
    }
}
