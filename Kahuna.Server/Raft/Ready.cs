using System.Runtime.InteropServices;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// The work that a core asks its owner to carry out. <see cref="RaftCore.TakeReady"/> takes it, and it stays unchanged
/// until <see cref="RaftCore.Advance"/>: inputs meanwhile show in the next one. Owned by one core; a value.
/// </summary>
internal readonly struct Ready
{
    private readonly List<OutgoingMessage> _messages;
    private readonly List<ReadState> _readStates;
    private readonly List<LogFetch> _fetches;
    private readonly List<NodeId> _snapshotsWanted;

    public Ready(RoleParts parts)
    {
        _messages = parts.Outbox.Messages.OpenReady();
        _readStates = parts.Leadership.ReadStates.OpenReady();
        _fetches = parts.Leadership.Fetches.OpenReady();
        _snapshotsWanted = parts.Leadership.SnapshotsWanted.OpenReady();
    }

    /// <summary>Term, vote and commit index.</summary>
    public HardState HardState { get; init; }

    /// <summary>
    /// The part of <see cref="HardStateChanged"/> that counts where entries are not stored, and no commit index is
    /// needed after a restart: term or vote changed, or the owner has more to store with them.
    /// </summary>
    public bool PromisesChanged { get; init; }

    /// <summary>
    /// The hard state must be persisted with this Ready's entries (term or vote changed, or entries are persisted and
    /// commit moved).
    /// </summary>
    public bool HardStateChanged { get; init; }

    /// <summary>
    /// Entries to append to storage, [first, last]; empty when first is greater than last. Storage drops what it has at
    /// or above first.
    /// </summary>
    public (LogIndex First, LogIndex Last) Unpersisted { get; init; }

    /// <summary>
    /// Entries to apply, [first, last]; empty when first is greater than last. What exceeds
    /// <see cref="RaftLimits.ApplyBytesMax"/> is left for the next Ready. A leader's committed entry may not yet be
    /// durable here: a majority of others has it.
    /// </summary>
    public (LogIndex First, LogIndex Last) Committed { get; init; }

    /// <summary>Messages to send: at once, or when everything before them is durable.</summary>
    public ReadOnlySpan<OutgoingMessage> Messages => CollectionsMarshal.AsSpan(_messages);

    /// <summary>Reads that a round has confirmed.</summary>
    public ReadOnlySpan<ReadState> ReadStates => CollectionsMarshal.AsSpan(_readStates);

    /// <summary>Entries to read from storage for followers.</summary>
    public ReadOnlySpan<LogFetch> Fetches => CollectionsMarshal.AsSpan(_fetches);

    /// <summary>
    /// Leader: followers that need a snapshot now; each is told once, until <see cref="RaftCore.SnapshotEnded"/>.
    /// </summary>
    public ReadOnlySpan<NodeId> SnapshotsWanted => CollectionsMarshal.AsSpan(_snapshotsWanted);
}

/// <summary>A message of a <i>Ready</i>, and when it may be sent.</summary>
/// <param name="Message">The message. If addressed to this node itself: pass it to Step once the condition
/// holds.</param>
/// <param name="AfterDurable">True: send it only after everything that this Ready and earlier ones persist is on stable
/// storage.</param>
internal readonly record struct OutgoingMessage(RaftMessage Message, bool AfterDurable);

/// <summary>
/// A confirmed read: reads registered under <paramref name="Ticket"/> or an earlier one may be served once
/// <paramref name="Index"/> is applied.
/// </summary>
internal readonly record struct ReadState(ulong Ticket, LogIndex Index);

/// <summary>
/// Entries that a follower needs and memory no longer holds. Read them from storage and pass them to
/// <see cref="RaftCore.CompleteFetch"/>.
/// </summary>
internal readonly record struct LogFetch(NodeId Follower, LogIndex First, int BytesMax);
