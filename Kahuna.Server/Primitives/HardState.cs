namespace Kahuna.Server.Primitives;

/// <summary>
/// The state that a voter must find again after a restart. Term and vote are promises; <paramref name="Commit"/> is a
/// hint that shortens recovery. Immutable.
/// </summary>
internal readonly record struct HardState(Term Term, NodeId Vote, LogIndex Commit);
