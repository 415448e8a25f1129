namespace Kahuna.Benchmark.Targets;

/// <summary>
/// A session of a target that has locks. It holds one lock at a time. As <see cref="ITargetSession"/>.
/// </summary>
internal interface ILockSession : ITargetSession
{
    /// <summary>Acquires a lock without waiting; null when another session holds it.</summary>
    ValueTask<LockGrant?> TryAcquireAsync(string name, TimeSpan lease);

    /// <summary>Waits until the lock is granted.</summary>
    ValueTask<LockGrant> AcquireAsync(string name, TimeSpan lease, TimeSpan wait);

    /// <summary>Releases the lock that was acquired last; false when it was no longer held.</summary>
    ValueTask<bool> ReleaseAsync();
}
