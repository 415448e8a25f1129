using System.Collections.Concurrent;
using System.Runtime.CompilerServices;
using Kahuna.Client.Connection;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Client.Locks;

/// <summary>
/// Brings a claim to its grant: asks for the lock, waits in the queue, makes sure that a grant that comes late still lasts, and gives up what its caller does not wait for any more. Part of a
/// <see cref="KahunaClient"/>; any thread.
/// </summary>
internal sealed class Acquirer(LockCalls calls, LeaseKeeper keeper)
{
    /// <summary>Grants that were over before they could be used, after which a caller who does not wait is told.</summary>
    private const int DeadGrantsMax = 3;

    /// <summary>For so long an answer may be held back however short the lease is: asking more often would be polling.</summary>
    private const long HoldMsMin = 500;

    /// <summary>Far longer than anything takes to be given back; a wait that no server accepts is refused afterwards.</summary>
    private static readonly TimeSpan s_leavingTimeMax = TimeSpan.FromHours(1);

    /// <summary>For so long the disposal of the client waits for what is being given back.</summary>
    private static readonly TimeSpan s_partingTime = TimeSpan.FromSeconds(1);

    private readonly ConcurrentDictionary<(string Resource, Durability Durability, string Owner), Task> _leaving = new();
    private readonly ConcurrentDictionary<Task, bool> _running = new();
    private readonly ConcurrentDictionary<WaitingClaim, bool> _waiting = new();
    private readonly SharedClaims _shared = new();
    private volatile bool _isClosing;

    public LockCalls Calls => calls;

