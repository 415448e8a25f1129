using System.Runtime.CompilerServices;
using Kahuna.Client.Connection;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Client.Locks;

/// <summary>
/// The lease behind a <see cref="LockHandle"/>: renews itself, knows until when the lock is surely held, and tells the
/// holder when it is lost. Held by the <see cref="LeaseKeeper"/> until it is over. It knows its handle weakly: a handle
/// that the application has forgotten can neither be given back nor used, so its lease is renewed no more. Any thread.
/// </summary>
internal sealed class HeldLease
{
    /// <summary>
    /// Alarms that are late and what lies between reading a clock and acting on it. Clocks come on top.
    /// </summary>
    private static readonly TimeSpan s_latenessMax = TimeSpan.FromMilliseconds(500);

    /// <summary>Of a lease that is too short for all of that, the margin takes one part in so many.</summary>
    private const long MarginPartsMax = 10;

    private static readonly TimeSpan s_retryPauseMax = TimeSpan.FromSeconds(1);

    private const long Never = long.MaxValue;

    private readonly LockCalls _calls;
    private readonly LeaseKeeper _keeper;
    private readonly LockClaim _claim;
    private readonly long _renewUntil;
    private readonly WeakReference<LockHandle> _handle = new(null!);
    private LockHandle? _keptHandle;
    private CancellationTokenSource? _lost;
    private long _heldUntil;
    private long _renewAt;
    private volatile bool _isReleased;

    private HeldLease(LockCalls calls, LeaseKeeper keeper, in LockClaim claim, long token, LockOptions options)
    {
        _calls = calls;
        _keeper = keeper;
        _claim = claim;
        Token = token;
        _renewUntil = !options.AutoRenew ? long.MinValue
            : options.RenewFor is { } ceiling ? calls.Clock.After(ceiling) : Never;
    }

    /// <summary>Who holds which lock.</summary>
    public LockClaim Claim => _claim;

    /// <summary>The fencing token.</summary>
    public long Token { get; }

    /// <summary>Code after an await goes on in the context that the ports name.</summary>
    public bool CapturesContext => _calls.CapturesContext;

    /// <summary>Gave the lock back, and the cluster has answered.</summary>
    public bool IsReleased => _isReleased;

    /// <summary>
    /// For how long the lock is surely held, if no renewal succeeds; zero when it is lost or was given back.
    /// </summary>
    public TimeSpan Remaining => TryStillHeld(out long left) ? _calls.Clock.Span(left) : TimeSpan.Zero;

    /// <summary>As <see cref="LockHandle.LostToken"/>.</summary>
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
    public long Due { get; set; }

    /// <summary>Its place there; 0: none.</summary>
    public int Place { get; set; }

    /// <summary>A lease that began at a moment is relied on until this one.</summary>
    public static long UsableUntil(ConnectionClock clock, long begun, TimeSpan lease) =>
        begun + clock.Of(lease - Margin(lease));

    /// <summary>Hands a grant out; null when another call of its owner has given it back meanwhile.</summary>
    public static LockHandle? Begin(
        LockCalls calls, LeaseKeeper keeper, in LockClaim claim, (long Token, long Begun) grant, LockOptions options)
    {
        HeldLease lease = new(calls, keeper, in claim, grant.Token, options);
        LockHandle handle = new(lease);
        lease._handle.SetTarget(handle);

        // When the collector looks is not part of a simulated run.
        lease._keptHandle = calls.CapturesContext ? handle : null;
        lease._heldUntil = UsableUntil(calls.Clock, grant.Begun, claim.Lease);
        lease._renewAt = lease.NextRenewal(lease._heldUntil);
        if (!calls.Named.TryAdd(lease))
        {
            return null;
        }

        claim.Hold?.Grant(lease);
        if (!keeper.TryAdd(lease, lease.NextDue))
        {
            lease.Lose();
        }

        return handle;
    }

    /// <summary>As <see cref="LockHandle.ExtendAsync"/>.</summary>
    public async ValueTask<bool> ExtendAsync(TimeSpan? lease, CancellationToken ct)
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

    /// <summary>
    /// As <see cref="LockHandle.ReleaseAsync"/>. Handles of the same grant lose it before the request leaves, and no call
    /// that is under way gets one.
    /// </summary>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<bool> ReleaseAsync(CancellationToken ct)
    {
        Lose(isGivenBack: true);
        using NamedLeases.Parting parting = _calls.Named.GiveBack(in _claim, Token);
        LockReply reply = await _calls.ReleaseAsync(in _claim, Token, onlyPlace: false, ct)
            .ConfigureAwait(_calls.CapturesContext);
        _isReleased = true;
        return reply.Status == OutcomeStatus.Applied;
    }

