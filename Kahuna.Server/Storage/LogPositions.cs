using System.Runtime.InteropServices;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Storage;

/// <summary>
/// What lies where in the log, as far as it is on stable storage. Recovery fills it, then the log thread does, after each sync;
/// readers look things up from their own threads. Everything under one lock, held for one batch or one look-up.
/// </summary>
internal sealed class LogPositions
{
    private readonly Lock _lock = new();
    private readonly Dictionary<uint, GroupPositions> _groups = [];
    private readonly List<long> _ends = [];
    private ulong _firstSegment;

    /// <summary>Bytes of all segments up to their ends.</summary>
    public long Bytes { get; private set; }

    /// <summary>All groups, for the log thread only: nobody else changes them.</summary>
    public IReadOnlyCollection<KeyValuePair<uint, GroupPositions>> Groups => _groups;

    /// <summary>One group; for the log thread and before it starts.</summary>
    public GroupPositions? Find(GroupId group) => _groups.GetValueOrDefault(group.Value);

    /// <summary>Adds a segment behind the last one; it ends where its header does.</summary>
    public void AddSegment(ulong segment)
    {
        lock (_lock)
        {
            if (_ends.Count == 0)
            {
                _firstSegment = segment;
            }

            InvariantException.Require(segment == _firstSegment + (ulong)_ends.Count, "segments follow each other");
            _ends.Add(SegmentHeader.Bytes);
            Bytes += SegmentHeader.Bytes;
        }
    }

    /// <summary>Forgets the last segment, which has no batch.</summary>
    public void DropLastSegment(ulong segment)
    {
        lock (_lock)
        {
            int last = _ends.Count - 1;
            InvariantException.Require(last > 0 && segment == _firstSegment + (ulong)last && _ends[last] == SegmentHeader.Bytes, "only an unused last segment is dropped");
            _ends.RemoveAt(last);
            Bytes -= SegmentHeader.Bytes;
        }
    }

    /// <summary>Takes in one whole batch that is on stable storage: its records as written (checksums are not looked at).</summary>
    public void AddRecords(ulong segment, long offset, ReadOnlySpan<byte> records)
    {
        lock (_lock)
        {
            while (!records.IsEmpty)
            {
                RecordHeader.TryRead(records, out RecordHeader header);
                Add(segment, offset, header, records.Slice(RecordHeader.Bytes, header.PayloadLength));
                offset += header.RecordBytes;
                records = records[(int)header.RecordBytes..];
            }

            int last = (int)(segment - _firstSegment);
            Bytes += offset - _ends[last];
            _ends[last] = offset;
        }
    }

    /// <summary>Whether entries at this index follow on what the group has; recovery asks before it adds.</summary>
    public bool Accepts(GroupId group, ulong first) => !_groups.TryGetValue(group.Value, out GroupPositions? positions) ? first > 0 : positions.Accepts(first);

    /// <summary>
    /// Where to begin reading for an entry, up to which index from there, and how often the group was overwritten so far; false when the log does
    /// not hold the entry.
    /// </summary>
    public bool TryFind(GroupId group, LogIndex index, out RecordPosition position, out LogIndex until, out ulong overwrites)
    {
        lock (_lock)
        {
            if (!_groups.TryGetValue(group.Value, out GroupPositions? positions) || index > positions.LastIndex || index < positions.FirstIndex || index.Value == 0)
            {
                position = default;
                until = default;
                overwrites = 0;
                return false;
            }

            position = positions.Find(index, out until);
            overwrites = positions.Overwrites;
            return true;
        }
    }

    /// <summary>How often entries of the group were overwritten.</summary>
    public ulong Overwrites(GroupId group)
    {
        lock (_lock)
        {
            return _groups.TryGetValue(group.Value, out GroupPositions? positions) ? positions.Overwrites : 0;
        }
    }

    /// <summary>Where a segment's last batch ends.</summary>
    public long EndOf(ulong segment)
    {
        lock (_lock)
        {
            ulong at = segment - _firstSegment;
            return at < (ulong)_ends.Count ? _ends[(int)at] : 0;
        }
    }

    private void Add(ulong segment, long offset, in RecordHeader header, ReadOnlySpan<byte> payload)
    {
        switch (header.Kind)
        {
            case RecordKind.Entries:
                Group(header.Group).Add(header.Number, header.Count, header.RecordBytes, segment, offset);
                break;
            case RecordKind.HardState:
                Group(header.Group).HardState = LogRecord.ReadHardState(payload, out _);
                break;
            case RecordKind.Checkpoint:
                for (int i = 0; i < header.Count; i++)
                {
                    HardState state = LogRecord.ReadHardState(payload[(i * LogRecord.HardStateBytes)..], out GroupId group);
                    Group(group).HardState = state;
                }

                break;
        }
    }

    private GroupPositions Group(GroupId group)
    {
        ref GroupPositions? positions = ref CollectionsMarshal.GetValueRefOrAddDefault(_groups, group.Value, out _);
        return positions ??= new GroupPositions();
    }
}
