using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// The handing out of Readys: what gathered becomes the content of one when its first part is read, stands still, and counts as
/// carried out after <see cref="Advance"/>. Owned by one core; not thread-safe.
/// </summary>
internal sealed class ReadyTurns(Standing standing, EntryLog log, RoleParts parts)
{
    private Ready _ready;

    /// <summary>A part of a Ready was read, and it was not carried out yet.</summary>
    public bool IsOpen { get; private set; }

    public bool HasReady
    {
        get
        {
            if (IsOpen)
            {
                return true;
            }

            Prepare();
            return parts.Outbox.Messages.HasGathered || parts.Leadership.ReadStates.HasGathered
                || parts.Leadership.Fetches.HasGathered || parts.Leadership.SnapshotsWanted.HasGathered
                || standing.PromisesUnsaved || log.LastIndex > log.HandedOutIndex || log.CommitIndex > log.AppliedIndex;
        }
    }

    /// <summary>Opens a Ready if none is open.</summary>
    public ref readonly Ready Open()
    {
        if (!IsOpen)
        {
            Prepare();
            bool hasEntries = log.LastIndex > log.HandedOutIndex;
            _ready = new Ready(
                new HardState(standing.Term, standing.Vote, log.CommitIndex),
                standing.PromisesUnsaved,
                standing.PromisesUnsaved || (hasEntries && standing.CommitUnsaved(log.CommitIndex)),
                (log.HandedOutIndex.Next(), log.LastIndex),
                (log.AppliedIndex.Next(), log.ApplicableIndex));
            parts.Outbox.Messages.OpenReady();
            parts.Leadership.ReadStates.OpenReady();
            parts.Leadership.Fetches.OpenReady();
            parts.Leadership.SnapshotsWanted.OpenReady();
            log.OpenThrough = log.LastIndex;
            IsOpen = true;
        }

        return ref _ready;
    }

    /// <summary>One of the lists of the open Ready.</summary>
    public ReadOnlySpan<T> Open<T>(Handover<T> list)
    {
        Open();
        return list.Open;
    }

    public void Advance()
    {
        if (!IsOpen)
        {
            return;
        }

        if (_ready.HardStateChanged)
        {
            standing.MarkSaved(_ready.HardState);
        }

        if (_ready.Unpersisted.First <= _ready.Unpersisted.Last)
        {
            log.MarkHandedOut(_ready.Unpersisted.First, _ready.Unpersisted.Last);
        }

        if (_ready.Committed.First <= _ready.Committed.Last)
        {
            log.MarkApplied(_ready.Committed.First, _ready.Committed.Last);
        }

        parts.Outbox.Messages.CloseReady();
        parts.Leadership.ReadStates.CloseReady();
        parts.Leadership.Fetches.CloseReady();
        parts.Leadership.SnapshotsWanted.CloseReady();
        log.OpenThrough = default;
        IsOpen = false;
        log.Trim(standing.Role == RaftRole.Leader ? parts.Leadership.HeldByActive : log.LastIndex);
    }

    private void Prepare()
    {
        parts.Following.Prepare(parts.Outbox);
        if (standing.Role == RaftRole.Leader)
        {
            parts.Leadership.Prepare(parts.Outbox);
        }
    }
}
