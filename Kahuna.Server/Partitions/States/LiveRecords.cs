using Kahuna.Client.Wire.Buffers;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions.States;

/// <summary>
/// Records of a state that is in memory only: a view of it, whose slices the loop fills one at a time when they are asked for. Owned by the <see cref="SnapshotSource"/>; the slice
/// belongs to the loop while it is asked for.
/// </summary>
internal sealed class LiveRecords(BeginView begun, StateMark mark, IStateLoops loops) : ISnapshotRecords
{
    private StateSlice? _slice;
    private bool _isAsked;
    private bool _isOver;

    public ulong Transfer => begun.Transfer;

    public StateMark Mark => mark;

    public SnapshotRead Read(ByteBuffer target, int bytesMax)
    {
        if (_slice is { Bytes: > 0 } filled)
        {
            target.Append(filled.Rows.Written);
            foreach (ArraySegment<byte> chunk in filled.Aside)
            {
                target.Append(chunk);
            }

            filled.Clear();
            return SnapshotRead.Some;
        }

        if (_isOver)
        {
            return SnapshotRead.End;
        }

        if (!_isAsked)
        {
            _isAsked = true;
            StateSlice slice = _slice ?? new StateSlice(bytesMax);
            _slice = null;
            loops.Post(new TakeRecords(begun.Group, slice, bytesMax, begun.Transfer) { Epoch = begun.Epoch });
        }

        return SnapshotRead.NotYet;
    }

    /// <summary>The loop has filled the slice.</summary>
    public void Taken(RecordsTaken taken)
    {
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
