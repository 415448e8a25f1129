namespace Kahuna.Benchmark.Targets;

/// <summary>
/// A system under load. Owned by the run: connected once, then asked for one session per worker, disposed at the end.
/// </summary>
internal interface ITarget : IAsyncDisposable
{
    /// <summary>Reaches the system and says what it is, or throws <see cref="TargetException"/> with a sentence for the user.</summary>
    Task<TargetDescription> ConnectAsync(CancellationToken cancellationToken);

    /// <summary>Makes what a workload needs besides keys, or throws <see cref="TargetException"/>. After <see cref="ConnectAsync"/> and before the first session.</summary>
    Task PrepareAsync(CancellationToken cancellationToken) => Task.CompletedTask;

    /// <summary>After the load: what <c>--verify</c> has shown; null where nothing was to be verified.</summary>
    Task<Verification.IFindings?> VerifyAsync() => Task.FromResult<Verification.IFindings?>(null);

    /// <summary>Opens the way by which worker number <paramref name="worker"/> sends. May be called from any thread after <see cref="ConnectAsync"/>.</summary>
    ITargetSession OpenSession(int worker);

    /// <summary>Whether a request that failed with <paramref name="failure"/> ran out of time.</summary>
    bool IsTimeout(Exception failure);
}
