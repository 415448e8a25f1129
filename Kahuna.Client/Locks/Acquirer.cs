using System.Collections.Concurrent;
using System.Runtime.CompilerServices;
using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Locks;

/// <summary>
/// The acquire protocol: claims the lock, waits in the queue, verifies that a late grant is still usable, and abandons
/// claims whose callers no longer wait. Part of a <see cref="KahunaClient"/>; any thread.
/// </summary>
internal sealed class Acquirer(LockOperations calls, LeaseKeeper keeper)
{
    /// <summary>
    /// A caller that does not wait gives up after this many grants that ended before they could be used.
    /// </summary>
    private const int DeadGrantsMax = 3;

    /// <summary>The shortest hold of a long poll, however short the lease: a shorter one would be polling.</summary>
    private const long HoldMsMin = 500;

    /// <summary>The longest wait for an earlier call's claim to be abandoned; far longer than that takes.</summary>
    private static readonly TimeSpan s_abandonTimeMax = TimeSpan.FromHours(1);

    /// <summary>How long the disposal of the client waits for claims to be abandoned.</summary>
    private static readonly TimeSpan s_closeTimeMax = TimeSpan.FromSeconds(1);

    private readonly ConcurrentDictionary<(string Resource, Durability Durability, string Owner), Task> _abandoning =
        new();
    private readonly ConcurrentDictionary<Task, bool> _running = new();
    private readonly ConcurrentDictionary<WaitingClaim, bool> _waiting = new();
    private readonly SharedClaims _shared = new();
    private volatile bool _isClosing;

    public LockOperations Calls => calls;

