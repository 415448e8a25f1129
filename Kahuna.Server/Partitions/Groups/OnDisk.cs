using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State.Meta;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// A group whose entries are in the node's log: its promises rest on the disk (docs/adr/0002-raft-core.md). Owned by
/// one <see cref="Group"/>; not thread-safe.
/// </summary>
internal sealed class OnDisk(LogBatch log, PeerMessages peers, Checkpointing checkpointing) : GroupDurability
{
    private ulong _promisesBatch;

    public override ulong Epoch => 0;

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

    public override bool Learn(MetaView view) => false;

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
