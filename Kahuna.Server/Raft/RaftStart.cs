using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// What a group's core starts from: the recovered log. Entries up to <paramref name="Applied"/> are already in the state;
/// those above it follow, in order, through <see cref="RaftCore.Restore"/> before the first tick.
/// </summary>
/// <param name="HardState">Recovered term, vote and commit; the default for an empty log.</param>
/// <param name="Terms">Runs of terms of the whole recovered log, ascending; empty for an empty log.</param>
/// <param name="LastIndex">Last recovered index.</param>
/// <param name="Applied">Index up to which the state is applied; at most the commit index.</param>
internal sealed record RaftStart(HardState HardState, IReadOnlyList<TermRun> Terms, LogIndex LastIndex, LogIndex Applied);
