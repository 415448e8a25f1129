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
    public abstract ulong Epoch { get; }

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
    /// The meta group's records have changed. True when this node begins anew in <see cref="Epoch"/>.
    /// </summary>
    public abstract bool Learn(MetaView view);

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
