using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Tests.Raft;

/// <summary>
/// The promises of Raft, checked over all nodes of a test after every step: election safety, log matching, leader completeness,
/// state machine safety, commit on a durable quorum only, promises only after durability, linearizable reads. Owned by one test.
/// </summary>
internal sealed class ClusterRules(IReadOnlyList<RaftNode> nodes, int voters)
{
    private readonly Dictionary<ulong, NodeId> _leaders = [];
    private readonly Dictionary<(ulong Index, ulong Term), (ulong PreviousTerm, LogItem Item)> _entries = [];
    private readonly Dictionary<(NodeId Voter, ulong Term), NodeId> _votes = [];
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
        if (message.Kind == RaftMessageKind.VoteReply && !message.Reject)
        {
            Assert.True(node.DurableState.Term >= message.Term, "a vote leaves after its term is durable");
            Assert.True(_votes.TryAdd((node.Id, message.Term.Value), message.To) || _votes[(node.Id, message.Term.Value)] == message.To, "one vote per node and term");
        }
        else if (message.Kind == RaftMessageKind.Vote)
        {
            Assert.True(node.DurableState.Term >= message.Term, "a candidate's term is durable before it is used");
            Assert.True(_votes.TryAdd((node.Id, message.Term.Value), node.Id) || _votes[(node.Id, message.Term.Value)] == node.Id, "one vote per node and term");
        }
        else if (message.Kind == RaftMessageKind.AppendReply && !message.Reject)
        {
            Assert.True((ulong)node.DurableLog.Count >= message.Index.Value, "an acknowledgement leaves after the entries are durable");
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

            Assert.Equal((ulong)node.Log.Count, node.Core.LastIndex.Value);
            CheckCommit(node);
            if (node.Core.Role == RaftRole.Leader)
            {
                CheckLeader(node);
            }
        }
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
            Assert.True(i < node.Log.Count && node.Log[i] == Committed[i], $"leader completeness: the leader of term {node.Core.Term} lacks committed entry {i + 1}");
        }
    }

    private void CheckCommit(RaftNode node)
    {
        int commit = (int)node.Core.CommitIndex.Value;
        if (commit > Committed.Count && node.Core.Role == RaftRole.Leader)
        {
            Assert.True(node.Log[commit - 1].Term == node.Core.Term, $"a leader of term {node.Core.Term} counts entry {commit} of term {node.Log[commit - 1].Term} to commit it");
        }

        for (int i = Committed.Count; i < commit; i++)
        {
            LogItem item = node.Log[i];
            int durable = nodes.Take(voters).Count(voter => i < voter.DurableLog.Count && voter.DurableLog[i] == item);
            Assert.True(durable > voters / 2, $"entry {i + 1} of term {item.Term} is committed and durable on {durable} of {voters}");
            Committed.Add(item);
        }

        if (commit > 0)
        {
            Assert.True(node.Log[commit - 1] == Committed[commit - 1], $"node {node.Id} has another committed entry at {commit}");
        }
    }

    private void Stored(RaftNode node, LogIndex index, LogItem item)
    {
        ulong previous = index.Value == 1 ? 0 : node.Log[(int)index.Value - 2].Term.Value;
        (ulong, ulong) key = (index.Value, item.Term.Value);
        Assert.True(_entries.TryAdd(key, (previous, item)) || _entries[key] == (previous, item), $"log matching: entry {index} of term {item.Term} differs on node {node.Id}");
    }

    private void Applied(LogIndex index, LogItem item)
    {
        int position = (int)index.Value - 1;
        Assert.True(position >= Committed.Count || Committed[position] == item, $"state machine safety: another entry is applied at {index}");
    }

    private void Confirmed(RaftNode node, ReadState read)
    {
        foreach (((NodeId Node, ulong Ticket) key, int committed) in _reads.Where(pair => pair.Key.Node == node.Id && pair.Key.Ticket <= read.Ticket).ToList())
        {
            Assert.True(read.Index.Value >= (ulong)committed, $"a read that began after {committed} commits is served at {read.Index}");
            _reads.Remove(key);
            ReadsConfirmed++;
        }
    }
}
