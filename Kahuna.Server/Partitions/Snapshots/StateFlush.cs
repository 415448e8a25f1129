using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions.Snapshots;

/// <summary>
/// Brings states to the store, one group after the other: asks the group's loop for a view and its records slice by
/// slice, writes them, commits, and tells the loop. While a slice is written the loop fills the next one. Owned by the
/// <see cref="CheckpointService"/>.
/// </summary>
internal sealed class StateFlush(CheckpointOptions options, CheckpointPorts ports) : IDisposable
{
    private readonly Queue<GroupId> _due = new();
    private readonly HashSet<GroupId> _dueWhole = [];
    private readonly RateLimiter _rate = new(options.BytesPerSecond);
    private GroupId _group;
    private Stage _stage;
    private LogIndex _index;
    private LogIndex _storedBefore;
    private IStateWriter? _writer;
    private readonly Stack<ViewSlice> _slices = new();
    private bool _takeNext;
    private NodeTime _dueAt = NodeTime.Never;
    private NodeTime _takenAt;
    private NodeTime _notBefore;
    private NodeTime _restDue = NodeTime.Never;
    private NodeTime _restNotBefore;

    private enum Stage
    {
        Idle,

        /// <summary>The loop was asked for a view.</summary>
        Asked,

        /// <summary>Records come.</summary>
        Writing,
    }

    public ICheckpointLoops? Loops { get; set; }

    /// <summary>Told of a group when what was wanted for it is over, whether it was stored or not.</summary>
    public Action<GroupId> Over { get; set; } = static _ => { };

    public NodeTime Due => _stage switch
    {
        Stage.Idle => _due.Count > 0 ? _notBefore : _restDue,
        Stage.Writing when _takeNext => _dueAt,
        _ => NodeTime.Never,
    };

    public void Want(GroupId group)
    {
        if (!_due.Contains(group) && !(_stage != Stage.Idle && _group == group))
        {
            _due.Enqueue(group);
        }
    }

    /// <summary>
    /// Stores a group's whole state before it is sent, when it has moved on since it was stored: then less log follows,
    /// and what is sent is read from one file. True when that is under way, and <see cref="Over"/> will tell; false
    /// when it is fresh enough.
    /// </summary>
    public bool Freshen(GroupId group)
    {
        if (_stage != Stage.Idle && _group == group)
        {
            return true;
        }

        LogIndex stored = ports.Store.Find(group)?.Index ?? default;
        if (ports.Log.BytesSince(group, stored) <= options.FreshLogBytes)
        {
            return false;
        }

        _dueWhole.Add(group);
        Want(group);
        return true;
    }

    public bool Step(NodeTime now)
    {
        if (_stage == Stage.Idle && _due.Count > 0 && now >= _notBefore)
        {
            _group = _due.Dequeue();
            _stage = Stage.Asked;
            _storedBefore = ports.Store.Find(_group)?.Index ?? default;
            if (!Loops!.Post(new BeginView(_group, _dueWhole.Remove(_group) | ports.Store.WantsWhole(_group))))
            {
                End();
            }

            return true;
        }

        if (_stage == Stage.Idle && _due.Count == 0 && now >= _restDue)
        {
            _restDue = NodeTime.Never;
            _restNotBefore = now + options.RestPauseMs;
            _slices.Clear();
            ports.Store.LetGo();
            ports.Rest();
            return true;
        }

        if (_stage == Stage.Writing && _takeNext && now >= _dueAt)
        {
            _takeNext = false;
            Take();
            return true;
        }

        return false;
    }

    public void Begun(ViewBegun begun, NodeTime now)
    {
        if (begun.Mark is not { } mark)
        {
            End();
            return;
        }

        InvariantException.Require(_stage == Stage.Asked && begun.Group == _group, "a view was asked for");
        _stage = Stage.Writing;
        _index = mark.Index;
        _takenAt = now;
        try
        {
            _writer = ports.Store.BeginWrite(_group, mark, begun.Whole);
        }
        catch (StateWriteException error) when (error.NoSpace)
        {
            NoRoom(error);
            return;
        }

        Take();
    }

