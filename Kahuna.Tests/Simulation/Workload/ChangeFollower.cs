using Kahuna.Server.Partitions.Changes;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Tests.Simulation.Rules;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// Follows the changes of all groups at its own pace: reads one node's change log, goes on at another node, and begins
/// again where it was earlier. Whatever it does, it is told every change behind the point where it begins, once and in
/// order, or that some are gone. Owned by one run.
/// </summary>
internal sealed class ChangeFollower
{
    /// <summary>For each group a part of what is there is read at once.</summary>
    private static readonly int[] s_readBytes = [1, 100, 1_000, 20_000, int.MaxValue];

    private readonly SimCluster _cluster;
    private readonly SimRandom _random;
    private readonly string _name;
    private readonly double _pauseMs;
    private readonly Place[] _places;
    private readonly ByteBuffer _read = ByteBuffer.Rent();

    public ChangeFollower(SimCluster cluster, int number)
    {
        _cluster = cluster;
        _random = new SimRandom(cluster.Config.Seed).Fork(36_000 + (ulong)number);
        _name = $"follower {number}";
        _pauseMs = _random.Pick([20, 100, 1_000, 5_000]);
        GroupLayout layout = cluster.Config.Layout;
        _places = new Place[layout.Count];
        for (int slot = 0; slot < layout.Count; slot++)
        {
            ChangePoint start = ChangePoint.After(layout.GroupOf(slot).Value, 0, 0);
            _places[slot] = new Place
            {
                Node = 1 + _random.Next(cluster.Config.Nodes),
                Cursor = new ChangeCursor(start),
                Kept = start,
            };
        }
    }

    /// <summary>Changes that it was told.</summary>
    public long Told { get; private set; }

    /// <summary>How often it was told that changes are gone.</summary>
    public long Compacted { get; private set; }

    /// <summary>How often it was told of a new epoch.</summary>
    public long EpochsBegun { get; private set; }

    /// <summary>How often a node had not applied yet what another one had told.</summary>
    public long Ahead { get; private set; }

    public void Start() => Pause();

    /// <summary>Everything is over: it reads what is left on each node.</summary>
    public void Finish()
    {
        foreach (SimNode node in _cluster.Nodes)
        {
            for (int slot = 0; slot < _places.Length; slot++)
            {
                if (_cluster.Rules.Changes.Of(slot) is { } changes)
                {
                    Place place = _places[slot];
                    place.MoveTo(node.Id, place.Cursor.Point);
                    while (Read(node, place, slot, changes, int.MaxValue) is not (ChangeRead.End or ChangeRead.Ahead))
                    {
                    }

                    changes.Reach($"{_name} on node {node.Id}", place.Cursor.Point, changes.Through);
                }
            }
        }
    }

    private void Pause() =>
        _cluster.Scheduler.After(1_000 + (long)(_random.Exponential(_pauseMs) * 1_000_000), Step);

    private void Step()
    {
        int slot = _random.Next(_places.Length);
        if (_cluster.Rules.Changes.Of(slot) is { } changes)
        {
            Step(slot, _places[slot], changes);
        }

        Pause();
    }

    private void Step(int slot, Place place, GroupChanges changes)
    {
        if (_random.Chance(0.1))
        {
            place.MoveTo(1 + _random.Next(_cluster.Config.Nodes), place.Cursor.Point);
        }

        if (_random.Chance(0.05))
        {
            // It has forgotten what came since.
            place.MoveTo(place.Node, place.Kept);
        }

        if (_random.Chance(0.1))
        {
            place.Kept = place.Cursor.Point;
        }

        SimNode node = _cluster.Nodes[place.Node - 1];
        if (node is { IsUp: true, IsPaused: false })
        {
            Read(node, place, slot, changes, _random.Pick(s_readBytes));
        }
    }

    private ChangeRead Read(SimNode node, Place place, int slot, GroupChanges changes, int bytesMax)
    {
        ChangeLog log = node.ChangeLogs![slot]!;
        place.Enter(log);
        string who = $"{_name} on node {node.Id}";
        ChangePoint after = place.Cursor.Point;
        ChangeLogStatus status = log.Status;
        _read.Length = 0;
        ChangeRead result = log.Read(ref place.Cursor, _read, bytesMax);
        ReadOnlySpan<byte> rest = _read.Written;
        while (ToldChange.TryTake(
            ref rest, log.Group.Value, after.Epoch, out ChangePoint point, out ReadOnlySpan<byte> record))
        {
            changes.Tell(who, after, point, record);
            after = point;
            Told++;
        }

        switch (result)
        {
            case ChangeRead.Compacted when after >= status.Lost || place.Cursor.Point < status.Lost:
                _cluster.Rules.Break(
                    GroupChanges.Rule,
                    $"{who}: {GroupChanges.Text(after)} is said to be gone and goes on at "
                        + $"{GroupChanges.Text(place.Cursor.Point)}; lost is {GroupChanges.Text(status.Lost)}");
                break;
            case ChangeRead.Compacted when place.Cursor.Point.N != ChangePoint.AllOfEntry:
                _cluster.Rules.Break(
                    ChangeHistory.WholeRule,
                    $"{who} goes on in the middle of an entry, at {GroupChanges.Text(place.Cursor.Point)}");
                break;
            case ChangeRead.Compacted:
                Compacted++;
                break;
            case ChangeRead.EpochBegan:
                EpochsBegun++;
                break;
            case ChangeRead.Ahead:
                Ahead++;
                break;
            case ChangeRead.More or ChangeRead.End:
                changes.Reach(who, after, place.Cursor.Point);
                break;
            default:
                break;
        }

        return result;
    }

    /// <summary>Where it is in one group.</summary>
    private sealed class Place
    {
        private ChangeLog? _log;

        public ChangeCursor Cursor;

        public int Node { get; set; }

        /// <summary>A point that it may begin from again.</summary>
        public ChangePoint Kept { get; set; }

        public void MoveTo(int node, ChangePoint point)
        {
            Node = node;
            Cursor = new ChangeCursor(point);
        }

        /// <summary>A cursor belongs to one log; only its point is of use for another.</summary>
        public void Enter(ChangeLog log)
        {
            if (_log != log)
            {
                _log = log;
                Cursor = new ChangeCursor(Cursor.Point);
            }
        }
    }
}