    /// <summary>Gets the lock.</summary>
    /// <param name="wish">Which lock, and how.</param>
    /// <param name="wait">For how long it may take, and, while no node answers, for longer by up to the request timeout; null: if the lock is free.</param>
    /// <param name="options">Who asks, and what the handle does afterwards; null for the defaults.</param>
    /// <param name="ct">Ends the wait; what was asked for is then given back in the background.</param>
    /// <returns>The handle; null when the lock is not free and the caller does not wait.</returns>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public async ValueTask<LockHandle?> AcquireAsync(LockWish wish, TimeSpan? wait, LockOptions? options, CancellationToken ct)
    {
        ObjectDisposedException.ThrowIf(_isClosing, typeof(KahunaClient));
        options ??= LockOptions.Default;
        LockClaim claim = LockClaim.Of(in wish, options, calls.Owners);
        if (ct.IsCancellationRequested)
        {
            throw new KahunaCanceledException(OperationOutcome.DidNotHappen, ct);
        }

        AcquireLimits limits = new(calls.Clock, wait, calls.RequestTimeout);
        if (!claim.IsNamed)
        {
            return await AcquireAsync(claim, wait, limits, options, ct).ConfigureAwait(calls.CapturesContext);
        }

        if (_leaving.TryGetValue(KeyOf(in claim), out Task? leaving) && !await HasLeftAsync(leaving, limits, ct).ConfigureAwait(calls.CapturesContext))
        {
            return wait is null ? null : throw Failures.LockBusy(claim.Resource, wait.Value);
        }

        using SharedClaims.Call sharing = _shared.Enter(KeyOf(in claim), waits: wait is not null);
        using NamedLeases.Ask ask = calls.Named.Enter(claim.Key);
        return await AcquireAsync(claim with { Sharing = sharing, Ask = ask }, wait, limits, options, ct).ConfigureAwait(calls.CapturesContext);
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    private async ValueTask<LockHandle?> AcquireAsync(LockClaim claim, TimeSpan? wait, AcquireLimits limits, LockOptions options, CancellationToken ct)
    {
        long? waitMs = wait is { } whole ? ConnectionClock.WholeMs(whole) : null;
        long known = 0;
        for (int dead = 1; ; dead++)
        {
            claim.Ask?.Begin();
            long sent = calls.Clock.Now;
            LockReply reply;
            try
            {
                ValueTask<LockReply> call = calls.AcquireAsync(in claim, waitMs, limits.Left);
                reply = await (ct.CanBeCanceled && !call.IsCompleted ? UnlessCanceledAsync(claim, AsTaskAsync(call), ct) : call).ConfigureAwait(calls.CapturesContext);
            }
            catch (KahunaException failure) when (failure.Outcome != OperationOutcome.DidNotHappen || known != 0)
            {
                Leave(in claim, failure.Outcome == OperationOutcome.DidNotHappen ? known : 0, null);
                throw;
            }

            if (reply.Status == OutcomeStatus.ConditionFailed)
            {
                return null;
            }

            (long Token, long Begun) grant = reply.Status == OutcomeStatus.Applied
                ? (reply.Revision, sent)
                : await WaitAsync(claim, reply, sent, limits, ct).ConfigureAwait(calls.CapturesContext);
            LockHandle? handle = grant.Token == 0 ? null
                : IsFresh(in claim, grant.Begun) ? LockHandle.Begin(calls, keeper, in claim, grant, options)
                : await TakeLateAsync(claim, grant, options, limits, ct).ConfigureAwait(calls.CapturesContext);
            if (handle is not null)
            {
                return handle;
            }

            // The claim was given up, its lease was over before it could be used, or another call of its owner has given it back: the same owner asks again.
            bool isGivenBack = grant.Token != 0 && claim.Ask?.IsOver(grant.Token) == true;
            known = isGivenBack ? 0 : grant.Token;
            if (_isClosing)
            {
                throw Failures.Disposed(mayHaveHappened: known != 0);
            }

            waitMs = wait is null ? null : calls.Clock.Ms(limits.Until - calls.Clock.Now);
            if (waitMs <= 0 || (wait is null && (dead == DeadGrantsMax || limits.IsOver)))
            {
                return isGivenBack && wait is null ? null : throw (known == 0 ? Failures.LockBusy(claim.Resource, wait ?? default) : TooShort(in claim, grant.Token));
            }
        }
    }

    /// <summary>The client is about to be disposed: places in queues are given back, and what is on its way has a moment to get there.</summary>
    public async ValueTask CloseAsync()
    {
        _isClosing = true;
        foreach (WaitingClaim waiting in _waiting.Keys)
        {
            LeaveQueue(waiting);
        }

        try
        {
            await Task.WhenAll(_running.Keys).WaitAsync(s_partingTime, calls.Time).ConfigureAwait(calls.CapturesContext);
        }
        catch (TimeoutException)
        {
            // The leader gives up a claim that nobody asks about, and a lease ends by itself.
        }
    }

    private static (string Resource, Durability Durability, string Owner) KeyOf(in LockClaim claim) => (claim.Resource, (Durability)(byte)claim.Durability, claim.OwnerText);

    /// <summary>What an earlier call of this owner gives back must not be what this one gets. False: it could not give it back in time.</summary>
    private async ValueTask<bool> HasLeftAsync(Task leaving, AcquireLimits limits, CancellationToken ct)
    {
        try
        {
            await leaving.WaitAsync(limits.Left < s_leavingTimeMax ? limits.Left : s_leavingTimeMax, calls.Time, ct).ConfigureAwait(calls.CapturesContext);
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

    /// <summary>The answer to a claim, unless the caller gives up first: the claim then goes on in the background, and what it gets is given back.</summary>
    private async ValueTask<LockReply> UnlessCanceledAsync(LockClaim claim, Task<LockReply> answer, CancellationToken ct)
    {
        try
        {
            return await answer.WaitAsync(ct).ConfigureAwait(calls.CapturesContext);
        }
        catch (OperationCanceledException)
        {
            Leave(in claim, 0, answer);
            throw new KahunaCanceledException(OperationOutcome.Unknown, ct);
        }
    }

    /// <summary>As <see cref="ValueTask{TResult}.AsTask"/>, and goes on where the client does.</summary>
    private async Task<LockReply> AsTaskAsync(ValueTask<LockReply> call) => await call.ConfigureAwait(calls.CapturesContext);

    /// <summary>Waits in the queue until the claim is granted; a token of 0 says that there is no such claim any more. What fails leaves the queue.</summary>
    private async ValueTask<(long Token, long Begun)> WaitAsync(LockClaim claim, LockReply queued, long sent, AcquireLimits limits, CancellationToken ct)
    {
        LeaseClock clock = new(calls.Clock);
        clock.Heard(sent, queued.Number);
        WaitingClaim waiting = new(claim, queued.Revision);
        _waiting.TryAdd(waiting, true);
        try
        {
            while (true)
            {
                (LockReply? answer, long asked) = await AskAsync(claim, queued.Revision, limits, ct).ConfigureAwait(calls.CapturesContext);
                if (answer is not { } reply)
                {
                    continue;
                }

                if (reply.Status == OutcomeStatus.NotFound)
                {
                    return default;
                }

                clock.Heard(asked, reply.ClusterMs ?? reply.Number);
                if (reply.Status == OutcomeStatus.Found)
                {
                    return (queued.Revision, BegunAt(clock, reply.Number, claim.Lease));
                }
            }
        }
        catch (OperationCanceledException)
        {
            LeaveQueue(waiting);
            throw new KahunaCanceledException(OperationOutcome.Unknown, ct);
        }
        catch (TimeoutException)
        {
            LeaveQueue(waiting);
            throw Failures.LockBusy(claim.Resource, calls.Clock.Span(limits.Until - limits.Begun));
        }
        catch (KahunaException failure)
        {
            LeaveQueue(waiting);
            throw Failures.ClaimIsMade(failure);
        }
        catch
        {
            LeaveQueue(waiting);
            throw;
        }
        finally
        {
            _waiting.TryRemove(waiting, out _);
        }
    }

    /// <summary>
    /// When a lease that ends at a moment of cluster time began, or earlier. It began before it was told of, whatever the clocks say; from then on the margin of the lease covers them.
    /// </summary>
    private long BegunAt(LeaseClock clock, long endMs, TimeSpan lease) => Math.Min(clock.At(endMs - ConnectionClock.WholeMs(lease)), calls.Clock.Now);

    /// <summary>Gives a place in the queue back, unless that was done.</summary>
    private void LeaveQueue(WaitingClaim waiting)
    {
        if (_waiting.TryRemove(waiting, out _))
        {
            Leave(waiting.Claim, waiting.Token, null);
        }
    }

    /// <summary>Asks once how the claim stands; also says when it asked. Null: nobody answered, and there is time to ask again.</summary>
    private async ValueTask<(LockReply? Reply, long Asked)> AskAsync(LockClaim claim, long token, AcquireLimits limits, CancellationToken ct)
    {
        long left = limits.Until - calls.Clock.Now;
        if (left <= 0)
        {
            throw new TimeoutException();
        }

        await calls.Gate.EnterAsync(calls.Clock.Span(left), ct).ConfigureAwait(calls.CapturesContext);
        try
        {
            long asked = calls.Clock.Now;
            long holdMs = Math.Clamp(calls.Clock.Ms(limits.Until - asked), 0, Math.Min(calls.Gate.NextHoldMs, HoldMsOf(in claim)));
            return (await calls.AwaitAsync(in claim, token, holdMs, limits.Left - TimeSpan.FromMilliseconds(holdMs), ct).ConfigureAwait(calls.CapturesContext), asked);
        }
        catch (KahunaException failure) when (failure.Code is KahunaErrorCode.DeadlineExceeded or KahunaErrorCode.Unavailable or KahunaErrorCode.Overloaded && calls.Clock.Now < limits.Until)
        {
            // Each of these has taken a whole request timeout.
            return default;
        }
        finally
        {
            calls.Gate.Leave();
        }
    }

    /// <summary>A third of the lease: when the leader does not answer by then, and another node has to be asked, the lease of a grant still lasts.</summary>
    private static long HoldMsOf(in LockClaim claim) => Math.Max(HoldMsMin, (long)claim.Lease.TotalMilliseconds / 3);

    /// <summary>Enough of the lease is left for the handle's own renewals.</summary>
    private bool IsFresh(in LockClaim claim, long begun) => LockHandle.UsableUntil(calls.Clock, begun, claim.Lease) - calls.Clock.Now > calls.Clock.Of(claim.Lease / 3);

    /// <summary>By this clock the grant is over, or nearly: it counts if it can be renewed.</summary>
    private async ValueTask<LockHandle?> TakeLateAsync(LockClaim claim, (long Token, long Begun) grant, LockOptions options, AcquireLimits limits, CancellationToken ct)
    {
        try
        {
            long sent = calls.Clock.Now;
            LockReply reply = await calls.ExtendSoonAsync(in claim, grant.Token, limits.Left, ct).ConfigureAwait(calls.CapturesContext);
            return reply.Status == OutcomeStatus.Applied && LockHandle.UsableUntil(calls.Clock, sent, claim.Lease) > calls.Clock.Now
                ? LockHandle.Begin(calls, keeper, in claim, (grant.Token, sent), options)
                : null;
        }
        catch (Exception failure)
        {
            if (!claim.IsNamed)
            {
                Leave(in claim, grant.Token, null);
            }

            throw failure switch
            {
                KahunaException { Outcome: OperationOutcome.DidNotHappen } unsent => Failures.ClaimIsMade(unsent),
                KahunaCanceledException => new KahunaCanceledException(OperationOutcome.Unknown, ct),
                _ => failure,
            };
        }
    }

    /// <summary>No grant came in time to be used; what the cluster may still have is given back.</summary>
    private KahunaException TooShort(in LockClaim claim, long token)
    {
        if (!claim.IsNamed)
        {
            Leave(in claim, token, null);
        }

        return Failures.LeaseTooShort(claim.Resource, claim.Lease);
    }

    /// <summary>Gives up in the background what is not waited for any more.</summary>
    /// <param name="claim">Who asked for which lock.</param>
    /// <param name="token">The token of the claim; 0: not known.</param>
    /// <param name="answer">The answer to the claim, which is still to come; null: it was lost.</param>
    private void Leave(in LockClaim claim, long token, Task<LockReply>? answer)
    {
        LockClaim left = claim;
        if (claim.Sharing is { } sharing && !sharing.ExitAsLast())
        {
            // Other calls of this owner wait with the same claim.
            return;
        }

        Task leaving = calls.Start(() => LeaveAsync(left, token, answer));
        _running.TryAdd(leaving, true);
        _ = EndAsync(leaving);
        if (claim.IsNamed)
        {
            (string Resource, Durability Durability, string Owner) key = KeyOf(in claim);
            _ = ForgetAsync(key, _leaving.AddOrUpdate(key, leaving, (_, before) => Task.WhenAll(before, leaving)));
        }
    }

    private async Task EndAsync(Task leaving)
    {
        await leaving.ConfigureAwait(calls.CapturesContext);
        _running.TryRemove(leaving, out _);
    }

    private async Task ForgetAsync((string Resource, Durability Durability, string Owner) key, Task leaving)
    {
        await leaving.ConfigureAwait(calls.CapturesContext);
        _leaving.TryRemove(KeyValuePair.Create(key, leaving));
    }

    private async Task LeaveAsync(LockClaim claim, long token, Task<LockReply>? answer)
    {
        try
        {
            token = token != 0 ? token : await FindAsync(claim, answer).ConfigureAwait(calls.CapturesContext);
            if (token != 0)
            {
                // Another call of an owner that the caller has named may have been granted the lock by now.
                await calls.ReleaseAsync(in claim, token, onlyPlace: claim.IsNamed, CancellationToken.None).ConfigureAwait(calls.CapturesContext);
            }
        }
        catch (Exception failure) when (failure is KahunaException or ObjectDisposedException)
        {
            // The leader gives up a claim that nobody asks about, and a lease ends by itself.
        }
    }

    /// <summary>The token under which the claim is to be given up; 0: there is nothing to give up.</summary>
    private async ValueTask<long> FindAsync(LockClaim claim, Task<LockReply>? answer)
    {
        LockReply? reply = null;
        try
        {
            reply = answer is null ? null : await answer.ConfigureAwait(calls.CapturesContext);
        }
        catch (KahunaException failure) when (failure.Outcome != OperationOutcome.DidNotHappen)
        {
            // As if there had been no answer.
        }

        // Who asks again as the same owner learns the token; for a lease and a wait so short that they leave nothing behind.
        TimeSpan shortest = TimeSpan.FromMilliseconds(1);
        LockReply found = reply ?? await calls.AcquireAsync(claim with { Lease = shortest }, waitMs: 1, patience: null).ConfigureAwait(calls.CapturesContext);

        // An owner that the caller has named may have had the lock before, and other handles rely on it: its lease goes on as it is.
        return found.Status == OutcomeStatus.Queued || (found.Status == OutcomeStatus.Applied && !claim.IsNamed) ? found.Revision : 0;
    }

    /// <summary>A claim that waits in the queue.</summary>
    private sealed class WaitingClaim(in LockClaim claim, long token)
    {
        public LockClaim Claim { get; } = claim;

        public long Token => token;
    }
}
