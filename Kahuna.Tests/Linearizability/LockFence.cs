namespace Kahuna.Tests.Linearizability;

/// <summary>
/// The condition of a write that a token holds a lock at the moment at which the write is applied. Immutable.
/// </summary>
/// <param name="Lock">The lock's name.</param>
/// <param name="Token">From 1 on.</param>
internal sealed record LockFence(string Lock, long Token);
