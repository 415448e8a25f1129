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
    /// <summary>
    /// An ephemeral group keeps so much of its log for members that were away, measured by its state: what they miss beyond that costs them the whole state.
    /// </summary>
    private const int CachePart = 16;

    private readonly HeldLogs _held = new(group, options, ports);
    private readonly Dictionary<ulong, StateView> _sent = [];
    private StateView? _view;
    private LogIndex _viewed;
    private RecordsTaken? _lastTaken;
    private bool _asked;
    private bool _wholeNeeded;
    private long _bytes;
    private long _free;
    private long _evictable;
    private (LogIndex Index, Term Term) _restart;
    private PartitionFigures _figures = PartitionFigures.None;

    public StateMachine State { get; private set; } = Tracked(group, ports, loaded);

    /// <summary>Last entry in the state.</summary>
    public LogIndex Applied { get; private set; }

    public Term AppliedTerm { get; private set; }

    /// <summary>The partition stands still, as in a pause of the process, until the state that has arrived is in place.</summary>
    public bool IsStill { get; private set; }

    /// <summary>Something in the state ends by itself: a key, a lease, a wait, or what is remembered of a client.</summary>
    public bool HasDeadlines =>
        State.HasExpired(long.MaxValue) || State.Locks.HasWork(long.MaxValue) || State.Locks.Figures.Waiting > 0 || State.Sessions.Count > 0;

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

    /// <summary>
    /// The log is to begin anew behind the state. Until that is on stable storage nothing of the old log is released: without its first segments a start may not see
    /// that what is left belongs to another history than the state does.
    /// </summary>
    public void LogRestarts(LogIndex index, Term term) => _restart = (index, term);

    /// <summary>The log is on stable storage up to this entry; <paramref name="durable"/> is what that makes of the log there is now.</summary>
    public void LogPersisted(LogIndex index, Term term, LogIndex durable)
    {
        if (_restart == (index, term))
        {
            _restart = default;
            Release();
        }

        if (_lastTaken is { } last && _viewed <= durable)
        {
            _lastTaken = null;
            ports.Keeper.Post(last);
        }
    }

    public void MarkApplied(LogIndex index, Term term) => (Applied, AppliedTerm) = (index, term);

    /// <summary>
    /// Asks for the state to be stored when enough log has gathered since it was (whole states are written only when the log is as long as they are), and
    /// tells the core what the log no longer has.
    /// </summary>
    public void Tick(RaftCore core)
    {
        if (_held.LookAt(core, Stored))
        {
            Release();
        }

        if (group.IsEphemeral)
        {
            core.LogMemoryBytesMax = _held.MemoryBytesMax(State.Counts.Bytes);
            core.LogCacheBytesMin = State.Counts.Bytes / CachePart;
            Weigh(core);
            ShowFigures(core);
            return;
        }

        Weigh(core);
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

    /// <summary>Why a write that may take up more memory is refused, or null.</summary>
    /// <param name="pendingBytes">Bytes of writes that are accepted and not applied yet.</param>
    public string? RefuseGrowth(long pendingBytes)
    {
        if (State.IsFull)
        {
            return "The partition has reached the most that one may hold; nothing was changed. Delete keys, or let them expire.";
        }

        return group.IsEphemeral ? ports.Memory.RefuseWrites(pendingBytes) : ports.PersistentMemory.RefuseWrites(pendingBytes);
    }

    /// <summary>The partition has stopped: nobody waits for its state any more, its memory is not counted, and its log does not keep others from writing.</summary>
    public void Stop()
    {
        EndView();
        SendNothing();
        EndSendings();
        Count(0, 0, 0);
        if (!group.IsEphemeral)
        {
            ports.Log.Abandon(group);
        }
    }

    /// <summary>Says how much memory the state takes up, and of an ephemeral group its log, which is nowhere else.</summary>
    public void Weigh(RaftCore core) => Count(State.BytesInUse + (group.IsEphemeral ? core.LogMemoryBytes : 0), State.FreeBytes, State.EvictableBytes);

    private void Count(long bytes, long free, long evictable)
    {
        if (group.IsEphemeral)
        {
            ports.Memory.Changed(bytes - _bytes, free - _free, evictable - _evictable);
        }
        else
        {
            ports.PersistentMemory.Changed(bytes - _bytes, free - _free);
        }

        (_bytes, _free, _evictable) = (bytes, free, evictable);
    }

    private void ShowFigures(RaftCore core)
    {
        PartitionFigures figures = _figures;
        if (figures.Applied != Applied || figures.Stored != Stored || figures.LogStart != core.LogStart || figures.MayVote != core.IsVoting || figures.IsStalled != core.IsStalled)
        {
            Volatile.Write(ref _figures, new PartitionFigures(Applied, State.Digest, State.Counts.Keys, Stored, core.LogStart, core.IsVoting, State.Sessions.Figures, State.Locks.Figures, State.Counts.Evicted, core.IsStalled));
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
        _viewed = Applied;
        _view = whole ? State.ViewAll() : State.ViewChanges();
        ports.Keeper.Post(new ViewBegun(group, new StateMark(Applied, AppliedTerm, _view.Summary), whole));
    }

    /// <summary>
    /// Fills a slice for the store. The last one, after which the state gets its name, waits until the own log has the state's last entry on stable storage: the stored
    /// state is never ahead of the own log. The view itself does not wait for that, because under load what is applied may be ahead of the own disk at every moment.
    /// </summary>
    public void Take(StateSlice slice, int bytesMax, LogIndex durable)
    {
        bool ended = _view is null;
        bool more = !ended && _view!.TryTake(slice, bytesMax);
        if (!ended && !more)
        {
            _view!.Dispose();
            _view = null;
        }

        RecordsTaken taken = new(group, slice, more, ended, _view?.AsideBytes ?? 0);
        if (more || ended || _viewed <= durable)
        {
            ports.Keeper.Post(taken);
        }
        else
        {
            _lastTaken = taken;
        }
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

    /// <summary>A follower needs the state; the log from the stored state on is kept for it until it has caught up.</summary>
    public void Send(NodeId follower, Term term, ulong epoch)
    {
        _held.Begin(follower, group.IsEphemeral ? Applied : Stored);
        ports.Keeper.Post(new SnapshotWanted(group, follower, term, epoch));
    }

    /// <summary>A transfer has ended: a follower that has the state gets the log behind it.</summary>
    public void Sent(NodeId follower, LogIndex index, bool installed)
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
            _held.Clear();
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

        if (_lastTaken is { } last)
        {
            _lastTaken = null;
            _wholeNeeded = true;
            _asked = false;
            ports.Keeper.Post(last with { Ended = true });
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
        if (group.IsEphemeral || _restart.Index.Value > 0)
        {
            return;
        }

        ports.Log.Release(group, _held.OldestFrom(Stored));
    }
}
