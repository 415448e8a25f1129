using System.Runtime.CompilerServices;
using Kahuna.Client.Connection;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Client.Locks;

/// <summary>
/// A lock, or a permit of a semaphore, that was granted. It renews its lease by itself, tells when it is lost, and gives the lock back when it is disposed. Any thread.
/// <para>
/// The holder goes by its own monotonic clock: <see cref="Remaining"/> and <see cref="LostToken"/> are reckoned from the moment at which the last confirmed request was sent, and with a margin of a tenth of
/// the lease (half a second at most), so that the cluster can give the lock to nobody else before they have said so. Once lost, a handle stays lost, also when the cluster still has it. A process that stood
/// still finds out at its next look at either; what it has sent before can still arrive later, which only <see cref="Fence"/> keeps from being carried out.
/// </para>
/// </summary>
public sealed class LockHandle : IAsyncDisposable
{
    /// <summary>Clocks that count up to 1 % differently, and a timer that is late.</summary>
    private static readonly TimeSpan s_marginMax = TimeSpan.FromMilliseconds(500);
    private static readonly TimeSpan s_retryPauseMax = TimeSpan.FromSeconds(1);

    private const long Never = long.MaxValue;

    private readonly LockCalls _calls;
    private readonly LeaseKeeper _keeper;
    private readonly LockClaim _claim;
    private readonly long _renewUntil;
    private CancellationTokenSource? _lost;
    private long _heldUntil;
    private long _renewAt;
    private volatile bool _isReleased;

    private LockHandle(LockCalls calls, LeaseKeeper keeper, in LockClaim claim, long token, LockOptions options)
    {
        _calls = calls;
        _keeper = keeper;
        _claim = claim;
        Token = token;
        _renewUntil = !options.AutoRenew ? long.MinValue : options.RenewFor is { } ceiling ? calls.Clock.After(ceiling) : Never;
    }

    /// <summary>Name of the lock.</summary>
    public string Resource => _claim.Resource;

    /// <summary>Who holds it: the name that the caller has given, or the one that was made for this call.</summary>
    public string Owner => _claim.OwnerText;

    /// <summary>Level of the lock.</summary>
    public Durability Durability => (Durability)(byte)_claim.Durability;

    /// <summary>The fencing token: greater than that of every grant of this lock before, over releases, expiry, changes of leader, restarts and lost data of the ephemeral level.</summary>
    public long Token { get; }

    /// <summary>What a write carries so that it counts only while this grant lasts.</summary>
    public Fence Fence => new(Resource, Token);

    /// <summary>For how long the lock is surely held, if no renewal succeeds; zero when it is lost or was given back.</summary>
    public TimeSpan Remaining => TryStillHeld(out long left) ? _calls.Clock.Span(left) : TimeSpan.Zero;

    /// <summary>
    /// Cancelled before anybody else can have the lock: when the lease is about to end because it could not be renewed, when the cluster says that it is not held any more, when the handle gives it back, and
    /// when the client is disposed.
    /// </summary>
    public CancellationToken LostToken
    {
        get
        {
            if (_lost is null)
            {
                Interlocked.CompareExchange(ref _lost, new CancellationTokenSource(), null);
            }

            // After it is there, so that whoever loses the lock meanwhile sees it or is seen here.
            if (!TryStillHeld(out _))
            {
                Cancel(_lost);
            }

            return _lost.Token;
        }
    }

    /// <summary>Its moment in the <see cref="LeaseKeeper"/>, which guards it.</summary>
    internal long Due { get; set; }

    /// <summary>Its place there; 0: none.</summary>
    internal int Place { get; set; }

    /// <summary>A lease beginning at a moment is relied on until this one.</summary>
    internal static long UsableUntil(ConnectionClock clock, long begun, TimeSpan lease) => begun + clock.Of(lease - TimeSpan.FromTicks(Math.Min(lease.Ticks / 10, s_marginMax.Ticks)));

