using Kahuna.Server.Partitions.Changes;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// The change logs of a node, by group index; the meta group has none. Built at the node's start; immutable. Any
/// thread.
/// </summary>
internal sealed class ChangeLogs
{
    private readonly ChangeLog?[] _logs;

    /// <summary>Logs for all groups with keys, which share the bytes equally.</summary>
    /// <param name="layout">The groups of the node.</param>
    /// <param name="bytesMax">Bytes of all of them.</param>
    /// <param name="segmentBytes">Bytes of a segment of a log.</param>
    public ChangeLogs(GroupLayout layout, long bytesMax, int segmentBytes = ChangeLog.SegmentBytes)
    {
        _logs = new ChangeLog?[layout.Count];
        for (int i = 0; i < _logs.Length; i++)
        {
            GroupId group = layout.GroupOf(i);
            _logs[i] = group.IsMeta ? null : new ChangeLog(group, bytesMax / _logs.Length, segmentBytes);
        }
    }

    /// <summary>Number of group indexes.</summary>
    public int Count => _logs.Length;

    /// <summary>The log of the group with an index; null: it has none.</summary>
    public ChangeLog? this[int groupIndex] => _logs[groupIndex];

    /// <summary>The same, for the owner of the group.</summary>
    public IChangeLog? Of(int groupIndex) => _logs[groupIndex];
}
