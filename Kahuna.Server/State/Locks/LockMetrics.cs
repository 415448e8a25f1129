namespace Kahuna.Server.State.Locks;

/// <summary>How much of locks there is in a partition. A value.</summary>
/// <param name="Held">Claims that hold a lock.</param>
/// <param name="Waiting">Claims that wait for one.</param>
/// <param name="Expired">Leases that ended by themselves, since this state began on this node.</param>
internal readonly record struct LockMetrics(int Held, int Waiting, long Expired);