    /// <summary>The keeper's alarm says that the moment has come.</summary>
    public void OnDue(long now)
    {
        if (!TryStillHeld(out _))
        {
            return;
        }

        long renewAt = Volatile.Read(ref _renewAt);
        if (renewAt <= now && Interlocked.CompareExchange(ref _renewAt, Never, renewAt) == renewAt)
        {
            if (_handle.TryGetTarget(out _))
            {
                // On the keeper's own thread it begins there: it needs no thread of the pool before it is written.
                _ = _keeper.HasThread ? RenewAsync() : _calls.Start(RenewAsync);
            }
            else
            {
                WarnOfForgetting();
            }
        }

        Reschedule();
    }

    /// <summary>It is not held any more, or is not known to be.</summary>
    /// <param name="isGivenBack">The holder itself gives it back and waits for no news of that.</param>
    public void Lose(bool isGivenBack = false)
    {
        Volatile.Write(ref _heldUntil, long.MinValue);
        Interlocked.MemoryBarrier();
        _keeper.Remove(this);
        _calls.Named.Remove(this);
        if (_lost is { } lost)
        {
            Cancel(lost, isGivenBack);
        }
    }

    /// <summary>A logger is code of the application: it may block, and the keeper's thread serves other leases.</summary>
    private void WarnOfForgetting()
    {
        if (_keeper.HasThread)
        {
            LossNotices.LogOnPool(this);
        }
        else
        {
            LogForgotten();
        }
    }

    /// <summary>Writes that the handle was collected without being disposed.</summary>
    internal void LogForgotten() => LockLog.Forgotten(_calls.Logger, _claim.Resource, Token);

    private async Task RenewAsync()
    {
        long sent = _calls.Clock.Now;
        try
        {
            TimeSpan lease = _renewUntil == Never
                ? _claim.Lease
                : TimeSpan.FromTicks(Math.Clamp(_calls.Clock.Span(_renewUntil - sent).Ticks, 0, _claim.Lease.Ticks));
            long heldUntil = Volatile.Read(ref _heldUntil);
            if (lease == _claim.Lease && UsableUntil(_calls.Clock, sent, lease) <= heldUntil)
            {
                // The caller has extended it by more meanwhile.
                Volatile.Write(ref _renewAt, NextRenewal(heldUntil));
                Reschedule();
            }
            else if (lease > TimeSpan.Zero && UsableUntil(_calls.Clock, sent, lease) > heldUntil)
            {
                LockReply reply = await _calls.RenewAsync(in _claim, Token, lease)
                    .ConfigureAwait(_calls.CapturesContext);
                TryTakeOn(reply, UsableUntil(_calls.Clock, sent, lease), isLast: lease < _claim.Lease);
            }
        }
        catch (Exception failure) when (failure is KahunaException or ObjectDisposedException)
        {
            // As long as the lease lasts it is tried again; its end comes by the clock.
            TimeSpan pause = TimeSpan.FromTicks(Math.Min(_claim.Lease.Ticks / 10, s_retryPauseMax.Ticks));
            Volatile.Write(ref _renewAt, _calls.Clock.Now + _calls.Clock.Of(pause));
            Reschedule();
        }
    }

    /// <summary>An extension was answered.</summary>
    private bool TryTakeOn(LockReply reply, long usableUntil, bool isLast)
    {
        if (reply.Status != OutcomeStatus.Applied)
        {
            Lose();
            _calls.Named.Lose(in _claim, Token);
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
    public long NextDue => Math.Min(Volatile.Read(ref _renewAt), Volatile.Read(ref _heldUntil));

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

    /// <summary>
    /// What is left out of a lease, so that the holder is told before the cluster can give the lock to anybody else.
    /// </summary>
    private static TimeSpan Margin(TimeSpan lease) =>
        TimeSpan.FromTicks(Math.Min(lease.Ticks / MarginPartsMax, s_latenessMax.Ticks + (lease.Ticks / LeaseClock.RateParts)));

    private void Cancel(CancellationTokenSource lost, bool isGivenBack = false)
    {
        if (lost.IsCancellationRequested)
        {
            return;
        }

        if (!_calls.CapturesContext)
        {
            // It is cancelled when this returns; what the application has registered runs elsewhere, and keeps no other
            // holder from being told.
            if (_calls.Losses is { } losses && !isGivenBack)
            {
                losses.Cancel(lost);
            }
            else
            {
                _ = lost.CancelAsync();
            }

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
