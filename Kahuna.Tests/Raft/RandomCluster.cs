using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Tests.Raft;

/// <summary>
/// A cluster of cores under random faults from a seed. <see cref="ClusterRules"/> checks it after every step. Owned by
/// one test.
/// </summary>
internal sealed class RandomCluster
{
    private readonly Random _random;
    private readonly RaftNode[] _nodes;
    private readonly List<Packet> _network = [];
    private readonly ClusterRules _rules;
    private readonly StorageFaults _storage;
    private readonly bool[,] _cut;
    private readonly double _loss;
    private readonly double _duplication;
    private readonly double _reordering;
    private readonly double _crash;
    private readonly double _jumps;
    private int _proposed;

    public RandomCluster(int seed, int voters, int learners)
    {
        _random = new Random(seed);
        _loss = _random.Next(3) == 0 ? 0 : _random.NextDouble() * 0.2;
        _duplication = _random.Next(3) == 0 ? 0 : _random.NextDouble() * 0.2;
        _reordering = _random.Next(3) == 0 ? 0 : _random.NextDouble() * 0.5;
        _crash = _random.Next(3) == 0 ? 0 : _random.NextDouble() * 0.02;
        _jumps = _random.Next(3) == 0 ? 0 : 0.99 + (_random.NextDouble() * 0.01);
        bool startUnproven = _random.Next(4) == 0;
        bool tightMemory = _random.Next(2) == 0;
        NodeId[] ids = [.. Enumerable.Range(1, voters + learners).Select(i => new NodeId((ushort)i))];
        _nodes = [.. ids.Select(id => new RaftNode(new RaftConfig
        {
            Self = id,
            Group = new GroupId(1),
            Voters = ids[..voters],
            Learners = ids[voters..],
            ElectionTicks = 8,
            Limits = new RaftLimits
            {
                AppendBytesMax = _random.Next(20, 200),
                ApplyBytesMax = seed % 2 == 0 ? 1 + (seed % 200) : 1 << 20,
                InFlightAppendsMax = _random.Next(1, 8),
                InFlightBytesMax = _random.Next(50, 1000),
                CacheBytes = tightMemory ? 0 : 1 << 20,
                CacheBytesMax = tightMemory ? _random.Next(100, 400) : 4 << 20,
            },
            Seed = ((ulong)seed << 8) + id.Value,
        }))];
        _cut = new bool[_nodes.Length + 1, _nodes.Length + 1];
        _rules = new ClusterRules(_nodes, voters);
        _storage = new StorageFaults(_random, _nodes, _rules, voters) { Crashes = _crash > 0 };
        foreach (RaftNode node in _nodes)
        {
            _rules.Watch(node);
            node.Send = packet => Sent(node, packet);
            if (startUnproven)
            {
                node.Voting = VotingRight.Unproven;
                node.Restart(default);
            }
        }
    }

    public ClusterRules Rules => _rules;

    public int Lost { get; private set; }

    public int Crashes { get; private set; }

    public int Fetches { get; private set; }

    public int Transfers { get; private set; }

    public StorageFaults Storage => _storage;

    /// <summary>Random inputs and faults.</summary>
    public void Storm(int steps)
    {
        for (int i = 0; i < steps; i++)
        {
            Step();
            Settle();
        }
    }

    /// <summary>
    /// Heals everything. The cluster must commit new entries on all nodes within a bounded number of rounds.
    /// </summary>
    public void Recover()
    {
        _storage.Crashes = false;
        Array.Clear(_cut);
        foreach (RaftNode node in _nodes.Where(node => !node.IsUp))
        {
            node.Restart(default);
        }

        int goal = -1;
        for (int round = 0; round < 400; round++)
        {
            foreach (RaftNode node in _nodes)
            {
                node.Core.Tick();
                _storage.AllowVoting(node);
            }

            Settle();
            for (int pass = 0;
                _network.Count > 0
                    || _storage.HasTransfers
                    || _nodes.Any(node => node.PendingWrites > 0 || node.Fetches.Count > 0);
                pass++)
            {
                Assert.True(pass < 10_000, "the healed cluster comes to rest between two ticks");
                DeliverAll();
            }

            RaftNode? leader = _nodes.FirstOrDefault(node => node.Core.Role == RaftRole.Leader);
            if (goal < 0 && leader is not null && leader.Propose("end"))
            {
                goal = (int)leader.Core.LastIndex.Value;
            }

            if (goal > 0
                && _nodes.All(node => node.Applied.Count >= goal && node.Applied.Count == _nodes[0].Applied.Count))
            {
                return;
            }

            if (goal > 0 && leader is not null && (int)leader.Core.LastIndex.Value < goal)
            {
                goal = -1;
            }
        }

        Assert.Fail("the healed cluster did not commit on all nodes: " + string.Join("; ", _nodes.Select(node =>
            $"{node.Id} {node.Core.Role} voting {node.Core.IsVoting} life {node.Life} applied "
                + $"{node.Applied.Count} term {node.Core.Term} "
            + $"commit {node.Core.CommitIndex} last {node.Core.LastIndex} start {node.Core.LogStart} "
            + string.Join(
                ',',
                _nodes.Select(
                    other => $"{node.Core.MatchIndex(other.Id)}{(node.Core.AwaitsSnapshot(other.Id) ? "s" : "")}")))));
    }

