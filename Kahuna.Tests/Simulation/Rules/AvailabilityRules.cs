using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Simulation.Network;
using Kahuna.Tests.Simulation.Nodes;

namespace Kahuna.Tests.Simulation.Rules;

/// <summary>
/// A majority whose nodes and links are whole serves, also while faults last elsewhere. Looked at every 100 ms: in each
/// group some node leads, serves and can commit, unless something began or ended within <see cref="LimitNs"/>. Owned by
/// one run.
/// </summary>
internal sealed class AvailabilityRules
{
    /// <summary>
    /// Entries that a member may be behind when all is whole, and the time that one after the other may take: in some
    /// seeds each needs a round trip.
    /// </summary>
    private const ulong EntriesBehindMax = 20;
    private const long CatchUpNs = 150_000_000;

    /// <summary>
    /// A new leader serves within so long, with the election timeout that servers have unless told otherwise.
    /// </summary>
    private const long ServiceNs = 4_500_000_000;

    /// <summary>
    /// An election timeout has room for so many delays of one way. Where it has not, elections succeed by chance.
    /// </summary>
    private const int DelaysPerTimeout = 20;

    /// <summary>
    /// Links over TCP lose nothing: with more losses than that, heartbeats are missed by chance again and again.
    /// </summary>
    private const double LossMax = 0.03;

    private readonly SimConfig _config;
    private readonly IReadOnlyList<SimNode> _nodes;
    private readonly PeerNetwork _peers;
    private readonly Action<string, string> _breaks;
    private readonly int _count;
    private readonly ulong _behindMax;
    private readonly int[] _majorities;
    private readonly NodeShape[] _shapes;
    private readonly LinkShape[,] _links;

    // Of links: since when both ends and both ways are whole.
    private readonly long[,] _wholeSinceNs;
    private readonly GroupView[] _groups;
    private long _changedNs;

    // How late things arrive over the slowest link. A leader outside of the majority may be at its end, and answers as
    // late.
    private long _slowestNs;

    public AvailabilityRules(
        SimConfig config, IReadOnlyList<SimNode> nodes, PeerNetwork peers, Action<string, string> breaks)
    {
        _config = config;
        _nodes = nodes;
        _peers = peers;
        _breaks = breaks;
        _count = config.Nodes;
        _behindMax = Math.Min(EntriesBehindMax, (ulong)(CatchUpNs / (2 * config.DelayNs)));
        _majorities = [.. Enumerable.Range(1, (1 << _count) - 1).Where(set => int.PopCount(set) == (_count / 2) + 1)];
        _shapes = new NodeShape[_count];
        _links = new LinkShape[_count, _count];
        _wholeSinceNs = new long[_count, _count];
        _groups = [.. Enumerable.Range(0, config.Layout.Count).Select(_ => new GroupView(_count))];
        peers.ChunkArrived = Arrived;
        IsJudged = config.DelayNs * DelaysPerTimeout <= config.ElectionNs && config.Loss <= LossMax;
    }

    /// <summary>The delays and losses of this seed leave elections a chance.</summary>
    public bool IsJudged { get; }

    /// <summary>How often a group was looked at that had to be served: nothing had changed for long enough.</summary>
    public long Judged { get; private set; }

    /// <summary>
    /// How long a group may be without service after the last change: 4.5 s, or six election timeouts where a seed
    /// draws long ones. A follower waits for up to two until it asks for votes, and an election that is split is
    /// repeated: twice, where two candidates can get half of the votes that are left each. Eight in a cluster of an
    /// even number: without one of its nodes, nobody is elected whom two of the others refuse. Twice as long where
    /// frames are lost: then one election in ten fails, and sometimes several in a row.
    /// </summary>
    public long LimitNs => LimitOf(_config) * (_config.Loss > 0 ? 2 : 1);

