
namespace Kahuna.Client.Elections;

/// <summary>The leader of an election. Immutable.</summary>
/// <param name="Candidate">What the leader said about itself when it campaigned.</param>
/// <param name="Token">
/// The token of its leadership, greater than that of every earlier leader. A write that carries it counts only while
/// the leadership lasts.
/// </param>
public sealed record LeaderDescription(KahunaValue Candidate, FencingToken Token);
