using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State.Meta;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// What the promises of a group rest on: the node's log (<see cref="OnDisk"/>), or memory and the epoch that the node
/// has joined (<see cref="InMemory"/>). Owned by one <see cref="Group"/>; not thread-safe.
/// </summary>
internal abstract class GroupDurability
{
    /// <summary>The epoch of an ephemeral group that this node is in; 0 for others.</summary>
    public abstract Epoch Epoch { get; }

    /// <summary>Whether a lease of this length, in ms, may be granted; null when any may.</summary>
    public virtual Func<long, bool>? LeaseRule => null;

    /// <summary>What the group's messages carry besides.</summary>
    public abstract MessageStamp Stamp { get; }

    /// <summary>The node takes part in the group: messages go in and out.</summary>
    public abstract bool IsTakingPart { get; }

    /// <summary>Term and vote as last handed to storage are there.</summary>
    public abstract bool ArePromisesDurable { get; }

    /// <summary>
    /// A leader whose log has no working disk hands its leadership over: two healthy disks are a majority.
    /// </summary>
    public abstract bool NeedsDiskToLead { get; }

    /// <summary>
    /// A promise that was made with this stamp may leave: neither was its epoch closed since, nor has the node pledged
    /// to keep out of it.
    /// </summary>
    public abstract bool MayPromise(in MessageStamp stamp);

    /// <summary>Whether a message may be taken in.</summary>
    /// <param name="message">The message.</param>
    /// <param name="stamp">What it says of its sender.</param>
    /// <param name="term">The own term.</param>
    /// <param name="returned">Its sender was started anew since it was heard last.</param>
    public abstract bool MayTake(in RaftMessage message, in MessageStamp stamp, Term term, out bool returned);

    /// <summary>A follower serves as well as it can: nothing of what it may have promised is missing.</summary>
    public abstract bool IsWhole(RaftCore core);

    /// <summary>
    /// The core has everything back that a lost directory had promised, and may vote once that is stored.
    /// </summary>
    public abstract bool IsRestored(RaftCore core);

    /// <summary>
    /// It is certain now that this node breaks no promise by voting. True when the core may vote at once.
    /// </summary>
    public abstract bool AllowVoting();

    /// <summary>
    /// The meta group's records have changed: the core learns the feature level. True when this node begins anew in
    /// <see cref="Epoch"/>.
    /// </summary>
    public abstract bool Learn(RaftCore core, MetaView view);

    /// <summary>
    /// Begins the epoch, empty. Returns its core, which remembers the terms and votes of the core before.
    /// </summary>
    public abstract RaftCore BeginEpoch(RaftCore core);

    /// <summary>A tick of the node's clock, before the core's.</summary>
    public abstract void Tick(RaftCore core);

    /// <summary>Hands the entries and the hard state of a Ready to where they are kept.</summary>
    public abstract void Persist(Group group, RaftCore core, in Ready ready);

    /// <summary>Sends a message that may leave only when everything before it is stored.</summary>
    public abstract void SendPromise(Group group, in RaftMessage message);

    /// <summary>The Ready is carried out.</summary>
    public abstract void CarriedOut(RaftCore core);

    /// <summary>A state was put in place: the group's log begins anew behind it.</summary>
    public abstract void RestartLog(Group group, LogIndex index, Term term);

    /// <summary>A hard state that stands alone is on stable storage.</summary>
    public abstract void Saved();
}

/// <summary>
/// A group whose entries are in the node's log: its promises rest on the disk (docs/adr/0002-raft-core.md). Owned by
/// one <see cref="Group"/>; not thread-safe.
/// </summary>
internal sealed class OnDisk(LogBatch log, PeerMessages peers, Checkpointing checkpointing) : GroupDurability
{
    private ulong _promisesBatch;

    public override Epoch Epoch => Epoch.None;

    public override MessageStamp Stamp => default;

    public override bool IsTakingPart => true;

    /// <summary>
    /// A batch is waited for by its number: under load there may never be a moment in which no batch is on its way.
    /// </summary>
    public override bool ArePromisesDurable => log.Persisted >= _promisesBatch;

    public override bool NeedsDiskToLead => true;

    public override bool MayPromise(in MessageStamp stamp) => true;

    public override bool MayTake(in RaftMessage message, in MessageStamp stamp, Term term, out bool returned)
    {
        returned = false;
        return true;
    }

    public override bool IsWhole(RaftCore core) => true;

    public override bool IsRestored(RaftCore core) => core.CanRejoin;

    public override bool AllowVoting() => true;

    public override bool Learn(RaftCore core, MetaView view)
    {
        core.RaiseLevel(view.FeatureLevel);
        return false;
    }