    /// <summary>
    /// An ephemeral group begins when the meta group says so, and an epoch whose majority may have forgotten it is
    /// given up first, when those who remember have waited for it.
    /// </summary>
    private long EphemeralLimitNs =>
        (2 * LimitNs) + (((long)_config.Pledges.AmnesiacMs + _config.Pledges.OtherMs) * 1_000_000L);

    /// <summary>The same, of a seed in which no frames are lost.</summary>
    public static long LimitOf(SimConfig config) =>
        Math.Max(ServiceNs, (config.Nodes % 2 == 0 ? 8 : 6) * config.ElectionNs);

    /// <summary>Since when everything is whole, and every group is served.</summary>
    public long QuietSinceNs { get; private set; }

    /// <summary>Something happens that cannot be seen by looking.</summary>
    public void Disturbed(long nowNs) => QuietSinceNs = nowNs;

    /// <summary>
    /// A node has come further in a snapshot than at any time since the last change. It is not filled yet, however
    /// long its log is: a log that was lost may end with entries that do not count.
    /// </summary>
    private void Arrived(int node, SnapshotHeader chunk)
    {
        int slot = _config.Layout.IndexOf(chunk.Group);
        if (chunk.Chunk >= _groups[slot].Chunks[node - 1])
        {
            _groups[slot].Chunks[node - 1] = chunk.Chunk + 1;
            _groups[slot].Filling |= 1 << (node - 1);
        }
    }

    /// <summary>The groups as they are 100 ms later.</summary>
    public void Look(long nowNs, bool haveClientsCuts)
    {
        if (!IsJudged)
        {
            return;
        }

        bool isQuiet = LookAtShapes(nowNs) && !haveClientsCuts;
        bool areClocksFine = true;
        foreach (NodeShape shape in _shapes)
        {
            areClocksFine &= shape.IsClockFine;
        }

        (long sinceNs, int members) = areClocksFine ? Majority() : (long.MaxValue, 0);
        for (int slot = 0; slot < _groups.Length; slot++)
        {
            GroupView group = _groups[slot];
            bool serves = Serves(slot, group);
            isQuiet &= serves;
            if (serves)
            {
                group.ServedNs = nowNs;
            }

            if (members == 0)
            {
                continue;
            }

            Judge(slot, group, members, nowNs - sinceNs, nowNs);
        }

        QuietSinceNs = isQuiet ? QuietSinceNs : nowNs;
    }

    private void Judge(int slot, GroupView group, int members, long wholeNs, long nowNs)
    {
        GroupId name = _config.Layout.GroupOf(slot);
        long limitNs = (name.IsEphemeral ? EphemeralLimitNs : LimitNs) + (2 * _slowestNs);
        if (NeedsSnapshot(slot, members) || (group.Filling & members) != 0)
        {
            group.FilledNs = nowNs;
        }

        group.Filling = 0;

        wholeNs = Math.Min(wholeNs, nowNs - group.FilledNs);
        if (wholeNs <= limitNs || WereBehind(group, members))
        {
            return;
        }

        Judged++;
        if (nowNs - group.ServedNs > limitNs)
        {
            string whole = string.Join(
                ", ", _nodes.Where(node => (members & (1 << (node.Id - 1))) != 0).Select(static node => node.Id));
            _breaks(
                "a majority that is whole serves",
                $"{name.Name} was not served for {(nowNs - group.ServedNs) / 1_000_000} ms, though the nodes {whole} "
                    + $"and what is between them are whole for {wholeNs / 1_000_000} ms; "
                    + $"{limitNs / 1_000_000} ms are enough");
        }
    }