    private void DeliverAll()
    {
        Packet[] packets = [.. _network];
        _network.Clear();
        foreach (Packet packet in packets)
        {
            Deliver(packet);
        }

        foreach (RaftNode node in _nodes)
        {
            while (node.PendingWrites > 0)
            {
                node.Persist();
            }

            while (node.Fetches.Count > 0)
            {
                node.AnswerFetch(fails: false);
            }
        }

        _storage.EndTransfers();

        Settle();
    }

    private void Step()
    {
        RaftNode node = _nodes[_random.Next(_nodes.Length)];
        double draw = _random.NextDouble();
        if (!node.IsUp)
        {
            if (draw < 0.1)
            {
                ulong applied = Math.Min(node.DurableState.Commit.Value, node.DurableLog.Last);
                node.Restart(new LogIndex((ulong)_random.NextInt64((long)applied + 1)));
            }

            return;
        }

        if (draw < 0.50)
        {
            DeliverOne();
        }
        else if (draw < 0.62)
        {
            node.Core.Tick();
        }
        else if (draw < 0.80)
        {
            PersistOrFetch(node);
        }
        else if (draw < 0.92)
        {
            // Several inputs before one Ready.
            for (int i = _random.Next(1, 4); i > 0; i--)
            {
                if (node.Propose($"v{_proposed}"))
                {
                    _proposed++;
                }
            }
        }
        else if (draw < 0.96)
        {
            if (node.Core.TryRead(out ulong ticket))
            {
                _rules.ReadRegistered(node, ticket);
            }
        }
        else if (draw < 0.97)
        {
            Transfers += node.Core.TryTransfer(_nodes[_random.Next(_nodes.Length)].Id) ? 1 : 0;
        }
        else if (draw < 0.98)
        {
            node.Core.ReportUnreachable(_nodes[_random.Next(_nodes.Length)].Id);
        }
        else if (draw < 0.99)
        {
            ChangeLinks();
        }
        else if (draw < _jumps)
        {
            // Clocks jumped or nodes were paused: leases have expired, and a node campaigns.
            foreach (RaftNode other in _nodes.Where(other => other.IsUp && _random.Next(2) == 0))
            {
                for (int i = 0; i < 8; i++)
                {
                    other.Core.Tick();
                }
            }

            node.Core.Campaign();
        }

        _storage.Step(node, _cut);
        if (_random.NextDouble() < _crash)
        {
            Crashes++;
            _rules.ReadsForgotten(node);
            node.Crash();
        }
    }

    private RaftNode Of(NodeId id) => _nodes[id.Value - 1];

    private void PersistOrFetch(RaftNode node)
    {
        if (node.Fetches.Count > 0 && _random.Next(2) == 0)
        {
            Fetches++;
            node.AnswerFetch(fails: _random.Next(5) == 0);
        }
        else if (node.PendingWrites > 0)
        {
            node.Persist();
        }
    }

    private void DeliverOne()
    {
        if (_network.Count == 0)
        {
            return;
        }

        int position = _random.NextDouble() < _reordering ? _random.Next(_network.Count) : 0;
        Packet packet = _network[position];
        _network.RemoveAt(position);
        if (_random.NextDouble() < _duplication)
        {
            _network.Add(packet);
        }

        if (_random.NextDouble() < _loss)
        {
            Lost++;
        }
        else
        {
            Deliver(packet);
        }
    }

    private void Deliver(Packet packet)
    {
        RaftNode target = Of(packet.Message.To);
        bool arrives = target.IsUp && !_cut[packet.Message.From.Value, packet.Message.To.Value];
        Lost += arrives && target.Receive(packet, Of(packet.Message.From).Life) ? 0 : 1;
    }

    private void ChangeLinks()
    {
        Array.Clear(_cut);
        if (_random.Next(2) == 0)
        {
            return;
        }

        RaftNode? leader = _nodes.FirstOrDefault(node => node.IsUp && node.Core.Role == RaftRole.Leader);
        if (leader is not null && _random.Next(3) == 0)
        {
            // The leader continues alone for a while, with entries that no other node gets.
            for (int other = 1; other <= _nodes.Length; other++)
            {
                _cut[leader.Id.Value, other] = true;
                _cut[other, leader.Id.Value] = true;
            }

            return;
        }

        bool oneWay = _random.Next(3) == 0;
        for (int from = 1; from <= _nodes.Length; from++)
        {
            for (int to = 1; to < from; to++)
            {
                bool cut = _random.Next(3) == 0;
                _cut[from, to] = cut;
                _cut[to, from] = cut && !oneWay;
            }
        }
    }

    private void Settle()
    {
        foreach (RaftNode node in _nodes)
        {
            node.Drain();
        }

        _storage.Watch();
        _rules.Check();
    }

    private void Sent(RaftNode node, Packet packet)
    {
        _rules.Left(node, packet.Message);
        packet.ReceiverStarts = Of(packet.Message.To).Starts;
        _network.Add(packet);
        if (_network.Count > 400)
        {
            Lost++;
            _network.RemoveAt(_random.Next(_network.Count));
        }
    }
}