    public override RaftCore BeginEpoch(RaftCore core) =>
        throw new InvariantException("only an ephemeral group has epochs");

    public override void Tick(RaftCore core)
    {
    }

    public override void Persist(Group group, RaftCore core, in Ready ready)
    {
        (LogIndex first, LogIndex last) = ready.Unpersisted;
        if (first <= last)
        {
            core.Payload(last, out Term term, out _);
            log.Append(group, core, first, last, term);
        }

        if (ready.HardStateChanged)
        {
            log.Save(group.Id, ready.HardState);
            _promisesBatch = ready.PromisesChanged ? log.Submitted + 1 : _promisesBatch;
        }
    }

    /// <summary>
    /// Batches are written in their order, so the promise waits for the last one that is handed to the log with it.
    /// </summary>
    public override void SendPromise(Group group, in RaftMessage message) => peers.HoldPromise(group, message);

    public override void CarriedOut(RaftCore core)
    {
    }

    public override void RestartLog(Group group, LogIndex index, Term term)
    {
        checkpointing.LogRestarts(index, term);
        log.Restart(group, index, term);
    }

    public override void Saved()
    {
    }
}

/// <summary>
/// An ephemeral group: an entry counts as stored as soon as it is in memory, while term, vote and the epoch joined are
/// stored before they are used (docs/adr/0011-ephemeral-groups.md). Owned by one <see cref="Group"/>; not thread-safe.
/// </summary>
/// <param name="membership">How far this node takes part.</param>
/// <param name="start">Begins an epoch.</param>
/// <param name="log">Where hard states are stored.</param>
/// <param name="peers">Where promises leave.</param>
internal sealed class InMemory(EpochMembership membership, EpochStart start, LogBatch log, PeerMessages peers)
    : GroupDurability
{
    private VotingRight _voting;
    private int _savesPending;
    private LogIndex _handedOut;
    private Term _handedOutTerm;

    /// <summary>What the promises of an ephemeral group rest on.</summary>
    /// <param name="promises">Term, vote and joined epoch as stored.</param>
    /// <param name="checkpointing">The group's side of checkpoints.</param>
    /// <param name="place">Where the group lives.</param>
    /// <param name="ask">Takes what the meta group is to record.</param>
    /// <param name="group">The group.</param>
    public static InMemory Of(GroupId group, GroupPlace place, in HardState promises, Checkpointing checkpointing,
        Action<MetaCommand> ask)
    {
        EpochMembership membership = new(group, place.Options, EpochMembership.JoinedIn(promises), ask);
        EpochStart start = new(group, place.Partition, place.Options, place.Ports, checkpointing);
        return new InMemory(membership, start, place.Turn.Log, place.Turn.Peers);
    }

    public override Epoch Epoch => membership.Epoch;

    public override Func<long, bool> LeaseRule => membership.MayLease;

    public override MessageStamp Stamp => membership.Stamp;

    public override bool IsTakingPart => membership.IsTakingPart;

    public override bool ArePromisesDurable => _savesPending == 0;

    public override bool NeedsDiskToLead => false;

    public override bool MayPromise(in MessageStamp stamp) => stamp == membership.Stamp && membership.IsTakingPart;

    public override bool MayTake(in RaftMessage message, in MessageStamp stamp, Term term, out bool returned) =>
        membership.MayTake(message, stamp, term, out returned);

    public override bool IsWhole(RaftCore core) => membership.IsTakingPart && core.IsVoting;

    /// <summary>In an epoch that began after the directory was lost there is nothing to make good.</summary>
    public override bool IsRestored(RaftCore core) => core.CanRejoin || core.IsVoting;

    public override bool AllowVoting()
    {
        membership.AllowVoting();
        return !membership.Epoch.IsNone;
    }

    public override bool Learn(RaftCore core, MetaView view)
    {
        core.RaiseLevel(view.FeatureLevel);
        return membership.Learn(view, out _voting);
    }

    public override RaftCore BeginEpoch(RaftCore core)
    {
        RaftCore next = start.Begin(membership, core.Promises, _voting);
        next.RaiseLevel(core.Level);
        return next;
    }

    public override void Tick(RaftCore core) => membership.Tick(core);

    /// <summary>
    /// Memory is all the storage there is: the entries count as stored when the Ready is carried out.
    /// </summary>
    public override void Persist(Group group, RaftCore core, in Ready ready)
    {
        (LogIndex first, LogIndex last) = ready.Unpersisted;
        if (first <= last)
        {
            core.Payload(last, out _handedOutTerm, out _);
            _handedOut = last;
        }

        if (ready.PromisesChanged)
        {
            _savesPending++;
            log.SaveAlone(group, group.Id, membership.Stored(ready.HardState));
        }
    }

    /// <summary>
    /// The promise waits for the group's own hard state only. To wait for whatever else the loop has handed to the log
    /// would make every ephemeral write wait for the persistent ones beside it.
    /// </summary>
    public override void SendPromise(Group group, in RaftMessage message)
    {
        if (_savesPending > 0)
        {
            peers.HoldPromise(group, message);
        }
        else
        {
            peers.SendPromise(group, message);
        }
    }

    public override void CarriedOut(RaftCore core)
    {
        if (_handedOut.Value > 0)
        {
            LogIndex last = _handedOut;
            _handedOut = default;
            core.Persisted(last, _handedOutTerm);
        }
    }

    /// <summary>Nothing of the log is stored.</summary>
    public override void RestartLog(Group group, LogIndex index, Term term)
    {
    }

    public override void Saved()
    {
        InvariantException.Require(_savesPending > 0, "a hard state is stored once");
        _savesPending--;
    }
}