    /// <summary>Hands a grant out.</summary>
    internal static LockHandle Begin(LockCalls calls, LeaseKeeper keeper, in LockClaim claim, (long Token, long Begun) grant, LockOptions options)
    {
        LockHandle handle = new(calls, keeper, in claim, grant.Token, options);
        handle._heldUntil = UsableUntil(calls.Clock, grant.Begun, claim.Lease);
        handle._renewAt = handle.NextRenewal(handle._heldUntil);
        if (!keeper.TryAdd(handle, Math.Min(handle._renewAt, handle._heldUntil)))
        {
            handle.Lose();
        }

        return handle;
    }

    /// <summary>Renews the lease now.</summary>
    /// <param name="lease">1 ms to 1 hour, from now on; a lease that ends later anyway stays as it is. Null: the lease that the lock was acquired with, for which the handle itself always asks.</param>
    /// <param name="ct">Ends the wait; the lease may still be renewed.</param>
    /// <returns>True when the lock is held and its lease renewed; false when it is lost, of which <see cref="LostToken"/> then tells, too.</returns>
    /// <exception cref="KahunaException">A lease outside of its limits (<see cref="KahunaErrorCode.InvalidArgument"/>), or the call failed; the lease is as it was, or renewed.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<bool> ExtendAsync(TimeSpan? lease = null, CancellationToken ct = default)
    {
        if (!TryStillHeld(out _))
        {
            return false;
        }

        TimeSpan asked = lease ?? _claim.Lease;
        long sent = _calls.Clock.Now;
        LockReply reply = await _calls.ExtendAsync(in _claim, Token, asked, ct).ConfigureAwait(_calls.CapturesContext);
        return TryTakeOn(reply, UsableUntil(_calls.Clock, sent, asked), isLast: false);
    }

    /// <summary>Gives the lock back, so that whoever is first in its queue has it. <see cref="LostToken"/> is cancelled first.</summary>
    /// <param name="ct">Ends the wait; the lock may still be given back.</param>
    /// <returns>True when the cluster still had this grant; false when it was lost before, or given back already.</returns>
    /// <exception cref="KahunaException">The call failed: the lock may be held until its lease ends. It can be tried again.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<bool> ReleaseAsync(CancellationToken ct = default)
    {
        Lose();
        LockReply reply = await _calls.ReleaseAsync(in _claim, Token, onlyPlace: false, ct).ConfigureAwait(_calls.CapturesContext);
        _isReleased = true;
        return reply.Status == OutcomeStatus.Applied;
    }

    /// <summary>Gives the lock back as <see cref="ReleaseAsync"/> does, if that was not done. Never throws: when no node answers until the request timeout, the lock is free when its lease has ended.</summary>
    public ValueTask DisposeAsync() => _isReleased ? ValueTask.CompletedTask : ReleaseQuietlyAsync();

    /// <summary>The keeper's timer says that the moment has come.</summary>
    internal void OnDue(long now)
    {
        if (!TryStillHeld(out _))
        {
            return;
        }

        long renewAt = Volatile.Read(ref _renewAt);
        if (renewAt <= now && Interlocked.CompareExchange(ref _renewAt, Never, renewAt) == renewAt)
        {
            _ = _calls.Start(RenewAsync);
        }

        Reschedule();
    }

    /// <summary>It is not held any more, or is not known to be.</summary>
    internal void Lose()
    {
        Volatile.Write(ref _heldUntil, long.MinValue);
        Interlocked.MemoryBarrier();
        _keeper.Remove(this);
        if (_lost is { } lost)
        {
            Cancel(lost);
        }
    }

