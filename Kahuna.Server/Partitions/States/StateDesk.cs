using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions.States;

/// <summary>
/// A partition's state in memory, and its dealings with the state thread: when it is due to be stored, the view that is being taken, what of the log the
/// stored state makes superfluous, and another state that is put in its place. Owned by one <see cref="Partition"/>; not thread-safe but for what says so.
/// </summary>
internal sealed class StateDesk(GroupId group, LoopOptions options, LoopPorts ports, StateMachine loaded)
{
    private readonly Dictionary<NodeId, LogIndex> _sending = [];
    private readonly Dictionary<ulong, StateView> _sent = [];
    private StateView? _view;
    private bool _asked;
    private bool _wholeNeeded;
    private long _bytes;
    private long _free;
    private PartitionFigures _figures = PartitionFigures.None;

    public StateMachine State { get; private set; } = Tracked(group, ports, loaded);

    /// <summary>Last entry in the state.</summary>
    public LogIndex Applied { get; private set; }

    public Term AppliedTerm { get; private set; }

    /// <summary>The partition stands still, as in a pause of the process, until the state that has arrived is in place.</summary>
    public bool IsStill { get; private set; }

    /// <summary>Figures as of the last tick; any thread.</summary>
    public PartitionFigures Figures => Volatile.Read(ref _figures);

    /// <summary>Up to this entry the state is in the store.</summary>
    public LogIndex Stored { get; private set; }

    /// <summary>State and log are read in.</summary>
    public void Recovered(PartitionRecovery recovery)
    {
        Applied = recovery.Applied;
        AppliedTerm = recovery.AppliedTerm;
        Stored = recovery.Mark?.Index ?? default;
        Release();
    }

    public void MarkApplied(LogIndex index, Term term)
    {
        Applied = index;
        AppliedTerm = term;
    }

    /// <summary>
    /// Asks for the state to be stored when enough log has gathered since it was (whole states are written only when the log is as long as they are), and
    /// tells the core what the log no longer has.
    /// </summary>
    public void Tick(RaftCore core)
    {
        if (group.IsEphemeral)
        {
            // A state that is sent is of use only if the log behind it is still there when it has arrived: it may grow as large as the state.
            core.LogMemoryBytesMax = Math.Max(options.RaftLimits.CacheBytesMax, _sending.Count > 0 ? State.Counts.Bytes : 0);
            Weigh(core);
            ShowFigures(core);
            return;
        }

        long due = ports.States.TakesWholeStates ? Math.Max(options.FlushLogBytes, State.Counts.Bytes) : options.FlushLogBytes;
        if (!_asked && ports.Log.BytesSince(group, Stored) >= due)
        {
            _asked = true;
            ports.Keeper.Post(new FlushDue(group));
        }

        LogIndex start = ports.Log.StartOf(group);
        if (start > core.LogStart && start <= Applied && start <= core.DurableIndex)
        {
            core.CutThrough(start);
        }

        ShowFigures(core);
    }

    /// <summary>Says how much memory the state and the log of an ephemeral group take up.</summary>
    public void Weigh(RaftCore core)
    {
        long bytes = State.BytesInUse + core.LogMemoryBytes;
        long free = State.FreeBytes;
        ports.Memory.Changed(bytes - _bytes, free - _free);
        _bytes = bytes;
        _free = free;
    }

    private void ShowFigures(RaftCore core)
    {
        PartitionFigures figures = _figures;
        if (figures.Applied != Applied || figures.Stored != Stored || figures.LogStart != core.LogStart || figures.MayVote != core.IsVoting)
        {
            Volatile.Write(ref _figures, new PartitionFigures(Applied, State.Digest, State.Counts.Keys, Stored, core.LogStart, core.IsVoting, State.Sessions.Figures, State.Locks.Figures, State.Counts.Evicted));
        }
    }

    /// <summary>Begins a view for a transfer of a state that is in memory only, or says that there is none to be had now.</summary>
    public void BeginSending(ulong transfer, bool mayBegin)
    {
        if (!mayBegin || IsStill)
        {
            ports.Keeper.Post(new ViewBegun(group, null, Whole: true, transfer));
            return;
        }

        StateView view = State.ViewAll();
        _sent[transfer] = view;
        ports.Keeper.Post(new ViewBegun(group, new StateMark(Applied, AppliedTerm, view.Summary), Whole: true, transfer));
    }