    /// <summary>Acquires the lock.</summary>
    /// <param name="request">The lock and its mode.</param>
    /// <param name="wait">
    /// How long to wait for the lock; up to one request timeout more while no node answers. Null: only if the lock is
    /// free.
    /// </param>
    /// <param name="options">Owner, note and renewal; null for the defaults.</param>
    /// <param name="ct">Ends the wait; the claim is then abandoned in the background.</param>
    /// <returns>The handle; null when the lock is not free and the caller does not wait.</returns>
    public ValueTask<LockHandle?> AcquireAsync(
        LockRequest request, TimeSpan? wait, LockOptions? options, CancellationToken ct)
    {
        if (_isClosing)
        {
            return ValueTask.FromException<LockHandle?>(OperationErrors.Closed());
        }

        options ??= LockOptions.Default;
        OwnerClaim claim;
        try
        {
            claim = OwnerClaim.Of(in request, options, calls.Owners);
        }
        catch (KahunaException refused)
        {
            return ValueTask.FromException<LockHandle?>(refused);
        }

        if (ct.IsCancellationRequested)
        {
            return ValueTask.FromException<LockHandle?>(
                new KahunaCanceledException(OperationOutcome.DidNotHappen, ct));
        }

        AcquireLimits limits = new(calls.Clock, wait, calls.RequestTimeout);
        return claim.IsNamed
            ? AcquireNamedAsync(claim, wait, limits, options, ct)
            : AcquireAsync(claim, wait, limits, options, ct);
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    private async ValueTask<LockHandle?> AcquireNamedAsync(
        OwnerClaim claim, TimeSpan? wait, AcquireLimits limits, LockOptions options, CancellationToken ct)
    {
        if (_abandoning.TryGetValue(KeyOf(in claim), out Task? abandoning)
            && !await IsAbandonedAsync(abandoning, limits, ct).ConfigureAwait(calls.CapturesContext))
        {
            return wait is null ? null : throw OperationErrors.LockBusy(claim.Resource, wait.Value);
        }

        using SharedClaims.Call sharing = _shared.Enter(KeyOf(in claim), waits: wait is not null);
        using NamedLeases.PendingAcquire pending = calls.Named.BeginAcquire(claim.Key);
        return await AcquireAsync(
            claim with { Sharing = sharing, Pending = pending }, wait, limits, options, ct)
            .ConfigureAwait(calls.CapturesContext);
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    private async ValueTask<LockHandle?> AcquireAsync(
        OwnerClaim claim, TimeSpan? wait, AcquireLimits limits, LockOptions options, CancellationToken ct)
    {
        long? waitMs = wait is { } whole ? ConnectionClock.WholeMs(whole) : null;
        FencingToken known = default;
        for (int dead = 1; ; dead++)
        {
            claim.Pending?.Begin();
            long sent = dead == 1 && !claim.IsNamed ? limits.Begun : calls.Clock.Now;
            LockReply reply;
            try
            {
                ValueTask<LockReply> call = calls.AcquireAsync(in claim, waitMs, limits.LeftAt(sent));
                ValueTask<LockReply> answer = ct.CanBeCanceled && !call.IsCompleted
                    ? UnlessCanceledAsync(claim, AsTaskAsync(call), ct)
                    : call;
                reply = await answer.ConfigureAwait(calls.CapturesContext);
            }
            catch (KahunaException failure) when (failure.Outcome != OperationOutcome.DidNotHappen || !known.IsNone)
            {
                Abandon(in claim, failure.Outcome == OperationOutcome.DidNotHappen ? known : default, null);
                throw;
            }

            if (reply.Status == OutcomeStatus.ConditionFailed)
            {
                return null;
            }

            (FencingToken Token, long Begun) grant = reply.Status == OutcomeStatus.Applied
                ? (reply.Token, sent)
                : await WaitAsync(claim, reply, sent, limits, ct).ConfigureAwait(calls.CapturesContext);
            LockHandle? handle = grant.Token.IsNone ? null
                : IsFresh(in claim, grant.Begun) ? LockHandle.Begin(calls, keeper, in claim, grant, options)
                : await TakeLateAsync(claim, grant, options, limits, ct).ConfigureAwait(calls.CapturesContext);
            if (handle is not null)
            {
                return handle;
            }

            // The claim was given up, its lease ended before it could be used, or another call of its owner released
            // it: the same owner claims again.
            bool isGivenBack = !grant.Token.IsNone && claim.Pending?.IsEnded(grant.Token) == true;
            known = isGivenBack ? default : grant.Token;
            if (_isClosing)
            {
                throw OperationErrors.Disposed(mayHaveHappened: !known.IsNone);
            }

            waitMs = wait is null ? null : calls.Clock.Ms(limits.Until - calls.Clock.Now);
            if (waitMs <= 0 || (wait is null && (dead == DeadGrantsMax || limits.IsOver)))
            {
                return isGivenBack && wait is null ? null
                    : throw (known.IsNone
                        ? OperationErrors.LockBusy(claim.Resource, wait ?? default)
                        : TooShort(in claim, grant.Token));
            }
        }
    }

    /// <summary>
    /// Before the client's disposal: gives up places in queues and waits a moment for pending releases.
    /// </summary>
    public async ValueTask CloseAsync()
    {
        _isClosing = true;
        foreach (WaitingClaim waiting in _waiting.Keys)
        {
            AbandonPlace(waiting);
        }

        try
        {
            await Task.WhenAll(_running.Keys)
                .WaitAsync(s_closeTimeMax, calls.Time).ConfigureAwait(calls.CapturesContext);
        }
        catch (TimeoutException)
        {
            // The leader drops a claim that is no longer polled, and a lease expires.
        }
    }

    private static (string Resource, Durability Durability, string Owner) KeyOf(in OwnerClaim claim) =>
        (claim.Resource, claim.Durability, claim.OwnerText);

    /// <summary>
    /// Waits until an earlier claim of this owner is abandoned, so that its release cannot hit the new one. False when
    /// time runs out.
    /// </summary>
    private async ValueTask<bool> IsAbandonedAsync(Task abandoning, AcquireLimits limits, CancellationToken ct)
    {
        try
        {
            await abandoning.WaitAsync(
                limits.Left < s_abandonTimeMax ? limits.Left : s_abandonTimeMax, calls.Time, ct)
                .ConfigureAwait(calls.CapturesContext);
            return true;
        }
        catch (TimeoutException)
        {
            return false;
        }
        catch (OperationCanceledException)
        {
            throw new KahunaCanceledException(OperationOutcome.DidNotHappen, ct);
        }
    }

    /// <summary>The answer to a claim. If the caller cancels first, the claim is abandoned in the background.</summary>
    private async ValueTask<LockReply> UnlessCanceledAsync(
        OwnerClaim claim, Task<LockReply> answer, CancellationToken ct)
    {
        try
        {
            return await answer.WaitAsync(ct).ConfigureAwait(calls.CapturesContext);
        }
        catch (OperationCanceledException)
        {
            Abandon(in claim, default, answer);
            throw new KahunaCanceledException(OperationOutcome.Unknown, ct);
        }
    }

    /// <summary>As <see cref="ValueTask{TResult}.AsTask"/>, but continues in the client's context.</summary>
    private async Task<LockReply> AsTaskAsync(ValueTask<LockReply> call) =>
        await call.ConfigureAwait(calls.CapturesContext);

    /// <summary>
    /// Waits in the queue until the claim is granted; token 0 when the claim no longer exists. A failure abandons the
    /// place.
    /// </summary>
    private async ValueTask<(FencingToken Token, long Begun)> WaitAsync(
        OwnerClaim claim, LockReply queued, long sent, AcquireLimits limits, CancellationToken ct)
    {
        LeaseClock clock = new(calls.Clock);
        clock.Heard(sent, queued.TimeMs);
        WaitingClaim waiting = new(claim, queued.Token);
        _waiting.TryAdd(waiting, true);
        try
        {
            while (true)
            {
                (LockReply? answer, long asked) = await AskAsync(claim, queued.Token, limits, ct)
                    .ConfigureAwait(calls.CapturesContext);
                if (answer is not { } reply)
                {
                    continue;
                }

                if (reply.Status == OutcomeStatus.NotFound)
                {
                    return default;
                }

                clock.Heard(asked, reply.ClusterMs ?? reply.TimeMs);
                if (reply.Status == OutcomeStatus.Found)
                {
                    return (queued.Token, BegunAt(clock, reply.TimeMs, claim.Lease));
                }
            }
        }
        catch (OperationCanceledException)
        {
            AbandonPlace(waiting);
            throw new KahunaCanceledException(OperationOutcome.Unknown, ct);
        }
        catch (TimeoutException)
        {
            AbandonPlace(waiting);
            throw OperationErrors.LockBusy(claim.Resource, calls.Clock.Span(limits.Until - limits.Begun));
        }
        catch (KahunaException failure)
        {
            AbandonPlace(waiting);
            throw OperationErrors.ClaimIsMade(failure);
        }
        catch
        {
            AbandonPlace(waiting);
            throw;
        }
        finally
        {
            _waiting.TryRemove(waiting, out _);
        }
    }

    /// <summary>
    /// The start of a lease that ends at a given cluster time, or an earlier moment. It never returns a later moment
    /// than now, because the lease began before the reply was sent.
    /// </summary>
    private long BegunAt(LeaseClock clock, long endMs, TimeSpan lease) =>
        Math.Min(clock.At(endMs - ConnectionClock.WholeMs(lease)), calls.Clock.Now);

    /// <summary>Abandons a place in the queue, once.</summary>
    private void AbandonPlace(WaitingClaim waiting)
    {
        if (_waiting.TryRemove(waiting, out _))
        {
            Abandon(waiting.Claim, waiting.Token, null);
        }
    }

    /// <summary>
    /// Polls the claim once; also returns when it asked. Null when nobody answered and there is time to ask again.
    /// </summary>
    private async ValueTask<(LockReply? Reply, long Asked)> AskAsync(
        OwnerClaim claim, FencingToken token, AcquireLimits limits, CancellationToken ct)
    {
        long left = limits.Until - calls.Clock.Now;
        if (left <= 0)
        {
            throw new TimeoutException();
        }

        await calls.Waits.EnterAsync(calls.Clock.Span(left), ct).ConfigureAwait(calls.CapturesContext);
        try
        {
            long asked = calls.Clock.Now;
            long holdMs = Math.Clamp(
                calls.Clock.Ms(limits.Until - asked), 0, Math.Min(calls.Waits.NextHoldMs, HoldMsOf(in claim)));
            return (
                await calls.AwaitAsync(
                    in claim, token, holdMs, limits.Left - TimeSpan.FromMilliseconds(holdMs), ct)
                    .ConfigureAwait(calls.CapturesContext),
                asked);
        }
        catch (KahunaException failure) when (calls.Clock.Now < limits.Until
            && failure.Code is KahunaErrorCode.DeadlineExceeded
                or KahunaErrorCode.Unavailable
                or KahunaErrorCode.Overloaded)
        {
            // Each of these took a whole request timeout.
            return default;
        }
        finally
        {
            calls.Waits.Exit();
        }
    }

    /// <summary>
    /// A third of the lease: if the leader does not answer by then and another node is asked, a granted lease still
    /// lasts.
    /// </summary>
    private static long HoldMsOf(in OwnerClaim claim) => Math.Max(HoldMsMin, (long)claim.Lease.TotalMilliseconds / 3);

    /// <summary>True when enough of the lease is left for the handle's own renewals.</summary>
    private bool IsFresh(in OwnerClaim claim, long begun) =>
        LockHandle.UsableUntil(calls.Clock, begun, claim.Lease) - calls.Clock.Now
            > calls.Clock.Of(new TimeSpan(claim.Lease.Ticks / 3));

    /// <summary>The lease has ended or nearly so by this clock: the grant counts only if it can be renewed.</summary>
    private async ValueTask<LockHandle?> TakeLateAsync(
        OwnerClaim claim,
        (FencingToken Token, long Begun) grant,
        LockOptions options,
        AcquireLimits limits,
        CancellationToken ct)
    {
        try
        {
            long sent = calls.Clock.Now;
            LockReply reply = await calls.ExtendSoonAsync(in claim, grant.Token, limits.Left, ct)
                .ConfigureAwait(calls.CapturesContext);
            return reply.Status == OutcomeStatus.Applied
                && LockHandle.UsableUntil(calls.Clock, sent, claim.Lease) > calls.Clock.Now
                ? LockHandle.Begin(calls, keeper, in claim, (grant.Token, sent), options)
                : null;
        }
        catch (Exception failure)
        {
            if (!claim.IsNamed)
            {
                Abandon(in claim, grant.Token, null);
            }

            throw failure switch
            {
                KahunaException { Outcome: OperationOutcome.DidNotHappen } unsent =>
                    OperationErrors.ClaimIsMade(unsent),
                KahunaCanceledException => new KahunaCanceledException(OperationOutcome.Unknown, ct),
                _ => failure,
            };
        }
    }

    /// <summary>No grant arrived in time to be used; releases what the cluster may still have.</summary>
    private KahunaException TooShort(in OwnerClaim claim, FencingToken token)
    {
        if (!claim.IsNamed)
        {
            Abandon(in claim, token, null);
        }

        return OperationErrors.LeaseTooShort(claim.Resource, claim.Lease);
    }

    /// <summary>Abandons a claim in the background.</summary>
    /// <param name="claim">The claim.</param>
    /// <param name="token">The claim's token; 0 when unknown.</param>
    /// <param name="answer">The pending answer to the claim; null when it was lost.</param>
    private void Abandon(in OwnerClaim claim, FencingToken token, Task<LockReply>? answer)
    {
        OwnerClaim abandoned = claim;
        if (claim.Sharing is { } sharing && !sharing.ExitAsLast())
        {
            // Other calls of this owner wait with the same claim.
            return;
        }

        Task abandoning = calls.Start(() => AbandonAsync(abandoned, token, answer));
        _running.TryAdd(abandoning, true);
        _ = EndAsync(abandoning);
        if (claim.IsNamed)
        {
            (string Resource, Durability Durability, string Owner) key = KeyOf(in claim);
            _ = ForgetAsync(
                key, _abandoning.AddOrUpdate(key, abandoning, (_, before) => Task.WhenAll(before, abandoning)));
        }
    }

    private async Task EndAsync(Task abandoning)
    {
        await abandoning.ConfigureAwait(calls.CapturesContext);
        _running.TryRemove(abandoning, out _);
    }

    private async Task ForgetAsync((string Resource, Durability Durability, string Owner) key, Task abandoning)
    {
        await abandoning.ConfigureAwait(calls.CapturesContext);
        _abandoning.TryRemove(KeyValuePair.Create(key, abandoning));
    }

    private async Task AbandonAsync(OwnerClaim claim, FencingToken token, Task<LockReply>? answer)
    {
        try
        {
            token = !token.IsNone ? token : await FindAsync(claim, answer).ConfigureAwait(calls.CapturesContext);
            if (!token.IsNone)
            {
                // Another call of a named owner may have been granted the lock by now.
                await calls.ReleaseAsync(
                    in claim, token, onlyPlace: claim.IsNamed, CancellationToken.None)
                    .ConfigureAwait(calls.CapturesContext);
            }
        }
        catch (Exception failure) when (failure is KahunaException or ObjectDisposedException)
        {
            // The leader drops a claim that is no longer polled, and a lease expires.
        }
    }

    /// <summary>The token under which to abandon the claim; 0 when there is nothing to abandon.</summary>
    private async ValueTask<FencingToken> FindAsync(OwnerClaim claim, Task<LockReply>? answer)
    {
        LockReply? reply = null;
        try
        {
            reply = answer is null ? null : await answer.ConfigureAwait(calls.CapturesContext);
        }
        catch (KahunaException failure) when (failure.Outcome != OperationOutcome.DidNotHappen)
        {
            // Handled as a lost answer.
        }

        // Claiming again as the same owner returns the token. Lease and wait are so short that they leave nothing
        // behind.
        TimeSpan shortest = TimeSpan.FromMilliseconds(1);
        LockReply found = reply
            ?? await calls.AcquireAsync(claim with { Lease = shortest }, waitMs: 1, patience: null)
                .ConfigureAwait(calls.CapturesContext);

        // A named owner may have held the lock before, and other handles rely on it: its lease stays.
        return found.Status == OutcomeStatus.Queued || (found.Status == OutcomeStatus.Applied && !claim.IsNamed)
            ? found.Token
            : default;
    }

    /// <summary>A claim that waits in the queue.</summary>
    private sealed class WaitingClaim(in OwnerClaim claim, FencingToken token)
    {
        public OwnerClaim Claim { get; } = claim;

        public FencingToken Token => token;
    }
}
