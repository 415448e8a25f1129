using System.Runtime.CompilerServices;
using Kahuna.Client.Connection;

namespace Kahuna.Client.Locks;

/// <summary>
/// A lock, or a permit of a semaphore, that was granted. It renews its lease by itself, tells when it is lost, and
/// gives the lock back when it is disposed. Any thread.
/// <para>
/// The holder goes by its own monotonic clock: <see cref="Remaining"/> and <see cref="LostToken"/> are reckoned from
/// the
/// moment at which the last confirmed request was sent, less a margin of 500 ms and 1 % of the lease, at most a tenth
/// of
/// it. So they speak before the cluster can give the lock to anybody else. Once lost, a handle stays lost, also when
/// the
/// cluster still has it. A process that stood still finds out at its next look at either; what it has sent before can
/// still arrive later, and only <see cref="Fence"/> keeps that from being carried out.
/// </para>
/// <para>Keep the handle for as long as the lock is needed. One that is forgotten (collected without being disposed) is
/// renewed no more, and a warning is logged.</para>
/// </summary>
public sealed class LockHandle : IAsyncDisposable
{
    private readonly HeldLease _lease;

    internal LockHandle(HeldLease lease) => _lease = lease;

    /// <summary>Name of the lock.</summary>
    public string Resource => _lease.Claim.Resource;

    /// <summary>Who holds it: the name that the caller has given, or the one that was made for this call.</summary>
    public string Owner => _lease.Claim.OwnerText;

    /// <summary>Level of the lock.</summary>
    public Durability Durability => (Durability)(byte)_lease.Claim.Durability;

    /// <summary>
    /// The fencing token: greater than that of every grant of this lock before, over releases, expiry, changes of
    /// leader, restarts and lost data of the ephemeral level.
    /// </summary>
    public long Token => _lease.Token;

    /// <summary>What a write carries so that it counts only while this grant lasts.</summary>
    public Fence Fence => new(Resource, Token);

    /// <summary>
    /// For how long the lock is surely held, if no renewal succeeds; zero when it is lost or was given back.
    /// </summary>
    public TimeSpan Remaining => _lease.Remaining;

    /// <summary>
    /// Cancelled before anybody else can have the lock: when the lease is about to end because it could not be renewed,
    /// when the cluster says that it is not held any more, when the handle gives it back, and
    /// when the client is disposed.
    /// </summary>
    public CancellationToken LostToken => _lease.LostToken;

    /// <summary>Renews the lease now.</summary>
    /// <param name="lease">1 ms to 1 hour, from now on; a lease that ends later anyway stays as it is. Null: the lease
    /// that the lock was acquired with, for which the handle itself always asks.</param>
    /// <param name="ct">Ends the wait; the lease may still be renewed.</param>
    /// <returns>True when the lock is held and its lease renewed; false when it is lost, of which <see
    /// cref="LostToken"/> then tells, too.</returns>
    /// <exception cref="KahunaException">A lease outside of its limits (<see cref="KahunaErrorCode.InvalidArgument"/>),
    /// or the call failed; the lease is as it was, or renewed.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<bool> ExtendAsync(TimeSpan? lease = null, CancellationToken ct = default) => _lease.ExtendAsync(lease, ct);

    /// <summary>
    /// Gives the lock back, so that whoever is first in its queue has it. <see cref="LostToken"/> is cancelled first.
    /// </summary>
    /// <param name="ct">Ends the wait; the lock may still be given back.</param>
    /// <returns>True when the cluster still had this grant; false when it was lost before, or given back
    /// already.</returns>
    /// <exception cref="KahunaException">The call failed: the lock may be held until its lease ends. It can be tried
    /// again.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<bool> ReleaseAsync(CancellationToken ct = default) => _lease.ReleaseAsync(ct);

    /// <summary>
    /// Gives the lock back as <see cref="ReleaseAsync"/> does, if that was not done. Never throws: when no node answers
    /// until the request timeout, the lock is free when its lease has ended.
    /// </summary>
    public ValueTask DisposeAsync() => _lease.IsReleased ? ValueTask.CompletedTask : ReleaseQuietlyAsync();

    /// <summary>A lease that began at a moment is relied on until this one.</summary>
    internal static long UsableUntil(ConnectionClock clock, long begun, TimeSpan lease) => HeldLease.UsableUntil(clock, begun, lease);

    /// <summary>Hands a grant out; null when its owner has given it back meanwhile.</summary>
    internal static LockHandle? Begin(LockCalls calls, LeaseKeeper keeper, in LockClaim claim, (long Token, long Begun) grant, LockOptions options) =>
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
            // The lease ends by itself.
        }
    }
}
