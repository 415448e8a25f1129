using Kahuna.Client.Connection;

namespace Kahuna.Client.Locks;

/// <summary>
/// Locks that up to so many hold at the same time, each with a permit of its own. Part of a <see cref="KahunaClient"/>; any thread, any number of calls at a time. Everything that <see cref="Locks"/> says of
/// leases, queues, tokens and names holds for permits; <see cref="Locks.GetAsync"/>, <see cref="Locks.ListAsync"/> and the calls without a handle work on them, too.
/// <para>How many permits there are is said by whoever takes the first one, and is forgotten with the last; a call that says another number meanwhile is refused.</para>
/// </summary>
public sealed class Semaphores
{
    private readonly Acquirer _acquirer;
    private readonly Durability _durability;

    internal Semaphores(Acquirer acquirer, Durability durability)
    {
        _acquirer = acquirer;
        _durability = durability;
    }

    /// <summary>Gets a permit, waiting in the semaphore's queue while all are taken.</summary>
    /// <param name="name">Name of the semaphore.</param>
    /// <param name="permits">How many there are; 1 to 10,000.</param>
    /// <param name="lease">For how long the permit is held without a renewal; 1 ms to 1 hour, fractions of a millisecond are rounded up.</param>
    /// <param name="wait">How long to wait, from the call on; 1 ms to 24 hours.</param>
    /// <param name="options">Level, owner and renewal; the mode is not looked at. Null for the defaults.</param>
    /// <param name="ct">Ends the wait; the place in the queue, or the permit if it is granted just then, is given up in the background.</param>
    /// <returns>The permit; dispose it to give it back.</returns>
    /// <exception cref="KahunaException">
    /// With <see cref="KahunaErrorCode.LockBusy"/> the wait ran out, with <see cref="KahunaErrorCode.LockModeDiffers"/> the name is in use as a lock or with another number of permits. For other codes see
    /// <see cref="KahunaException.Outcome"/>.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<LockHandle> AcquireAsync(string name, int permits, TimeSpan lease, TimeSpan wait, LockOptions? options = null, CancellationToken ct = default) =>
        _acquirer.AcquireAsync(Wish(name, permits, lease, options), wait, options, ct)!;

    /// <inheritdoc cref="AcquireAsync(string, int, TimeSpan, TimeSpan, LockOptions?, CancellationToken)"/>
    public ValueTask<LockHandle> AcquireAsync(string name, int permits, TimeSpan lease, TimeSpan wait, CancellationToken ct) => AcquireAsync(name, permits, lease, wait, null, ct);

    /// <summary>Gets a permit if one is free and nobody waits.</summary>
    /// <param name="name">Name of the semaphore.</param>
    /// <param name="permits">How many there are; 1 to 10,000.</param>
    /// <param name="lease">For how long the permit is held without a renewal; 1 ms to 1 hour, fractions of a millisecond are rounded up.</param>
    /// <param name="options">Level, owner and renewal; the mode is not looked at. Null for the defaults.</param>
    /// <param name="ct">Ends the wait for the answer; a permit that is granted just then is given up in the background.</param>
    /// <returns>The permit, or null when none is free.</returns>
    /// <exception cref="KahunaException">With <see cref="KahunaErrorCode.LockModeDiffers"/> the name is in use as a lock or with another number of permits; for other codes see <see cref="KahunaException.Outcome"/>.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<LockHandle?> TryAcquireAsync(string name, int permits, TimeSpan lease, LockOptions? options = null, CancellationToken ct = default) =>
        _acquirer.AcquireAsync(Wish(name, permits, lease, options), null, options, ct);

    private LockWish Wish(string name, int permits, TimeSpan lease, LockOptions? options)
    {
        ArgumentNullException.ThrowIfNull(name);
        return new LockWish(name, WireLevels.Of(options?.Durability ?? _durability), lease, LockMode.Permit) { Permits = permits };
    }
}
