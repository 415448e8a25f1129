namespace Kahuna.Server.Primitives;

/// <summary>What a voter must find again after a restart. <paramref name="Commit"/> is a hint that shortens recovery; term and vote are promises.</summary>
internal readonly record struct HardState(Term Term, NodeId Vote, LogIndex Commit);
