using Kahuna.Server.Primitives;

namespace Kahuna.Server.State;

/// <summary>
/// A group's state in memory together with the last log entry that is in it. Owned by one group; not thread-safe.
/// </summary>
/// <param name="state">The state to begin with.</param>
/// <param name="index">The last entry in it; 0 for an empty state.</param>
/// <param name="term">The term of that entry.</param>
internal sealed class AppliedState(StateMachine state, LogIndex index = default, Term term = default)
{
    /// <summary>The state.</summary>
    public StateMachine State { get; private set; } = state;

    /// <summary>The last entry in the state.</summary>
    public LogIndex Index { get; private set; } = index;

    /// <summary>The term of the last entry in the state.</summary>
    public Term Term { get; private set; } = term;

    /// <summary>Cluster time of the last applied entry, in ms.</summary>
    public long TimeMs => State.TimeMs;

    /// <summary>
    /// Something in the state ends by itself: a key, a lease, a wait, or what is remembered of a client.
    /// </summary>
    public bool HasDeadlines =>
        State.HasExpired(long.MaxValue) || State.Locks.HasWork(long.MaxValue) || State.Locks.Metrics.Waiting > 0
        || State.Sessions.Count > 0;

    /// <summary>The entry was carried out. Entries are applied once and in order.</summary>
    public void Advance(LogIndex to, Term term)
    {
        InvariantException.Require(to == Index.Next(), "entries are applied once and in order");
        InvariantException.Require(term >= Term, "the terms of applied entries never decrease");
        Index = to;
        Term = term;
    }

    /// <summary>Another state takes the place of this one.</summary>
    public void Replace(StateMachine state, LogIndex index, Term term)
    {
        State = state;
        Index = index;
        Term = term;
    }

    /// <summary>The state is superseded: its memory is given up before another one takes its place.</summary>
    public void Drop(StateMachine empty) => State = empty;
}
