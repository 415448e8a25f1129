using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State.Meta;

namespace Kahuna.Server.Partitions.Groups;

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

    public override ulong Epoch => membership.Epoch;

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
        return membership.Epoch > 0;
    }

    public override bool Learn(MetaView view) => membership.Learn(view, out _voting);

    public override RaftCore BeginEpoch(RaftCore core) => start.Begin(membership, core.Promises, _voting);

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
