using Kahuna.Client.Results;

namespace Kahuna.Client.Elections;

/// <summary>Who leads an election. Immutable.</summary>
/// <param name="Candidate">What the leader has said of itself when it campaigned.</param>
/// <param name="Token">The token of its leadership, greater than that of every one before; writes that carry it count only while it lasts.</param>
public sealed record LeaderDescription(KahunaValue Candidate, long Token);