    /// <summary>True when everything is whole.</summary>
    private bool LookAtShapes(long nowNs)
    {
        bool changed = false;
        bool isWhole = true;
        _slowestNs = 0;
        for (int i = 0; i < _count; i++)
        {
            NodeShape shape = NodeShape.Of(_nodes[i]);
            changed |= shape != _shapes[i];
            isWhole &= shape.IsWhole;
            _shapes[i] = shape;
        }

        for (int a = 0; a < _count; a++)
        {
            for (int b = 0; b < _count; b++)
            {
                if (a == b)
                {
                    continue;
                }

                LinkShape link = _peers.ShapeOf(a + 1, b + 1);
                changed |= link.IsCut != _links[a, b].IsCut || link.ExtraNs != _links[a, b].ExtraNs;
                _slowestNs = Math.Max(_slowestNs, link.ExtraNs);
                isWhole &= link is { IsOpen: true, IsUp: true };
                if (link != _links[a, b] || !link.IsOpen || !link.IsUp || !_shapes[a].IsWhole || !_shapes[b].IsWhole)
                {
                    _wholeSinceNs[a, b] = nowNs;
                }

                _links[a, b] = link;
            }
        }

        if (changed)
        {
            _changedNs = nowNs;
            for (int slot = 0; slot < _groups.Length; slot++)
            {
                Remember(slot);
            }
        }

        return isWhole && !changed;
    }

    /// <summary>Notes the end of each node's log. A node that is not in the newest epoch yet counts as empty.</summary>
    private void Remember(int slot)
    {
        GroupView group = _groups[slot];
        group.Committed = 0;
        ulong epoch = NewestEpoch(slot);
        for (int i = 0; i < _count; i++)
        {
            group.Chunks[i] = 0;
            group.Last[i] = LastOf(i, slot, epoch);
            group.Committed = Math.Max(group.Committed, At(i, slot) is var (of, commit) && of == epoch ? commit : 0);
        }
    }

    /// <summary>
    /// At the last change, one of these members was far behind another one, or behind the newest commit.
    /// </summary>
    private bool WereBehind(GroupView group, int members)
    {
        ulong newest = group.Committed;
        ulong oldest = ulong.MaxValue;
        for (int i = 0; i < _count; i++)
        {
            if ((members & (1 << i)) != 0)
            {
                newest = Math.Max(newest, group.Last[i]);
                oldest = Math.Min(oldest, group.Last[i]);
            }
        }

        return oldest + _behindMax < newest;
    }

    /// <summary>
    /// One of these members needs entries that the others have cut from their logs. It needs a snapshot, even if it is
    /// only a few entries behind.
    /// </summary>
    private bool NeedsSnapshot(int slot, int members)
    {
        ulong epoch = NewestEpoch(slot);
        ulong start = 0;
        ulong oldest = ulong.MaxValue;
        for (int i = 0; i < _count; i++)
        {
            if ((members & (1 << i)) != 0)
            {
                ulong last = LastOf(i, slot, epoch);
                start = Math.Max(start, last == 0 ? 0 : _nodes[i].Loops!.Group(slot).Core.LogStart.Value);
                oldest = Math.Min(oldest, last);
            }
        }

        return oldest < start;
    }

    private ulong NewestEpoch(int slot)
    {
        ulong epoch = 0;
        for (int i = 0; i < _count; i++)
        {
            epoch = Math.Max(epoch, At(i, slot).Epoch);
        }

        return epoch;
    }

    private ulong LastOf(int node, int slot, ulong epoch) =>
        At(node, slot).Epoch == epoch ? _nodes[node].Loops?.Group(slot).Core.LastIndex.Value ?? 0 : 0;

    private (ulong Epoch, ulong Commit) At(int node, int slot) =>
        _nodes[node].Loops?.Group(slot) is { } partition ? At(partition) : default;

    /// <summary>
    /// How far a node's part of a group has come. The log of an ephemeral group begins anew with each epoch, and its
    /// indexes with it.
    /// </summary>
    private static (ulong Epoch, ulong Commit) At(Group partition) =>
        (partition.Status.Epoch.Value, partition.Core.CommitIndex.Value);

