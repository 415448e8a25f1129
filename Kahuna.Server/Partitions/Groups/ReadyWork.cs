using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// Carries out what a group's core asks for, in two halves: <see cref="Begin"/> before the log and the peers get
/// theirs, and <see cref="End"/> after that. Owned by one group; not thread-safe.
/// </summary>
internal sealed class ReadyWork(NodeId self, TurnParts turn, GroupDurability durability, Checkpointing checkpointing,
    PendingRequests requests, CommittedEntries entries)
{
    /// <summary>A Ready is taken and not carried out yet.</summary>
    public bool IsOpen { get; private set; }

    /// <summary>
    /// First half: entries and hard state to the log, messages to the peers, what followers lack asked for.
    /// </summary>
    public void Begin(Group group, RaftCore core)
    {
        IsOpen = core.PrepareReady();
        if (!IsOpen)
        {
            return;
        }

        ref readonly Ready ready = ref core.TakeReady();
        InvariantException.Require(ready.Committed.Last <= ready.HardState.Commit, "only what is committed is applied");
        durability.Persist(group, core, ready);
        foreach (ref readonly OutgoingMessage outgoing in ready.Messages)
        {
            if (outgoing.AfterDurable)
            {
                durability.SendPromise(group, outgoing.Message);
            }
            else if (outgoing.Message.To != self)
            {
                turn.Peers.Send(group, outgoing.Message, core);
            }
        }

        foreach (ref readonly LogFetch fetch in ready.Fetches)
        {
            turn.Log.Fetch(group.Id, fetch);
        }

        foreach (NodeId follower in ready.SnapshotsWanted)
        {
            checkpointing.Send(follower, core.Term, durability.Epoch);
        }
    }

    /// <summary>
    /// Second half: applies a slice of what is committed and confirms reads. True when more is committed than the slice
    /// took.
    /// </summary>
    public bool End(Group group, RaftCore core)
    {
        if (!IsOpen)
        {
            return false;
        }

        IsOpen = false;
        ref readonly Ready ready = ref core.TakeReady();
        (LogIndex first, LogIndex last) = ready.Committed;
        bool isMoreCommitted = last < ready.HardState.Commit;
        entries.Apply(group, first, last);
        foreach (ref readonly ReadState state in ready.ReadStates)
        {
            requests.Confirm(state);
        }

        core.Advance();
        durability.CarriedOut(core);
        return isMoreCommitted;
    }

    /// <summary>Entries for a follower were read from storage.</summary>
    public void Fetched(Group group, NodeId follower, LogIndex first, ReadOnlySpan<byte> entries)
    {
        if (group.Core.CompleteFetch(follower, first, entries, out RaftMessage append))
        {
            turn.Peers.Send(group, append, entries);
        }
    }

    /// <summary>The group stands still: nothing is in hand.</summary>
    public void Skip() => IsOpen = false;
}
