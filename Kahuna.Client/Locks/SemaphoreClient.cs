
namespace Kahuna.Client.Locks;

/// <summary>
/// Distributed semaphores: locks that a limited number of owners hold at the same time, each with a permit. Obtained
/// from <see cref="KahunaClient.Semaphores"/>; any thread, any number of concurrent calls.
/// <para>
/// Leases, queues, tokens and names are those of <see cref="LockClient"/>. <see cref="LockClient.GetAsync"/>,
/// <see cref="LockClient.ListAsync"/> and the calls without a handle work on semaphores too.
/// </para>
/// <para>
/// The first holder sets the number of permits, which is forgotten with the last one. A call with another number is
/// refused meanwhile.
/// </para>
/// </summary>
public sealed class SemaphoreClient
{
    private readonly Acquirer _acquirer;
    private readonly Durability _durability;

    internal SemaphoreClient(Acquirer acquirer, Durability durability)
    {
        _acquirer = acquirer;
        _durability = durability;
    }

    /// <summary>Acquires a permit and waits in the semaphore's queue while all are taken.</summary>
    /// <param name="name">Name of the semaphore.</param>
    /// <param name="permits">The number of permits of the semaphore: 1 to 10,000.</param>
    /// <param name="lease">
    /// How long the permit is held without a renewal: 1 ms to 1 hour, rounded up to whole milliseconds.
    /// </param>
    /// <param name="wait">How long to wait, from the call on: 1 ms to 24 hours.</param>
    /// <param name="options">Durability, owner and renewal; the mode is ignored. Null for the defaults.</param>
    /// <param name="ct">
    /// Ends the wait; the place in the queue, or a permit granted just then, is released in the background.
    /// </param>
    /// <returns>The permit; dispose it to release it.</returns>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.LockBusy"/>: the wait ran out. <see cref="KahunaErrorCode.LockModeDiffers"/>: the
    /// name is in use as a lock or with another number of permits. For other codes see
    /// <see cref="KahunaException.Outcome"/>.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<LockHandle> AcquireAsync(
        string name,
        int permits,
        TimeSpan lease,
        TimeSpan wait,
        LockOptions? options = null,
        CancellationToken ct = default) =>
        _acquirer.AcquireAsync(Request(name, permits, lease, options), wait, options, ct)!;

    /// <inheritdoc cref="AcquireAsync(string, int, TimeSpan, TimeSpan, LockOptions?, CancellationToken)"/>
    public ValueTask<LockHandle> AcquireAsync(
        string name, int permits, TimeSpan lease, TimeSpan wait, CancellationToken ct) =>
        AcquireAsync(name, permits, lease, wait, null, ct);

    /// <summary>Acquires a permit if one is free and nobody waits.</summary>
    /// <param name="name">Name of the semaphore.</param>
    /// <param name="permits">The number of permits of the semaphore: 1 to 10,000.</param>
    /// <param name="lease">
    /// How long the permit is held without a renewal: 1 ms to 1 hour, rounded up to whole milliseconds.
    /// </param>
    /// <param name="options">Durability, owner and renewal; the mode is ignored. Null for the defaults.</param>
    /// <param name="ct">Ends the wait for the answer; a permit granted just then is released in the background.</param>
    /// <returns>The permit, or null when none is free.</returns>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.LockModeDiffers"/>: the name is in use as a lock or with another number of permits.
    /// For other codes see <see cref="KahunaException.Outcome"/>.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<LockHandle?> TryAcquireAsync(
        string name, int permits, TimeSpan lease, LockOptions? options = null, CancellationToken ct = default) =>
        _acquirer.AcquireAsync(Request(name, permits, lease, options), null, options, ct);

    private LockRequest Request(string name, int permits, TimeSpan lease, LockOptions? options)
    {
        ArgumentNullException.ThrowIfNull(name);
        return new LockRequest(name, options?.Durability ?? _durability, lease, LockMode.Permit)
        {
            Permits = permits,
        };
    }
}