    public void Taken(RecordsTaken taken, NodeTime now)
    {
        if (_stage != Stage.Writing || taken.Group != _group)
        {
            Keep(taken.Slice);
            return;
        }

        if (taken.Ended)
        {
            Keep(taken.Slice);
            End();
            return;
        }

        try
        {
            Write(taken, now);
        }
        catch (StateWriteException error) when (error.NoSpace)
        {
            NoRoom(error);
        }
    }

    public void Dispose()
    {
        Over = static _ => { };
        End();
    }

    private void Write(RecordsTaken taken, NodeTime now)
    {
        _rate.Charge(taken.Slice.Bytes);
        ports.Counts.AddStoredBytes(taken.Slice.Bytes);
        if (taken.More)
        {
            // The loop fills the other slice while this one is written, unless the rate says to wait.
            _dueAt = NextAt(taken, now);
            if (_dueAt <= now)
            {
                Take();
            }
            else
            {
                _takeNext = true;
            }

            if (_stage != Stage.Writing)
            {
                // The loops accept no more work: the node stops, and the log has what is not stored.
                Keep(taken.Slice);
                return;
            }
        }

        InvariantException.Require(_writer is not null, "records are written between a view's beginning and its end");
        _writer.Add(taken.Slice.Rows.Written);
        foreach (ArraySegment<byte> chunk in taken.Slice.PreImages)
        {
            _writer.Add(chunk, scattered: true);
        }

        Keep(taken.Slice);
        if (!taken.More)
        {
            _writer.Commit();
            ports.Counts.AddStored();

            // A state of one slice never waits for the rate: what many of them owe is not paid by the first that has
            // two, while a follower needs the next group's state.
            _rate.ForgiveBeyond(options.SliceBytes);
            GroupId group = _group;
            LogIndex index = _index;
            End();
            Loops!.Post(new StateStored(group, index));
            _restDue = NodeTime.Max(now, _restNotBefore);
        }
    }

    /// <summary>
    /// When the next records are to be taken: as the rate says, but before too much is put aside, at the rate at which
    /// that gathered for this slice.
    /// </summary>
    private NodeTime NextAt(RecordsTaken taken, NodeTime now)
    {
        long elapsedMs = Math.Max(1, now - _takenAt);
        long gathered = taken.Slice.PreImageBytes + taken.PreImageBytes;
        _takenAt = now;
        NodeTime ready = _rate.ReadyAt(now);
        NodeTime due = ports.Log.BytesSince(_group, _storedBefore) > options.UrgentLogBytes ? now
            : gathered == 0 ? ready
            : NodeTime.Min(ready, now + (options.AsideBytesMax * elapsedMs / gathered));
        if (due < ready)
        {
            // What had to be faster than the rate is not waited for afterwards: the next group's state would come late.
            _rate.ForgiveBeyond(options.SliceBytes);
        }

        return due;
    }

    private void Take()
    {
        ViewSlice slice = _slices.TryPop(out ViewSlice? kept) ? kept : new ViewSlice(options.SliceBytes * 2);
        if (!Loops!.Post(new TakeRecords(_group, slice, options.SliceBytes)))
        {
            Keep(slice);
            End();
        }
    }

    /// <summary>
    /// The two slices that go back and forth stay here until no other state is due: their buffers are large for those
    /// of the shared pool.
    /// </summary>
    private void Keep(ViewSlice slice)
    {
        slice.Clear();
        _slices.Push(slice);
    }

    /// <summary>
    /// The node goes on without storing: its log still has everything. It is tried again, with everything, after a
    /// pause.
    /// </summary>
    private void NoRoom(StateWriteException error)
    {
        GroupId group = _group;
        ports.Counts.AddNotStored();
        End();
        Loops!.Post(new StateNotStored(group));
        _notBefore = NowAfterPause();
        ports.Report(
            $"State of {group.Name} is not stored: {error.Message} The log keeps everything meanwhile; storing is "
                + $"tried again every {options.NoRoomPauseMs / 1000} s.");
    }

    private NodeTime NowAfterPause() => ports.Clock.Now() + options.NoRoomPauseMs;

    private void End()
    {
        bool wasBusy = _stage != Stage.Idle;
        _stage = Stage.Idle;
        _takeNext = false;
        _writer?.Dispose();
        _writer = null;
        if (wasBusy)
        {
            Over(_group);
        }
    }
}
