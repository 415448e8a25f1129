using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Raft;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Nodes;

namespace Kahuna.Tests.Simulation.Network;

/// <summary>
/// The links between the nodes. A frame arrives after a delay, or never; with the faults of a seed also twice, or
/// behind later ones, but never on a later link than the one it was sent on. A link that breaks is tried again as long
/// as both ends live. Owned by one run.
/// </summary>
internal sealed class PeerNetwork
{
    private const double ForwardsAgain = 0.3;
    private const long ForwardedAgainNs = 1_000_000_000;

    /// <summary>A delay this many times the mean is not chance.</summary>
    private const int LateDelays = 20;

    private readonly SimScheduler _scheduler;
    private readonly SimConfig _config;
    private readonly SimRandom _random;
    private readonly SimNode[] _nodes;
    private readonly Link[,] _links;
    private bool _healed;

    public PeerNetwork(SimScheduler scheduler, SimConfig config, SimNode[] nodes)
    {
        _scheduler = scheduler;
        _config = config;
        _random = new SimRandom(config.Seed).Fork(3);
        _nodes = nodes;
        _links = new Link[nodes.Length + 1, nodes.Length + 1];
        for (int from = 0; from <= nodes.Length; from++)
        {
            for (int to = 0; to <= nodes.Length; to++)
            {
                _links[from, to] = new Link();
            }
        }
    }

    /// <summary>Told of every chunk of a snapshot that arrives.</summary>
    public Action<int, SnapshotHeader>? ChunkArrived { get; set; }

    public long Lost { get; private set; }

    public long Duplicated { get; private set; }

    public long Reordered { get; private set; }

    /// <summary>The faults are over.</summary>
    public bool IsHealed => _healed;

    public bool IsCut(int from, int to) => _links[from, to].Cut;

    /// <summary>
    /// The state of the link from one node to another. After a clog it counts as clogged until the delayed frames have
    /// arrived, because later frames wait behind them.
    /// </summary>
    public LinkShape ShapeOf(int from, int to)
    {
        Link link = _links[from, to];
        long waitingNs = Math.Max(link.LastNs, link.UrgentLastNs) - _scheduler.NowNs;
        long extraNs = link.ExtraNs == 0 && link.Up && waitingNs > LateDelays * _config.DelayNs
            ? waitingNs
            : link.ExtraNs;
        return new LinkShape(link.Cut, extraNs, link.Up, link.Epoch);
    }

    /// <summary>Nothing goes from here to there, or something does again.</summary>
    public void Cut(int from, int to, bool cut)
    {
        Link link = _links[from, to];
        if (link.Cut == cut || _healed)
        {
            return;
        }

        link.Cut = cut;
        if (cut)
        {
            // Who hears nothing for so long gives the link up.
            int epoch = link.Epoch;
            _scheduler.After(_random.Between(800_000_000L, 3_000_000_000L), () =>
            {
                if (link.Cut && link.Epoch == epoch)
                {
                    Break(from, to);
                }
            });
        }
    }

    /// <summary>Everything from here to there takes longer.</summary>
    public void Clog(int from, int to, long extraNs) => _links[from, to].ExtraNs = _healed ? 0 : extraNs;

    public void Heal()
    {
        _healed = true;
        foreach (Link link in _links)
        {
            link.Cut = false;
            link.ExtraNs = 0;
        }
    }

    /// <summary>A frame that was sent is still on its way.</summary>
    public bool HasWaiting(int from, int to) => _links[from, to].LastNs > _scheduler.NowNs;

    /// <summary>False when there is no link. Urgent frames pass those that are not.</summary>
    public bool Send(int from, int to, byte[] frame, bool isUrgent)
    {
        Link link = _links[from, to];
        if (!link.Up)
        {
            return false;
        }

        if (link.Cut || (!_healed && _random.Chance(_config.Loss)))
        {
            Lost++;
            _scheduler.Note(SimEvent.Lose, from, to, frame.Length);
            return true;
        }

        long delay = _healed ? _config.HealedDelayNs : _config.DelayNs;
        long at = _scheduler.NowNs + (long)_random.Exponential(delay) + (delay / 10) + link.ExtraNs;
        if (!_healed && _random.Chance(_config.Reordering))
        {
            Reordered++;
            at += (long)_random.Exponential(_config.DelayNs * 3);
        }
        else
        {
            ref long last = ref (isUrgent ? ref link.UrgentLastNs : ref link.LastNs);
            at = last = Math.Max(at, last);
        }

        Deliver(from, to, link, frame, at);
        if (!_healed && _random.Chance(_config.Duplication))
        {
            Duplicated++;
            Deliver(from, to, link, frame, at + (long)_random.Exponential(_config.DelayNs * 3));
        }

        if (!_healed && _config.Duplication > 0 && HasForward(frame) && _random.Chance(ForwardsAgain))
        {
            // What is said to the meta group is said again and again anyway; some of it comes when it has been taken
            // back.
            Duplicated++;
            Deliver(from, to, link, frame, at + (long)_random.Exponential(ForwardedAgainNs));
        }

        return true;
    }

