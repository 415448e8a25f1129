using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// Opens and closes <i>Readys</i>. <see cref="Take"/> freezes what has gathered as the content of one, until
/// <see cref="Advance"/> closes it. Owned by one core; not thread-safe.
/// </summary>
internal sealed class ReadyTurns(RoleState state, EntryLog log, RoleParts parts)
{
    private Ready _ready;

    /// <summary>A Ready was taken, and was not carried out yet.</summary>
    public bool IsOpen { get; private set; }

    /// <summary>Makes the messages that are due. True when there is something to carry out.</summary>
    public bool Prepare()
    {
        if (IsOpen)
        {
            return true;
        }

        MakeMessages();
        return parts.Outbox.Messages.HasGathered || parts.Leadership.ReadStates.HasGathered
            || parts.Leadership.Fetches.HasGathered || parts.Leadership.SnapshotsWanted.HasGathered
            || state.PromisesUnsaved || log.LastIndex > log.HandedOutIndex || log.CommitIndex > log.AppliedIndex;
    }

    /// <summary>Takes what has gathered, or, when a Ready is open, that one again.</summary>
    public ref readonly Ready Take()
    {
        if (!IsOpen)
        {
            MakeMessages();
            bool hasEntries = log.LastIndex > log.HandedOutIndex;
            _ready = new Ready(parts)
            {
                HardState = new HardState(state.Term, state.Vote, log.CommitIndex),
                PromisesChanged = state.PromisesUnsaved,
                HardStateChanged = state.PromisesUnsaved || (hasEntries && state.CommitUnsaved(log.CommitIndex)),
                Unpersisted = (log.HandedOutIndex.Next(), log.LastIndex),
                Committed = (log.AppliedIndex.Next(), log.ApplicableIndex),
            };
            log.OpenThrough = log.LastIndex;
            IsOpen = true;
        }

        return ref _ready;
    }

    /// <summary>The open Ready has been carried out.</summary>
    public void Advance()
    {
        if (!IsOpen)
        {
            return;
        }

        if (_ready.HardStateChanged)
        {
            state.MarkSaved(_ready.HardState);
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
        log.Trim(state.Role == RaftRole.Leader ? parts.Leadership.HeldByActive : log.LastIndex);
    }

    private void MakeMessages()
    {
        parts.Following.Prepare(parts.Outbox);
        if (state.Role == RaftRole.Leader)
        {
            parts.Leadership.Prepare(parts.Outbox);
        }
    }
}
