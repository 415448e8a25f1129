using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Raft;

/// <summary>
/// The recovered log that a group's core starts from. Entries up to <paramref name="Applied"/> are already in the
/// state. Those above it follow, in order, through <see cref="RaftCore.Restore"/> before the first tick.
/// </summary>
/// <param name="HardState">Recovered term, vote and commit index; the default for an empty log.</param>
/// <param name="Terms">Term runs of the recovered entries, ascending. The first begins right after
/// <paramref name="Start"/>. Empty without entries.</param>
/// <param name="LastIndex">Last recovered index; <paramref name="Start"/> without entries.</param>
/// <param name="Applied">Index up to which entries are applied; at least <paramref name="Start"/>, at most the commit
/// index.</param>
/// <param name="Start">The index before the first entry that the log holds; 0 if it was never cut.</param>
/// <param name="StartTerm">Term of the entry at <paramref name="Start"/>.</param>
internal sealed record RaftStart(
    HardState HardState,
    IReadOnlyList<TermRun> Terms,
    LogIndex LastIndex,
    LogIndex Applied,
    LogIndex Start = default,
    Term StartTerm = default)
{
    /// <summary>
    /// What this node may promise. A sole voter or a learner can mislead no other node, so it always has
    /// <see cref="VotingRight.Full"/>. The exception is <see cref="VotingRight.Amnesiac"/>: no other node remembers
    /// what a sole voter has forgotten.
    /// </summary>
    public VotingRight Voting { get; init; }

    /// <summary>The highest feature level of the applied entries.</summary>
    public FeatureLevel Level { get; init; }
}
