namespace Kahuna.Benchmark.Targets;

/// <summary>A lock that was granted to a session. Immutable.</summary>
/// <param name="Token">The fencing token.</param>
/// <param name="GrantedAt">When the grant arrived, in clock ticks.</param>
/// <param name="HeldUntil">Until when the lease lasts at least, in clock ticks.</param>
internal readonly record struct LockGrant(long Token, long GrantedAt, long HeldUntil);
