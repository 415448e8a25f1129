using System.Runtime.CompilerServices;
using Kahuna.Client.Connection;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Locks;

/// <summary>
/// The lease behind a <see cref="LockHandle"/>: renews itself, knows until when the lock is certainly held, and signals
/// its loss. Kept by the <see cref="LeaseKeeper"/> until it ends. It does not reference its handle: one that the
/// application has dropped can be neither used nor released, so its lease is no longer renewed. Any thread.
/// </summary>
internal sealed class HeldLease
{
    /// <summary>
    /// Allowance for late alarms and for the time between reading a clock and acting on it. Clock drift comes on top.
    /// </summary>
    private static readonly TimeSpan s_latenessMax = TimeSpan.FromMilliseconds(500);

    /// <summary>The margin takes at most this fraction of a short lease.</summary>
    private const long MarginPartsMax = 10;

    private static readonly TimeSpan s_retryPauseMax = TimeSpan.FromSeconds(1);

    private const long Never = long.MaxValue;

    private readonly LockOperations _calls;
    private readonly LeaseKeeper _keeper;
    private readonly OwnerClaim _claim;
    private readonly long _renewUntil;
    private LockHandle? _keptHandle;
    private CancellationTokenSource? _lost;
    private long _heldUntil;
    private long _renewAt;
    private volatile bool _isReleased;
    private volatile bool _isForgotten;

    private HeldLease(
        LockOperations calls, LeaseKeeper keeper, in OwnerClaim claim, FencingToken token, LockOptions options)
    {
        _calls = calls;
        _keeper = keeper;
        _claim = claim;
        Token = token;
        _renewUntil = !options.AutoRenew ? long.MinValue
            : options.RenewFor is { } ceiling ? calls.Clock.After(ceiling) : Never;
    }

    /// <summary>The claim that was granted.</summary>
    public OwnerClaim Claim => _claim;

    /// <summary>The fencing token.</summary>
    public FencingToken Token { get; }

    /// <summary>True when continuations run in the context that the ports name.</summary>
    public bool CapturesContext => _calls.CapturesContext;

    /// <summary>The lock was released and the cluster has confirmed it.</summary>
    public bool IsReleased => _isReleased;

    /// <summary>
    /// How long the lock is certainly held without a further renewal; zero when it is lost or released.
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

            // Checked after the source exists, so that a concurrent loss either finds it or is found here.
            if (!TryStillHeld(out _))
            {
                Cancel(_lost);
            }