/// <summary>
/// What the groups of a loop hand to the log, one batch for each round of a turn, and which of them are told when a
/// batch is on stable storage. Batches are numbered upwards from 1. Owned by one loop; not thread-safe.
/// </summary>
internal sealed class LogBatch(ILogWriter log)
{
    private readonly Ring<Confirmation> _confirmations = new(64);
    private int _unnumbered;

    /// <summary>Number of the last batch that was submitted; what is added now is in the next one.</summary>
    public ulong Submitted { get; private set; }

    /// <summary>Everything up to this batch is on stable storage.</summary>
    public ulong Persisted { get; private set; }

    /// <summary>Adds entries [first, last], and tells the group when they are on stable storage.</summary>
    public void Append(Group group, RaftCore core, LogIndex first, LogIndex last, Term lastTerm)
    {
        int count = (int)(last.Value - first.Value + 1);
        int bytes = checked((int)core.EntryBytes(first, last));
        core.CopyEntries(first, count, log.BeginAppend(group.Id, first, count, bytes));
        log.EndAppend();
        Confirm(new Confirmation(group, last, lastTerm));
    }

    /// <summary>Adds a hard state that rests on the entries of its batch; nobody is told.</summary>
    public void Save(GroupId id, in HardState state) => log.Save(id, state);

    /// <summary>Adds a hard state that stands alone, and tells the group when it is on stable storage.</summary>
    /// <param name="group">The group that is told.</param>
    /// <param name="id">Under which group the log keeps it.</param>
    /// <param name="state">The hard state.</param>
    public void SaveAlone(Group group, GroupId id, in HardState state)
    {
        log.Save(id, state);
        Confirm(new Confirmation(group, default, default));
    }

    /// <summary>
    /// The group's log begins anew after this entry; the group is told when that is on stable storage.
    /// </summary>
    public void Restart(Group group, LogIndex index, Term term)
    {
        log.Restart(group.Id, index, term);
        Confirm(new Confirmation(group, index, term));
    }

    /// <summary>Asks for entries for a follower that is behind what memory holds.</summary>
    public void Fetch(GroupId id, in LogFetch fetch) => log.Fetch(id, fetch.Follower, fetch.First, fetch.BytesMax);

    /// <summary>
    /// Submits what was added. Returns the batch after which everything that was added so far is on stable storage.
    /// </summary>
    public ulong Submit()
    {
        ulong batch = log.Submit();
        if (batch != 0)
        {
            InvariantException.Require(batch == Submitted + 1, "the log numbers its batches one by one");
            Submitted = batch;
        }

        int numbered = _confirmations.Count - _unnumbered;
        InvariantException.Require(numbered >= 0 && (numbered == 0 || _confirmations[numbered - 1].Batch <= Submitted),
            "groups are told in the order of the batches");
        for (int i = numbered; i < _confirmations.Count; i++)
        {
            _confirmations[i].Batch = Submitted;
        }

        _unnumbered = 0;
        return Submitted;
    }

    /// <summary>The log says that everything up to this batch is on stable storage.</summary>
    public void MarkPersisted(ulong batch)
    {
        InvariantException.Require(batch <= Submitted, "only what was submitted is on stable storage");
        Persisted = Math.Max(Persisted, batch);
    }

    /// <summary>Takes the next group that is to be told. Its turn to be told is over when it is taken.</summary>
    public bool TryTakeConfirmed(out Confirmation confirmation)
    {
        confirmation = default;
        if (_confirmations.Count == _unnumbered || _confirmations[0].Batch > Persisted)
        {
            return false;
        }

        confirmation = _confirmations.Take();
        return true;
    }

    private void Confirm(in Confirmation confirmation)
    {
        _confirmations.Add(confirmation);
        _unnumbered++;
    }
}