    private static (ulong Epoch, ulong Commit) Later((ulong Epoch, ulong Commit) a, (ulong Epoch, ulong Commit) b) =>
        a.CompareTo(b) < 0 ? b : a;

    /// <summary>The majority that is whole for the longest time, and since when nothing has changed.</summary>
    private (long SinceNs, int Members) Majority()
    {
        (long sinceNs, int members) = (long.MaxValue, 0);
        foreach (int set in _majorities)
        {
            long latest = 0;
            bool whole = true;
            for (int a = 0; a < _count; a++)
            {
                if ((set & (1 << a)) == 0)
                {
                    continue;
                }

                whole &= _shapes[a].IsWhole;
                for (int b = 0; b < _count; b++)
                {
                    if (a != b && (set & (1 << b)) != 0)
                    {
                        whole &= _links[a, b] is { IsOpen: true, IsUp: true };
                        latest = Math.Max(latest, _wholeSinceNs[a, b]);
                    }
                }
            }

            if (whole && latest < sinceNs)
            {
                (sinceNs, members) = (latest, set);
            }
        }

        return (Math.Max(sinceNs, _changedNs), members);
    }

    /// <summary>
    /// A node leads, serves, and commits: it has committed something since the last look, or has nothing to commit and
    /// reaches a majority both ways. It may still be rejoining with other groups: in the epoch of an ephemeral group it
    /// is a member as any other.
    /// </summary>
    private bool Serves(int slot, GroupView group)
    {
        for (int i = 0; i < _count; i++)
        {
            if (!_shapes[i].IsRunning
                || _nodes[i].Loops?.Group(slot) is not { IsLeader: true, Status.Serving: true } partition)
            {
                continue;
            }

            (ulong Epoch, ulong Commit) at = At(partition);
            bool progress = Later(group.Commit, at) != group.Commit;
            group.Commit = Later(group.Commit, at);
            if (progress || (at.Commit == partition.Core.LastIndex.Value && Reaches(i)))
            {
                return true;
            }
        }

        return false;
    }

    private bool Reaches(int leader)
    {
        int reached = 1;
        for (int other = 0; other < _count; other++)
        {
            reached += other != leader
                && _shapes[other] is { IsRunning: true, IsRejoining: false }
                && _links[leader, other] is { IsCut: false, IsUp: true }
                && _links[other, leader] is { IsCut: false, IsUp: true }
                ? 1
                : 0;
        }

        return reached > _count / 2;
    }

    /// <summary>What of a node decides whether it can serve.</summary>
    private readonly record struct NodeShape(
        int Life, bool IsRunning, bool IsRejoining, bool IsDiskFine, bool IsClockFine)
    {
        public bool IsWhole => IsRunning && !IsRejoining && IsDiskFine && IsClockFine;

        public static NodeShape Of(SimNode node) => new(
            node.Life,
            node is { IsUp: true, IsPaused: false },
            node.IsRejoining,
            node is { SyncFactor: 1, Hung.IsHung: false } && node.Disk.Capacity > long.MaxValue / 4,
            node.Clock.Rate == 1);
    }

    /// <summary>What was seen of one group.</summary>
    private sealed class GroupView(int count)
    {
        public long ServedNs { get; set; }

        /// <summary>How far the group has come.</summary>
        public (ulong Epoch, ulong Commit) Commit { get; set; }

        /// <summary>When a member of the majority last needed a snapshot, or came further in one.</summary>
        public long FilledNs { get; set; }

        /// <summary>Which nodes have come further in a snapshot since the last look.</summary>
        public int Filling { get; set; }

        /// <summary>Since the last change: how many chunks of a snapshot each node has got.</summary>
        public ulong[] Chunks { get; } = new ulong[count];

        /// <summary>At the last change: what was committed, in the newest epoch.</summary>
        public ulong Committed { get; set; }

        /// <summary>At the last change: the end of each node's log, in the newest epoch.</summary>
        public ulong[] Last { get; } = new ulong[count];
    }
}