            return _lost.Token;
        }
    }

    /// <summary>When the lease is due in the <see cref="LeaseKeeper"/>, which guards it.</summary>
    public long Due { get; set; }

    /// <summary>Its index in the keeper's heap; 0 for none.</summary>
    public int Place { get; set; }

    /// <summary>Until when a lease that began at a given moment is relied on.</summary>
    public static long UsableUntil(ConnectionClock clock, long begun, TimeSpan lease) =>
        begun + clock.Of(lease - Margin(lease));

    /// <summary>Creates the handle of a grant; null when another call of its owner has released it meanwhile.</summary>
    public static LockHandle? Begin(
        LockOperations calls,
        LeaseKeeper keeper,
        in OwnerClaim claim,
        (FencingToken Token, long Begun) grant,
        LockOptions options)
    {
        HeldLease lease = new(calls, keeper, in claim, grant.Token, options);
        LockHandle handle = new(lease);

        // The timing of garbage collection is not part of a simulated run.
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
        return TryAdopt(reply, UsableUntil(_calls.Clock, sent, asked), isLast: false);
    }

    /// <summary>
    /// As <see cref="LockHandle.ReleaseAsync"/>. Other handles of the grant lose it before the request is sent, and no
    /// pending call of the owner gets it.
    /// </summary>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<bool> ReleaseAsync(CancellationToken ct)
    {
        Lose(isGivenBack: true);
        using NamedLeases.PendingRelease release = _calls.Named.BeginRelease(in _claim, Token);
        LockReply reply = await _calls.ReleaseAsync(in _claim, Token, onlyPlace: false, ct)
            .ConfigureAwait(_calls.CapturesContext);
        _isReleased = true;
        return reply.Status == OutcomeStatus.Applied;
    }

    /// <summary>The application has dropped the handle.</summary>
    public void Forget() => _isForgotten = true;

    /// <summary>The keeper's alarm: the lease is due.</summary>
    public void OnDue(long now)
    {
        if (!TryStillHeld(out _))
        {
            return;
        }

        long renewAt = Volatile.Read(ref _renewAt);
        if (renewAt <= now && Interlocked.CompareExchange(ref _renewAt, Never, renewAt) == renewAt)
        {
            if (!_isForgotten)
            {
                // On the keeper's own thread the renewal starts there, and needs no pool thread before it is written.
                _ = _keeper.HasThread ? RenewAsync() : _calls.Start(RenewAsync);
            }
            else
            {
                WarnOfForgetting();
            }
        }

        Reschedule();
    }

    /// <summary>The lock is no longer held, or no longer known to be.</summary>
    /// <param name="isGivenBack">The holder itself releases the lock and waits for no notice.</param>
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

    /// <summary>
    /// Logs a dropped handle. A logger is application code: it may block, and the keeper's thread serves other leases.
    /// </summary>
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

    /// <summary>Logs that the handle was collected without being disposed.</summary>
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
                // The caller has extended it further meanwhile.
                Volatile.Write(ref _renewAt, NextRenewal(heldUntil));
                Reschedule();
            }
            else if (lease > TimeSpan.Zero && UsableUntil(_calls.Clock, sent, lease) > heldUntil)
            {
                LockReply reply = await _calls.RenewAsync(in _claim, Token, lease)
                    .ConfigureAwait(_calls.CapturesContext);
                TryAdopt(reply, UsableUntil(_calls.Clock, sent, lease), isLast: lease < _claim.Lease);
            }
        }
        catch (Exception failure) when (failure is KahunaException or ObjectDisposedException)
        {
            // The renewal is repeated while the lease lasts; its end comes by the clock.
            TimeSpan pause = TimeSpan.FromTicks(Math.Min(_claim.Lease.Ticks / 10, s_retryPauseMax.Ticks));
            Volatile.Write(ref _renewAt, _calls.Clock.Now + _calls.Clock.Of(pause));
            Reschedule();
        }
    }

    /// <summary>Takes over the reply to an extension: a later end, or the loss of the lock.</summary>
    private bool TryAdopt(LockReply reply, long usableUntil, bool isLast)
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

    /// <summary>When a third of the lease has passed; never after the limit of renewals.</summary>
    private long NextRenewal(long heldUntil)
    {
        long full = UsableUntil(_calls.Clock, 0, _claim.Lease);
        long at = heldUntil - full + _calls.Clock.Of(new TimeSpan(_claim.Lease.Ticks / 3));
        return at >= _renewUntil || heldUntil >= _renewUntil ? Never : at;
    }

    /// <summary>When the lease needs attention next.</summary>
    public long NextDue => Math.Min(Volatile.Read(ref _renewAt), Volatile.Read(ref _heldUntil));

    private void Reschedule() => _keeper.Move(this);

    /// <summary>Checks the clock at every use, because timers of a paused process fire late.</summary>
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
    /// The part of a lease that is not relied on, so that the holder learns of a loss before anybody else can get the
    /// lock.
    /// </summary>
    private static TimeSpan Margin(TimeSpan lease) =>
        TimeSpan.FromTicks(
            Math.Min(lease.Ticks / MarginPartsMax, s_latenessMax.Ticks + (lease.Ticks / LeaseClock.RateParts)));

    private void Cancel(CancellationTokenSource lost, bool isGivenBack = false)
    {
        if (lost.IsCancellationRequested)
        {
            return;
        }

        if (!_calls.CapturesContext)
        {
            // The token is cancelled when this returns. The application's callbacks run elsewhere and delay no other
            // holder's notice.
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
            // The callbacks are the application's own.
        }
    }
}