    private async Task RenewAsync()
    {
        long sent = _calls.Clock.Now;
        try
        {
            TimeSpan lease = _renewUntil == Never ? _claim.Lease : TimeSpan.FromTicks(Math.Clamp(_calls.Clock.Span(_renewUntil - sent).Ticks, 0, _claim.Lease.Ticks));
            long heldUntil = Volatile.Read(ref _heldUntil);
            if (lease == _claim.Lease && UsableUntil(_calls.Clock, sent, lease) <= heldUntil)
            {
                // The caller has extended it by more meanwhile.
                Volatile.Write(ref _renewAt, NextRenewal(heldUntil));
                Reschedule();
            }
            else if (lease > TimeSpan.Zero && UsableUntil(_calls.Clock, sent, lease) > heldUntil)
            {
                LockReply reply = await _calls.RenewAsync(in _claim, Token, lease).ConfigureAwait(_calls.CapturesContext);
                TryTakeOn(reply, UsableUntil(_calls.Clock, sent, lease), isLast: lease < _claim.Lease);
            }
        }
        catch (Exception failure) when (failure is KahunaException or ObjectDisposedException)
        {
            // As long as the lease lasts it is tried again; its end comes by the clock.
            Volatile.Write(ref _renewAt, _calls.Clock.Now + _calls.Clock.Of(TimeSpan.FromTicks(Math.Min(_claim.Lease.Ticks / 10, s_retryPauseMax.Ticks))));
            Reschedule();
        }
    }

    /// <summary>An extension was answered.</summary>
    private bool TryTakeOn(LockReply reply, long usableUntil, bool isLast)
    {
        if (reply.Status != OutcomeStatus.Applied)
        {
            Lose();
            return false;
        }

        while (TryStillHeld(out _))
        {
            long before = Volatile.Read(ref _heldUntil);
            if (before == long.MinValue)
            {
                break;
            }

            if (before >= usableUntil || Interlocked.CompareExchange(ref _heldUntil, usableUntil, before) == before)
            {
                Volatile.Write(ref _renewAt, isLast ? Never : NextRenewal(Math.Max(before, usableUntil)));
                Reschedule();
                return true;
            }
        }

        return false;
    }

    /// <summary>When a third of the lease is over; never past the ceiling.</summary>
    private long NextRenewal(long heldUntil)
    {
        long full = UsableUntil(_calls.Clock, 0, _claim.Lease);
        long at = heldUntil - full + _calls.Clock.Of(_claim.Lease / 3);
        return at >= _renewUntil || heldUntil >= _renewUntil ? Never : at;
    }

    /// <summary>The next moment at which there is something to do.</summary>
    internal long NextDue => Math.Min(Volatile.Read(ref _renewAt), Volatile.Read(ref _heldUntil));

    private void Reschedule() => _keeper.Move(this);

    /// <summary>Looks at the clock, at every use: timers of a process that stood still come late.</summary>
    private bool TryStillHeld(out long left)
    {
        while (true)
        {
            long until = Volatile.Read(ref _heldUntil);
            left = until == long.MinValue ? 0 : until - _calls.Clock.Now;
            if (left > 0)
            {
                return true;
            }

            left = 0;
            if (until == long.MinValue)
            {
                return false;
            }

            if (Interlocked.CompareExchange(ref _heldUntil, long.MinValue, until) == until)
            {
                Lose();
                return false;
            }
        }
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    private async ValueTask ReleaseQuietlyAsync()
    {
        try
        {
            await ReleaseAsync().ConfigureAwait(_calls.CapturesContext);
        }
        catch (Exception failure) when (failure is KahunaException or ObjectDisposedException)
        {
            // The lease ends by itself.
        }
    }

    private void Cancel(CancellationTokenSource lost)
    {
        if (lost.IsCancellationRequested)
        {
            return;
        }

        if (!_calls.CapturesContext)
        {
            // It is cancelled when this returns; what the application has registered runs elsewhere, and keeps no other holder from being told.
            _ = lost.CancelAsync();
            return;
        }

        try
        {
            lost.Cancel();
        }
        catch (AggregateException)
        {
            // What the application has registered is its own.
        }
    }
}
