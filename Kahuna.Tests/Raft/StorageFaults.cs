using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Tests.Raft;

/// <summary>
/// Disk events of a <see cref="RandomCluster"/>: truncated logs, snapshot transfers, lost directories. Owned by one
/// cluster.
/// </summary>
internal sealed class StorageFaults
{
    private readonly Random _random;
    private readonly RaftNode[] _nodes;
    private readonly ClusterRules _rules;
    private readonly List<SnapshotTransfer> _transfers = [];
    private readonly double _trim;
    private readonly double _wipe;
    private readonly int _wipesAtOnce;

    public StorageFaults(Random random, RaftNode[] nodes, ClusterRules rules, int voters)
    {
        _random = random;
        _nodes = nodes;
        _rules = rules;
        _trim = random.Next(4) == 0 ? 0 : random.NextDouble() * 0.1;
        _wipe = random.Next(2) == 0 ? 0 : random.NextDouble() * 0.01;
        _wipesAtOnce = (voters - 1) / 2;
        foreach (RaftNode node in nodes)
        {
            node.OnSnapshotWanted = follower => BeginTransfer(node, follower);
        }
    }

    /// <summary>Followers may crash while a state is installed.</summary>
    public bool Crashes { get; set; }

    public int Cuts { get; private set; }

    public int Snapshots { get; private set; }

    /// <summary>Snapshots whose follower got there another way before they arrived.</summary>
    public int Aborts { get; private set; }

    public int CrashesInInstall { get; private set; }

    public int Wipes { get; private set; }

    public int Rejoins { get; private set; }

    public bool HasTransfers => _transfers.Count > 0;

    /// <summary>
    /// Something may happen, to <paramref name="node"/> or to a transfer. <paramref name="cut"/>: links that carry
    /// nothing, from and to.
    /// </summary>
    public void Step(RaftNode node, bool[,] cut)
    {
        if (_random.NextDouble() < _trim)
        {
            Cuts += node.Trim(node.Log.Start + (ulong)_random.Next(1, 20)) ? 1 : 0;
        }

        if (HasTransfers && _random.NextDouble() < 0.03)
        {
            SnapshotTransfer transfer = _transfers[_random.Next(_transfers.Count)];
            bool arrives = Of(transfer.Follower).IsUp && !cut[transfer.Leader.Id.Value, transfer.Follower.Value];
            EndTransfer(transfer, arrives && _random.Next(5) > 0);
        }

        if (node.IsUp && _random.NextDouble() < 0.1)
        {
            AllowVoting(node);
        }

        if (_random.NextDouble() < _wipe
            && _nodes.Count(other => other != node && other.Voting == VotingRight.Rejoining) < _wipesAtOnce)
        {
            Wipes++;
            _rules.ReadsForgotten(node);
            node.Wipe();
        }
    }

    /// <summary>All that is on its way arrives.</summary>
    public void EndTransfers()
    {
        while (HasTransfers)
        {
            EndTransfer(_transfers[^1], install: true);
        }
    }

    /// <summary>Counts the transfers that are no longer needed.</summary>
    public void Watch() => Aborts += _transfers.Count(transfer => transfer.CheckAborted());

    /// <summary>Its owner allows a node to vote once that is right.</summary>
    public void AllowVoting(RaftNode node)
    {
        bool isRejoined = node.Core.CanRejoin && node.PendingWrites == 0;
        if (node.Voting == VotingRight.Unproven
            || isRejoined
            || (node.Voting == VotingRight.Rejoining && node.Core.IsVoting))
        {
            Rejoins += isRejoined ? 1 : 0;
            node.Voting = VotingRight.Full;
            node.Core.AllowVoting();
        }
    }

    private RaftNode Of(NodeId id) => _nodes[id.Value - 1];

    private void BeginTransfer(RaftNode leader, NodeId follower)
    {
        // Any state that the log continues from, not only the newest.
        ulong index = leader.Log.Start + (ulong)_random.Next(leader.Applied.Count - (int)leader.Log.Start + 1);
        _transfers.Add(new SnapshotTransfer(leader, leader.Core.Term, follower, leader.CopyState(index)));
    }

    private void EndTransfer(SnapshotTransfer transfer, bool install)
    {
        _transfers.Remove(transfer);
        RaftNode follower = Of(transfer.Follower);
        bool installed = install && follower.Install(transfer.State);
        Snapshots += installed ? 1 : 0;
        if (installed && Crashes && _random.Next(4) == 0)
        {
            CrashesInInstall++;
            _rules.ReadsForgotten(follower);
            follower.Crash();
        }

        // A transfer can be reported as failed although all of it arrived.
        transfer.End(installed && _random.Next(5) > 0);
    }
}
