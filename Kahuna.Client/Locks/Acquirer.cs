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

    private readonly ConcurrentDictionary<(string Resource, Durability Durability, string Owner), Task> _leaving = new();

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
        options ??= LockOptions.Default;
        LockClaim claim = LockClaim.Of(in wish, options, calls.Owners);
        if (ct.IsCancellationRequested)
        {
            throw new KahunaCanceledException(OperationOutcome.DidNotHappen, ct);
        }

        AcquireLimits limits = new(calls.Clock, wait, calls.RequestTimeout);
        if (claim.IsNamed && _leaving.TryGetValue(KeyOf(in claim), out Task? leaving) && !await HasLeftAsync(leaving, limits, ct).ConfigureAwait(calls.CapturesContext))
        {
            return wait is null ? null : throw Failures.LockBusy(claim.Resource, wait.Value);
        }

        long? waitMs = wait is { } whole ? ConnectionClock.WholeMs(whole) : null;
        for (int dead = 1; ; dead++)
        {
            long sent = calls.Clock.Now;
            LockReply reply;
            try
            {
                ValueTask<LockReply> call = calls.AcquireAsync(in claim, waitMs, limits.Left);
                reply = await (ct.CanBeCanceled && !call.IsCompleted ? UnlessCanceledAsync(claim, AsTaskAsync(call), ct) : call).ConfigureAwait(calls.CapturesContext);
            }
            catch (KahunaException failure) when (failure.Outcome != OperationOutcome.DidNotHappen)
            {
                Leave(in claim, 0, null);
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

            // The claim was given up, or its lease was over before it could be used: the same owner asks again.
            waitMs = wait is null ? null : calls.Clock.Ms(limits.Until - calls.Clock.Now);
            if (waitMs <= 0 || (wait is null && (dead == DeadGrantsMax || limits.IsOver)))
            {
                throw grant.Token == 0 ? Failures.LockBusy(claim.Resource, wait ?? default) : TooShort(in claim, grant.Token);
            }
        }
    }

    private static (string Resource, Durability Durability, string Owner) KeyOf(in LockClaim claim) => (claim.Resource, (Durability)(byte)claim.Durability, claim.OwnerText);

    /// <summary>What an earlier call of this owner gives back must not be what this one gets. False: it could not give it back in time.</summary>
    private async ValueTask<bool> HasLeftAsync(Task leaving, AcquireLimits limits, CancellationToken ct)
    {
        try
        {
            await leaving.WaitAsync(limits.Left, calls.Time, ct).ConfigureAwait(calls.CapturesContext);
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
        try
        {
            while (true)
            {
                (LockReply reply, long asked) = await AskAsync(claim, queued.Revision, limits, ct).ConfigureAwait(calls.CapturesContext);
                if (reply.Status == OutcomeStatus.NotFound)
                {
                    return default;
                }

                clock.Heard(asked, reply.ClusterMs ?? reply.Number);
                if (reply.Status == OutcomeStatus.Found)
                {
                    return (queued.Revision, clock.At(reply.Number) - calls.Clock.Of(claim.Lease));
                }
            }
        }
        catch (OperationCanceledException)
        {
            Leave(in claim, queued.Revision, null);
            throw new KahunaCanceledException(OperationOutcome.Unknown, ct);
        }
        catch (TimeoutException)
        {
            Leave(in claim, queued.Revision, null);
            throw Failures.LockBusy(claim.Resource, calls.Clock.Span(limits.Until - limits.Begun));
        }
        catch
        {
            Leave(in claim, queued.Revision, null);
            throw;
        }
    }

    /// <summary>Asks once how the claim stands; also says when it asked.</summary>
    private async ValueTask<(LockReply Reply, long Asked)> AskAsync(LockClaim claim, long token, AcquireLimits limits, CancellationToken ct)
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
            long holdMs = Math.Clamp(calls.Clock.Ms(limits.Until - asked), 0, calls.Gate.NextHoldMs);
            return (await calls.AwaitAsync(in claim, token, holdMs, limits.Left - TimeSpan.FromMilliseconds(holdMs), ct).ConfigureAwait(calls.CapturesContext), asked);
        }
        finally
        {
            calls.Gate.Leave();
        }
    }

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
        catch when (!claim.IsNamed)
        {
            Leave(in claim, grant.Token, null);
            throw;
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
        Task leaving = calls.Start(() => LeaveAsync(left, token, answer));
        if (claim.IsNamed)
        {
            (string Resource, Durability Durability, string Owner) key = KeyOf(in claim);
            _ = ForgetAsync(key, _leaving.AddOrUpdate(key, leaving, (_, before) => Task.WhenAll(before, leaving)));
        }
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
                await calls.ReleaseAsync(in claim, token, CancellationToken.None).ConfigureAwait(calls.CapturesContext);
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
}