    /// <summary>A node has come up: it seeks links to the others.</summary>
    public void Join(int node)
    {
        for (int other = 1; other <= _nodes.Length; other++)
        {
            if (other != node)
            {
                Seek(Math.Min(node, other), Math.Max(node, other));
            }
        }
    }

    /// <summary>
    /// A node has gone. Its peers notice at once when its system closes the connections, and late when the power is
    /// off.
    /// </summary>
    public void Leave(int node, bool silently)
    {
        for (int other = 1; other <= _nodes.Length; other++)
        {
            Link own = _links[node, other];
            if (other == node || !own.Up)
            {
                continue;
            }

            own.Up = false;
            int epoch = own.Epoch;
            int peer = other;
            long afterNs = silently
                ? _random.Between(100_000_000L, 3_000_000_000L)
                : _random.Between(100_000L, 3_000_000L);
            _scheduler.After(afterNs, () =>
            {
                if (_links[peer, node].Epoch == epoch)
                {
                    Break(node, peer);
                }
            });
        }
    }

    /// <summary>The connection between two nodes is lost, with everything on its way.</summary>
    public void Break(int a, int b)
    {
        _scheduler.Note(SimEvent.LinkDown, a, b);
        Drop(a, b);
        Drop(b, a);
        Seek(Math.Min(a, b), Math.Max(a, b));
    }

    private void Drop(int self, int peer)
    {
        Link link = _links[self, peer];
        if (link.Up)
        {
            link.Up = false;
            _nodes[self - 1].LinkChanged(peer, up: false);
        }
    }

    private static bool HasForward(ReadOnlySpan<byte> frame)
    {
        while (!SnapshotFrame.Is(frame) && PeerFrame.TryRead(ref frame, out _, out RaftMessage message, out _))
        {
            if (message.Kind == RaftMessageKind.Forward)
            {
                return true;
            }
        }

        return false;
    }

    private bool IsOpen(int from, int to, int epoch) =>
        _links[from, to] is { Up: true } link && link.Epoch == epoch && _links[to, from].Up;

    private void Deliver(int from, int to, Link link, byte[] frame, long atNs)
    {
        int epoch = link.Epoch;
        long sentNs = _scheduler.NowNs;
        _scheduler.At(atNs, () =>
        {
            if (IsOpen(from, to, epoch) && !link.Cut)
            {
                if (SnapshotFrame.Is(frame) && frame[4] == SnapshotFrame.ChunkKind)
                {
                    ChunkArrived?.Invoke(to, SnapshotFrame.ReadHeader(frame));
                }

                _nodes[to - 1].Receive(from, frame, sentNs, () => IsOpen(from, to, epoch));
            }
            else
            {
                Lost++;
                _scheduler.Note(SimEvent.Lose, from, to, frame.Length);
            }
        });
    }

    private void Seek(int a, int b)
    {
        Link link = _links[a, b];
        if (link.Seeking || (link.Up && _links[b, a].Up))
        {
            return;
        }

        link.Seeking = true;
        _scheduler.After(_random.Between(2_000_000L, 200_000_000L), () =>
        {
            link.Seeking = false;
            SimNode one = _nodes[a - 1];
            SimNode other = _nodes[b - 1];
            if (!one.IsUp || !other.IsUp)
            {
                // Whoever comes up seeks again.
                return;
            }

            if (one.IsPaused || other.IsPaused || link.Cut || _links[b, a].Cut)
            {
                Seek(a, b);
                return;
            }

            Connect(a, b);
        });
    }

    private void Connect(int a, int b)
    {
        Link there = _links[a, b];
        Link back = _links[b, a];
        Drop(a, b);
        Drop(b, a);
        there.Up = back.Up = true;
        there.Epoch = back.Epoch = there.Epoch + 1;
        there.LastNs = back.LastNs = there.UrgentLastNs = back.UrgentLastNs = 0;
        _scheduler.Note(SimEvent.LinkUp, a, b);
        _nodes[a - 1].Meet(_nodes[b - 1]);
        _nodes[b - 1].Meet(_nodes[a - 1]);
        _nodes[a - 1].LinkChanged(b, up: true);
        _nodes[b - 1].LinkChanged(a, up: true);
    }

    private sealed class Link
    {
        public bool Up;
        public bool Cut;
        public bool Seeking;
        public int Epoch;
        public long LastNs;
        public long UrgentLastNs;
        public long ExtraNs;
    }
}
