using System.Runtime.CompilerServices;
using Kahuna.Client.Connection;

namespace Kahuna.Client.Locks;

/// <summary>
/// A granted lock, or a permit of a semaphore. It renews its lease, reports its loss, and releases the lock when it is
/// disposed. Any thread.
/// <para>
/// The holder relies on its own monotonic clock: <see cref="Remaining"/> and <see cref="LostToken"/> count from the
/// moment at which the last confirmed request was sent. They subtract a margin of 500 ms and 1 % of the lease, at most
/// a tenth of it. So they signal the loss before the cluster can give the lock to anybody else.
/// </para>
/// <para>
/// A lost handle stays lost, even if the cluster still has the grant. A process that was paused learns of the loss when
/// it next reads either property. Requests that it sent before can still arrive later; only <see cref="Fence"/> keeps
/// them from being applied.
/// </para>
/// <para>
/// Keep the handle for as long as the lock is needed. A handle that is collected without being disposed is no longer
/// renewed, and a warning is logged.
/// </para>
/// </summary>
public sealed class LockHandle : IAsyncDisposable
{
    private readonly HeldLease _lease;

    internal LockHandle(HeldLease lease) => _lease = lease;

    /// <summary>The application has dropped the handle without releasing the lock.</summary>
    ~LockHandle() => _lease.Forget();

    /// <summary>Name of the lock.</summary>
    public string Resource => _lease.Claim.Resource;

    /// <summary>The owner: the name that the caller gave, or the one generated for this call.</summary>
    public string Owner => _lease.Claim.OwnerText;

    /// <summary>Durability of the lock.</summary>
    public Durability Durability => _lease.Claim.Durability;

    /// <summary>
    /// The fencing token, greater than that of every earlier grant of this lock. This holds across releases, expiry,
    /// changes of leader, restarts and lost data of ephemeral partitions.
    /// </summary>
    public FencingToken Token => _lease.Token;

    /// <summary>Makes a write count only while this grant lasts.</summary>
    public Fence Fence => new(Resource, Token);

    /// <summary>
    /// How long the lock is certainly held without a further renewal; zero when it is lost or released.
    /// </summary>
    public TimeSpan Remaining => _lease.Remaining;

    /// <summary>
    /// Cancelled before anybody else can have the lock: when the lease is about to end without a renewal, the cluster
    /// reports that it is not held, the handle releases it, or the client is disposed.
    /// </summary>
    public CancellationToken LostToken => _lease.LostToken;

    /// <summary>Renews the lease now.</summary>
    /// <param name="lease">
    /// The new lease, from now on: 1 ms to 1 hour. A lease that ends later is not shortened. Null for the lease that
    /// the lock was acquired with, which the handle's own renewals also use.
    /// </param>
    /// <param name="ct">Ends the wait; the lease may still be renewed.</param>
    /// <returns>
    /// True when the lock is held and its lease renewed; false when it is lost, which <see cref="LostToken"/> signals
    /// too.
    /// </returns>
    /// <exception cref="KahunaException">
    /// The lease is outside its range (<see cref="KahunaErrorCode.InvalidArgument"/>), or the call failed: the lease is
    /// unchanged or renewed.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<bool> ExtendAsync(TimeSpan? lease = null, CancellationToken ct = default) =>
        _lease.ExtendAsync(lease, ct);

    /// <summary>
    /// Releases the lock, so that the first in its queue gets it. <see cref="LostToken"/> is cancelled first.
    /// </summary>
    /// <param name="ct">Ends the wait; the lock may still be released.</param>
    /// <returns>True when the cluster still had this grant; false when it was lost or released before.</returns>
    /// <exception cref="KahunaException">
    /// The call failed: the lock may be held until its lease ends. The call may be repeated.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<bool> ReleaseAsync(CancellationToken ct = default)
    {
        GC.SuppressFinalize(this);
        return _lease.ReleaseAsync(ct);
    }

    /// <summary>
    /// Releases the lock as <see cref="ReleaseAsync"/> does, unless that was done. Never throws: if no node answers
    /// within the request timeout, the lock becomes free when its lease ends.
    /// </summary>
    public ValueTask DisposeAsync() => _lease.IsReleased ? ValueTask.CompletedTask : ReleaseQuietlyAsync();

    /// <summary>Until when a lease that began at a given moment is relied on.</summary>
    internal static long UsableUntil(ConnectionClock clock, long begun, TimeSpan lease) =>
        HeldLease.UsableUntil(clock, begun, lease);

    /// <summary>Creates the handle of a grant; null when its owner has released it meanwhile.</summary>
    internal static LockHandle? Begin(
        LockOperations calls,
        LeaseKeeper keeper,
        in OwnerClaim claim,
        (FencingToken Token, long Begun) grant,
        LockOptions options) =>
        HeldLease.Begin(calls, keeper, in claim, grant, options);

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    private async ValueTask ReleaseQuietlyAsync()
    {
        try
        {
            await ReleaseAsync().ConfigureAwait(_lease.CapturesContext);
        }
        catch (Exception failure) when (failure is KahunaException or ObjectDisposedException)
        {
            // The lease expires.
        }
    }
}
