using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Snapshots;

/// <summary>
/// Records of a state that is in memory only: a view of it, whose slices the loop fills one at a time when they are
/// asked for. Owned by the <see cref="SnapshotSource"/>; the slice belongs to the loop while it is asked for.
/// </summary>
internal sealed class LiveRecords(BeginView begun, CheckpointMark mark, ICheckpointLoops loops) : ISnapshotRecords
{
    private ViewSlice? _slice;
    private bool _areRowsRead;
    private int _preImagesRead;
    private bool _isAsked;
    private bool _isOver;

    public ulong Transfer => begun.Transfer;

    public CheckpointMark Mark => mark;

    public SnapshotRead Read(ByteBuffer target, int bytesMax)
    {
        if (_slice is { Bytes: > 0 } filled && TryRead(filled, target, bytesMax))
        {
            return SnapshotRead.Some;
        }

        if (_isOver)
        {
            return SnapshotRead.End;
        }

        if (!_isAsked)
        {
            _isAsked = true;
            ViewSlice slice = _slice ?? new ViewSlice(bytesMax);
            _slice = null;
            loops.Post(new TakeRecords(begun.Group, slice, bytesMax, begun.Transfer) { Epoch = begun.Epoch });
        }

        return SnapshotRead.NotYet;
    }

    /// <summary>
    /// Appends what is left of a slice, some of it at a time: records that changed meanwhile may be as many as the
    /// whole state. False when nothing was left.
    /// </summary>
    private bool TryRead(ViewSlice filled, ByteBuffer target, int bytesMax)
    {
        int before = target.Length;
        if (!_areRowsRead)
        {
            target.Append(filled.Rows.Written);
            _areRowsRead = true;
        }

        while (_preImagesRead < filled.PreImages.Count && target.Length - before < bytesMax)
        {
            target.Append(filled.PreImages[_preImagesRead++]);
        }

        if (target.Length > before)
        {
            return true;
        }

        filled.Clear();
        _areRowsRead = false;
        _preImagesRead = 0;
        return false;
    }

    /// <summary>The loop has filled the slice.</summary>
    public void Taken(RecordsTaken taken)
    {
        InvariantException.Require(_isAsked && _slice is null, "a slice comes back when it was asked for");
        _isAsked = false;
        _isOver = !taken.More;
        _slice = taken.Slice;
    }

    public void Dispose()
    {
        _slice?.Clear();
        _slice?.Rows.Return();
        _slice = null;
        loops.Post(new EndView(begun.Group, begun.Transfer) { Epoch = begun.Epoch });
    }
}
