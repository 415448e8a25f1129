using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions.Snapshots;

/// <summary>
/// A group's side of checkpoints: when its state is due to be stored, the view that is being taken, what of the log the
/// stored state makes superfluous, and another state that takes its place. Owned by one group; not thread-safe.
/// </summary>
/// <param name="group">The group.</param>
/// <param name="options">When a state is due to be stored.</param>
/// <param name="ports">The log and the checkpoint service.</param>
/// <param name="applied">The group's state.</param>
/// <param name="memory">The group's share of the node's memory.</param>
internal sealed class Checkpointing(GroupId group, LoopOptions options, LoopPorts ports, AppliedState applied,
    MemoryShare memory)
{
    /// <summary>
    /// An ephemeral group keeps so much of its log for members that were away, measured by its state: what they miss
    /// beyond that costs them the whole state.
    /// </summary>
    private const int CachePart = 16;

    private readonly HeldLogs _held = new(group, options, ports);
    private StateView? _view;
    private LogIndex _viewed;
    private RecordsTaken? _lastTaken;
    private bool _asked;
    private bool _wholeNeeded;
    private (LogIndex Index, Term Term) _restart;

    /// <summary>
    /// The group stands still, as if the process were paused, until the state that has arrived is in place.
    /// </summary>
    public bool IsStill { get; private set; }

    /// <summary>Up to this entry the state is in the store.</summary>
    public LogIndex Stored { get; private set; }

    /// <summary>Views that are sent because the state is in memory only.</summary>
    public SentViews Sent { get; } = new(group, applied, ports.Checkpoints);

    /// <summary>State and log are read in; the state is stored up to this entry.</summary>
    public void Recovered(LogIndex stored)
    {
        Stored = stored;
        Release();
    }

    /// <summary>
    /// The log is to begin anew behind the state. Until that is on stable storage nothing of the old log is released:
    /// without its first segments a start may not see that what is left belongs to another history than the state does.
    /// </summary>
    public void LogRestarts(LogIndex index, Term term) => _restart = (index, term);

    /// <summary>
    /// The log is on stable storage up to this entry; <paramref name="durable"/> is what that makes of the log there is
    /// now.
    /// </summary>
    public void LogPersisted(LogIndex index, Term term, LogIndex durable)
    {
        if (_restart.Index.Value > 0 || _lastTaken is not null)
        {
            LookAtPersisted(index, term, durable);
        }
    }

    private void LookAtPersisted(LogIndex index, Term term, LogIndex durable)
    {
        if (_restart == (index, term))
        {
            _restart = default;
            Release();
        }

        if (_lastTaken is { } last && _viewed <= durable)
        {
            _lastTaken = null;
            ports.Checkpoints.Post(last);
        }
    }

    /// <summary>
    /// Asks for the state to be stored when enough log has gathered since it was (whole states are written only when
    /// the log is as long as they are), and tells the core what the log no longer has.
    /// </summary>
    public void Tick(RaftCore core)
    {
        if (_held.LookAt(core, Stored))
        {
            Release();
        }

        long stateBytes = applied.State.Counts.Bytes;
        if (group.IsEphemeral)
        {
            core.LogMemoryBytesMax = _held.MemoryBytesMax(stateBytes);
            core.LogCacheBytesMin = stateBytes / CachePart;
            memory.Weigh(core);
            return;
        }

        memory.Weigh(core);
        long due = ports.States.TakesWholeStates ? Math.Max(options.FlushLogBytes, stateBytes) : options.FlushLogBytes;
        if (!_asked && ports.Log.BytesSince(group, Stored) >= due)
        {
            _asked = true;
            ports.Checkpoints.Post(new FlushDue(group));
        }

        LogIndex start = ports.Log.StartOf(group);
        if (start > core.LogStart && start <= applied.Index && start <= core.DurableIndex)
        {
            core.CutThrough(start);
        }
    }

    /// <summary>
    /// The group has stopped: no view of it goes on, its memory is not counted, and its log does not keep others from
    /// writing.
    /// </summary>
    public void Stop()
    {
        EndView();
        SendNothing();
        Sent.EndAll();
        memory.GiveBack();
        if (!group.IsEphemeral)
        {
            ports.Log.Abandon(group);
        }
    }

    /// <summary>Everything that was is void: goes on with an empty state.</summary>
    public void BeginAnew(StateMachine state, Epoch epoch)
    {
        SendNothing();
        Sent.EndAll();
        applied.BeginAnew(state, epoch);
        IsStill = false;
    }

    /// <summary>Begins a view of what changed, or of everything, or says that there is none to be had now.</summary>
    public void BeginView(bool mayBegin, bool wholeWanted)
    {
        EndView();
        if (!mayBegin || IsStill || applied.Index <= Stored)
        {
            _asked = false;
            ports.Checkpoints.Post(new ViewBegun(group, null, Whole: false));
            return;
        }

        InvariantException.Require(_view is null && _lastTaken is null, "one view at a time is stored");
        bool whole = wholeWanted || _wholeNeeded;
        _viewed = applied.Index;
        _view = whole ? applied.State.ViewAll() : applied.State.ViewChanges();
        ports.Checkpoints.Post(new ViewBegun(group, CheckpointMark.Of(applied, _view), whole));
    }

    /// <summary>
    /// Fills a slice for the store. The last one, after which the state gets its name, waits until the own log has the
    /// state's last entry on stable storage: the stored state is never ahead of the own log. The view itself does not
    /// wait for that, because under load what is applied may be ahead of the own disk at every moment.
    /// </summary>
    public void Take(ViewSlice slice, int bytesMax, LogIndex durable)
    {
        bool ended = _view is null;
        bool more = !ended && _view!.TryTake(slice, bytesMax);
        if (!ended && !more)
        {
            _view!.Dispose();
            _view = null;
        }

        RecordsTaken taken = new(group, slice, more, ended, _view?.PreImageBytes ?? 0);
        if (more || ended || _viewed <= durable)
        {
            ports.Checkpoints.Post(taken);
        }
        else
        {
            _lastTaken = taken;
        }
    }

    public void StoredThrough(LogIndex index)
    {
        InvariantException.Require(index <= applied.Index, "the stored state is not ahead of the state");
        _asked = false;
        _wholeNeeded = false;
        Stored = index > Stored ? index : Stored;
        Release();
    }

    public void NotStored()
    {
        EndView();
        _asked = false;

        // What the view held counts as stored no more, and nobody knows which keys that were.
        _wholeNeeded = true;
    }

    /// <summary>
    /// A state from another node has arrived; when it is needed, the partition pauses from here on.
    /// </summary>
    public void AnswerInstall(InstallAnswer answer)
    {
        if (answer == InstallAnswer.Ready)
        {
            InvariantException.Require(!IsStill, "one state at a time is put in place");
            EndView();
            IsStill = true;
        }

        ports.Checkpoints.Post(new InstallAnswered(group, answer));
    }

    /// <summary>The own state is superseded, also in the store: its memory is needed for the other one.</summary>
    public void Drop() => applied.Drop(new StateMachine(options.StateLimits));

    /// <summary>Goes on with the state that has arrived and is in the store.</summary>
    public void Install(StateMachine state, in CheckpointMark mark)
    {
        InvariantException.Require(IsStill && mark.Index > applied.Index,
            "a state that is put in place was waited for, and is a later one");
        Sent.EndAll();
        mark.Replace(applied, state);
        EndView();
        StoredThrough(mark.Index);
        IsStill = false;
    }

    /// <summary>Goes on as before: the other state could not be put in place.</summary>
    public void GoOn() => IsStill = false;

    /// <summary>
    /// A follower needs the state; the log from the stored state on is kept for it until it has caught up.
    /// </summary>
    public void Send(NodeId follower, Term term, Epoch epoch)
    {
        _held.Begin(follower, group.IsEphemeral ? applied.Index : Stored);
        ports.Checkpoints.Post(new SnapshotWanted(group, follower, term, epoch));
    }

    /// <summary>A transfer has ended: a follower that has the state gets the log behind it.</summary>
    public void SendingEnded(NodeId follower, LogIndex index, bool installed)
    {
        if (_held.Sent(follower, index, installed))
        {
            Release();
        }
    }

    /// <summary>Leadership has ended.</summary>
    public void SendNothing()
    {
        if (_held.Any)
        {
            EndSends();
        }
    }

    private void EndSends()
    {
        _held.Clear();
        ports.Checkpoints.Post(new SnapshotsVoid(group));
        Release();
    }

    /// <summary>Ends a view: what was taken of it is of no use.</summary>
    public void EndView()
    {
        if (_view is not null)
        {
            _view.Dispose();
            _view = null;
            _wholeNeeded = true;
            _asked = false;
        }

        if (_lastTaken is { } last)
        {
            _lastTaken = null;
            _wholeNeeded = true;
            _asked = false;
            ports.Checkpoints.Post(last with { Ended = true });
        }
    }

    private void Release()
    {
        if (group.IsEphemeral || _restart.Index.Value > 0)
        {
            return;
        }

        ports.Log.Release(group, _held.OldestFrom(Stored));
    }
}
