using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// What a group's core starts from: the recovered log. Entries up to <paramref name="Applied"/> are already in the state;
/// those above it follow, in order, through <see cref="RaftCore.Restore"/> before the first tick.
/// </summary>
/// <param name="HardState">Recovered term, vote and commit; the default for an empty log.</param>
/// <param name="Terms">Runs of terms of the recovered entries, ascending; the first begins behind <paramref name="Start"/>; empty when there are no entries.</param>
/// <param name="LastIndex">Last recovered index; <paramref name="Start"/> when there are no entries.</param>
/// <param name="Applied">Index up to which the state is applied; at least <paramref name="Start"/>, at most the commit index.</param>
/// <param name="Start">The index before the first entry that the log holds; 0 when it was never cut.</param>
/// <param name="StartTerm">Term of the entry at <paramref name="Start"/>.</param>
internal sealed record RaftStart(
    HardState HardState,
    IReadOnlyList<TermRun> Terms,
    LogIndex LastIndex,
    LogIndex Applied,
    LogIndex Start = default,
    Term StartTerm = default)
{
    /// <summary>What this node may promise. The only voter of a group, and a learner, have nobody to mislead: they are always <see cref="VotingRight.Full"/>, unless <see cref="VotingRight.Amnesiac"/>: what the only voter has forgotten, nobody remembers.</summary>
    public VotingRight Voting { get; init; }
}
