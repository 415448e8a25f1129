namespace Kahuna.Benchmark.Targets;

/// <summary>
/// A system under load. Owned by the run: connected once, then asked for one session per worker, disposed at the end.
/// </summary>
internal interface ITarget : IAsyncDisposable
{
    /// <summary>
    /// Reaches the system and says what it is, or throws <see cref="TargetException"/> with a sentence for the user.
    /// </summary>
    Task<TargetDescription> ConnectAsync(CancellationToken cancellationToken);

    /// <summary>
    /// Opens the way by which worker number <paramref name="worker"/> sends. May be called from any thread after
    /// <see cref="ConnectAsync"/>.
    /// </summary>
    ITargetSession OpenSession(int worker);
}