    /// <summary>Fills a slice for a transfer. A view that is gone is told as ended.</summary>
    public void TakeForSending(ulong transfer, StateSlice slice, int bytesMax)
    {
        bool ended = !_sent.TryGetValue(transfer, out StateView? view);
        bool more = !ended && view!.TryTake(slice, bytesMax);
        ports.Keeper.Post(new RecordsTaken(group, slice, more, ended, 0, transfer));
    }

    /// <summary>A transfer is over.</summary>
    public void EndSending(ulong transfer)
    {
        if (_sent.Remove(transfer, out StateView? view))
        {
            view.Dispose();
        }
    }

    /// <summary>Everything that was is void: goes on with an empty state.</summary>
    public void BeginAnew(StateMachine state)
    {
        SendNothing();
        EndSendings();
        State = Tracked(group, ports, state);
        Applied = default;
        AppliedTerm = default;
        IsStill = false;
    }

    /// <summary>Begins a view of what changed, or of everything, or says that there is none to be had now.</summary>
    public void BeginView(bool mayBegin, bool wholeWanted)
    {
        EndView();
        if (!mayBegin || IsStill || Applied <= Stored)
        {
            _asked = false;
            ports.Keeper.Post(new ViewBegun(group, null, Whole: false));
            return;
        }

        bool whole = wholeWanted || _wholeNeeded;
        _view = whole ? State.ViewAll() : State.ViewChanges();
        ports.Keeper.Post(new ViewBegun(group, new StateMark(Applied, AppliedTerm, _view.Summary), whole));
    }

    public void Take(StateSlice slice, int bytesMax)
    {
        bool ended = _view is null;
        bool more = !ended && _view!.TryTake(slice, bytesMax);
        if (!ended && !more)
        {
            _view!.Dispose();
            _view = null;
        }

        ports.Keeper.Post(new RecordsTaken(group, slice, more, ended, _view?.AsideBytes ?? 0));
    }

    public void StoredThrough(LogIndex index)
    {
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

    /// <summary>A state from another node has arrived; when it is of use, the partition stands still from here on.</summary>
    public void AnswerInstall(InstallAnswer answer)
    {
        if (answer == InstallAnswer.Ready)
        {
            EndView();
            IsStill = true;
        }

        ports.Keeper.Post(new InstallAnswered(group, answer));
    }

    /// <summary>The own state is superseded, also in the store: its memory is needed for the other one.</summary>
    public void Drop() => State = new StateMachine(options.StateLimits);

    /// <summary>Goes on with the state that has arrived and is in the store.</summary>
    public void Install(StateMachine state, in StateMark mark)
    {
        EndSendings();
        State = Tracked(group, ports, state);
        MarkApplied(mark.Index, mark.Term);
        EndView();
        StoredThrough(mark.Index);
        IsStill = false;
    }

    /// <summary>Goes on as before: the other state could not be put in place.</summary>
    public void GoOn() => IsStill = false;

    /// <summary>A follower needs the state; the log from the stored state on is kept for it until that has ended.</summary>
    public void Send(NodeId follower, Term term, ulong epoch)
    {
        _sending[follower] = Stored;
        ports.Keeper.Post(new SnapshotWanted(group, follower, term, epoch));
    }

    public void Sent(NodeId follower)
    {
        _sending.Remove(follower);
        Release();
    }

    /// <summary>Leadership has ended.</summary>
    public void SendNothing()
    {
        if (_sending.Count > 0)
        {
            _sending.Clear();
            ports.Keeper.Post(new SnapshotsVoid(group));
            Release();
        }
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
    }

    /// <summary>Where keys may have to go, it is noted which are used.</summary>
    private static StateMachine Tracked(GroupId group, LoopPorts ports, StateMachine state)
    {
        if (group.IsEphemeral && ports.Memory.Evicts)
        {
            state.TrackUses();
        }

        return state;
    }

    private void EndSendings()
    {
        foreach (StateView view in _sent.Values)
        {
            view.Dispose();
        }

        _sent.Clear();
    }

    private void Release()
    {
        if (group.IsEphemeral)
        {
            return;
        }

        LogIndex released = Stored;
        foreach (LogIndex needed in _sending.Values)
        {
            released = needed < released ? needed : released;
        }

        ports.Log.Release(group, released);
    }
}
