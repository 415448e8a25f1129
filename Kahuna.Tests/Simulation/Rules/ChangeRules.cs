using Kahuna.Server.Partitions.Changes;
using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Simulation.Rules;

/// <summary>
/// The change logs of all nodes tell the same: each is read as soon as its node has applied something. Owned by one
/// run.
/// </summary>
internal sealed class ChangeRules
{
    public const string AgeRule = "a node that says when it had all changes had them";

    private readonly GroupLayout _layout;
    private readonly long _unsureNs;
    private readonly bool _areAgesJudged;
    private readonly Action<string, string> _breaks;
    private readonly GroupChanges?[] _groups;
    private readonly Tap?[] _taps;
    private readonly ByteBuffer _read = ByteBuffer.Rent();

    public ChangeRules(SimConfig config, Action<string, string> breaks)
    {
        _layout = config.Layout;
        _unsureNs = (2 * config.ElectionNs) + (20 * config.DelayNs) + (2_000_000L * config.TickMs);
        _areAgesJudged = !config.Classes.Overlaps(
            [FaultClass.Pause, FaultClass.Clog, FaultClass.LateAnswers, FaultClass.ClockDrift]);
        _breaks = breaks;
        _groups = new GroupChanges?[_layout.Count];
        _taps = new Tap?[config.Nodes * _layout.Count];
        for (int slot = 0; slot < _layout.Count; slot++)
        {
            GroupId group = _layout.GroupOf(slot);
            _groups[slot] = group.IsMeta ? null : new GroupChanges(group.Value, group.Name, breaks);
        }
    }

    /// <summary>Changes of all groups.</summary>
    public int Count => _groups.Sum(static group => group?.All.Count ?? 0);

    /// <summary>The changes of the group at an index; null for the meta group.</summary>
    public GroupChanges? Of(int slot) => _groups[slot];

    /// <summary>After code of a node has run.</summary>
    public void Look(SimNode node, int slot, Group partition)
    {
        if (node.ChangeLogs?[slot] is not { } log)
        {
            return;
        }

        ref Tap? tap = ref _taps[((node.Id - 1) * _layout.Count) + slot];
        if (tap?.Log != log)
        {
            tap = new Tap(log) { Cursor = new ChangeCursor(log.Status.Lost) };
            _groups[slot]!.Begin(tap.Cursor.Point);
        }

        ChangePoint applied = log.Status.Applied;
        if (applied.Index != partition.Applied.Value)
        {
            _breaks(
                GroupChanges.Rule,
                $"node {node.Id} has applied {partition.Applied} entries of {partition.Id.Name}, and its change log is "
                    + $"at {GroupChanges.Text(applied)}");
        }

        if (tap.Cursor.Point != applied)
        {
            Read(node, tap, _groups[slot]!);
        }

        CheckAge(node, slot, tap);
    }

    /// <summary>
    /// A node says when it was last sure to have everything that was committed. It hears of a later leader within two
    /// election timeouts, where no message takes longer.
    /// </summary>
    private void CheckAge(SimNode node, int slot, Tap tap)
    {
        NodeTime at = tap.Log.Status.CaughtUpAt;
        if (at != tap.CaughtUpAt)
        {
            tap.CaughtUpAt = at;
            CheckAge(node, slot, tap.Log.Status.Applied, node.Clock.GetTimestamp() - (at.Ms * 1_000_000));
        }
    }

    /// <summary>A node says when it had everything, by its clock, and tells everything up to a point.</summary>
    public void CheckAge(SimNode node, int slot, ChangePoint point, long ageNs)
    {
        if (!_areAgesJudged)
        {
            return;
        }

        ChangePoint first = _groups[slot]!.ThroughAt(node.Scheduler.NowNs - node.Clock.ToRun(ageNs) - _unsureNs);
        if (first > point)
        {
            _breaks(
                AgeRule,
                $"node {node.Id} says that it had all changes of {_layout.GroupOf(slot).Name} {ageNs / 1_000_000} ms "
                    + $"ago, tells those up to {GroupChanges.Text(point)}, and others had {GroupChanges.Text(first)} "
                    + $"{_unsureNs / 1_000_000} ms before that");
        }
    }

    private void Read(SimNode node, Tap tap, GroupChanges changes)
    {
        string who = $"the change log of node {node.Id}";
        while (true)
        {
            ChangePoint after = tap.Cursor.Point;
            _read.Length = 0;
            ChangeRead result = tap.Log.Read(ref tap.Cursor, _read, int.MaxValue);
            ReadOnlySpan<byte> rest = _read.Written;
            while (ToldChange.TryTake(
                ref rest,
                tap.Log.Group.Value,
                after.Epoch,
                out ChangePoint point,
                out ReadOnlySpan<byte> record))
            {
                changes.Tell(who, after, point, record, mayBeFirst: true);
                after = point;
            }

            switch (result)
            {
                case ChangeRead.End:
                    changes.Reach(who, after, tap.Cursor.Point, node.Scheduler.NowNs);
                    return;
                case ChangeRead.Compacted or ChangeRead.EpochBegan:
                    changes.Begin(tap.Cursor.Point);
                    break;
                case ChangeRead.Ahead:
                    _breaks(GroupChanges.Rule, $"{who} went back before {GroupChanges.Text(after)}");
                    return;
                default:
                    break;
            }
        }
    }

    /// <summary>The reader that looks at one node's log at once.</summary>
    private sealed class Tap(ChangeLog log)
    {
        public ChangeCursor Cursor;

        public ChangeLog Log => log;

        public NodeTime CaughtUpAt { get; set; }
    }
}
