using Grpc.Core;
using Kahuna.Client.Wire.Outcomes;
using Kahuna.Server.Api.Protos;

namespace Kahuna.Server.Api;

/// <summary>
/// Acquires a lock for one unary call: makes the claim, asks how it stands for as long as the caller waits, and reckons what is left of the lease when the answer leaves. Used once, by one flow; goes on
/// where its caller runs. All times are those of <see cref="LockCalls.NowMs"/>.
/// </summary>
/// <param name="calls">Carries commands out.</param>
/// <param name="claim">What is wanted.</param>
/// <param name="isNumbered">The call has a number: its command may be a repetition, and no other claim is made when this one is gone.</param>
/// <param name="timeLeft">Until the caller's deadline; null without one.</param>
/// <param name="caller">Ends when nobody waits for the answer any longer.</param>
/// <param name="stopping">Ends when the node stops.</param>
internal sealed class LockAcquisition(LockCalls calls, LockClaim claim, bool isNumbered, TimeSpan? timeLeft, CancellationToken caller, CancellationToken stopping)
{
    /// <summary>Longest time for which one question is held back: half of the time after which a leader gives up a claim that nobody asks about.</summary>
    private const int HoldMsMax = 10_000;

    /// <summary>Shortest such time, for the moment at which the wait ends.</summary>
    private const int HoldMsMin = 250;

    /// <summary>Cluster time may lag behind; after this, a wait that is over is ended from here.</summary>
    private const int GraceMs = 1000;

    /// <summary>Between two attempts at what did not go at once.</summary>
    private static readonly TimeSpan s_pause = TimeSpan.FromMilliseconds(500);

    private readonly long _beganMs = calls.NowMs;

    // This node's time less cluster time, at the least, as far as the present claim has told; it belongs to one epoch of the partition, as the claim does.
    private long _aheadMs;

    private long LeftMs => _beganMs + (claim.WaitMs ?? 0) - calls.NowMs;

    private long DeadlineLeftMs => timeLeft is { } left ? _beganMs + (long)left.TotalMilliseconds - calls.NowMs : long.MaxValue;

    /// <param name="command">The encoded command that makes the claim.</param>
    /// <exception cref="RpcException">It was refused, or ended while it waited.</exception>
    public async Task<AcquireLockResponse> RunAsync(byte[] command)
    {
        using CancellationTokenSource either = CancellationTokenSource.CreateLinkedTokenSource(caller, stopping);
        CancellationToken ct = either.Token;
        while (true)
        {
            long sentMs = calls.NowMs;
            (OutcomeStatus status, long token, long clusterMs) = Read(await MakeAsync(command, ct));
            if (status == OutcomeStatus.ConditionFailed)
            {
                return new AcquireLockResponse { HolderToken = token };
            }

            // What a number remembers may be of an attempt that was sent before this call.
            _aheadMs = status == OutcomeStatus.Queued && !isNumbered ? sentMs - clusterMs : long.MinValue;
            long? endMs = status == OutcomeStatus.Applied && !isNumbered ? sentMs + claim.LeaseMs : await WaitAsync(token, ct);
            endMs = await RefreshAsync(token, endMs, ct);
            if (endMs is { } end && end - calls.NowMs > 1)
            {
                // Rounding may have made up one millisecond.
                return new AcquireLockResponse { Granted = true, Token = token, RemainingLeaseMs = end - calls.NowMs - 1, LeaseMsFromCall = end - _beganMs - 1 };
            }

            if (isNumbered || LeftMs <= s_pause.TotalMilliseconds)
            {
                return new AcquireLockResponse { HolderToken = await HolderAsync(ct) };
            }

            await StepAsync(PauseAsync(ct), token, ct);
            command = LockCalls.Encode(claim.Acquire(Math.Max(1, LeftMs)));
        }
    }

    private static (OutcomeStatus Status, long Token, long Number) Read(byte[] bytes)
    {
        Outcome.TryRead(bytes, out Outcome outcome);
        return (outcome.Status, outcome.Revision, outcome.Number);
    }

    /// <summary>Makes the claim. When nobody waits for it any longer before it is known whether it is in the queue, that is seen to later.</summary>
    private async Task<byte[]> MakeAsync(byte[] command, CancellationToken ct)
    {
        Task<byte[]> making = calls.LeaseAsync(command, timeLeft, claim.WaitMs is null ? ct : CancellationToken.None);
        try
        {
            return await making.WaitAsync(ct);
        }
        catch (OperationCanceledException)
        {
            if (caller.IsCancellationRequested)
            {
                _ = LeaveAsync(making);
            }

            throw Ended();
        }
    }

    /// <summary>The moment until which the lease surely lasts; null: the claim is gone.</summary>
    private async Task<long?> WaitAsync(long token, CancellationToken ct)
    {
        while (true)
        {
            if (LeftMs < -GraceMs && claim.WaitMs is not null && await StepAsync(TryLeaveAsync(token), token, ct))
            {
                return null;
            }

            long holdMs = Math.Clamp(Math.Min(LeftMs, DeadlineLeftMs), HoldMsMin, Math.Clamp(claim.LeaseMs / 2, GraceMs, HoldMsMax));
            long sentMs = calls.NowMs;
            byte[]? bytes = await StepAsync(AskAsync(token, holdMs, ct), token, ct);
            if (bytes is not null && Learn(bytes, sentMs, out long? endMs) != OutcomeStatus.Queued)
            {
                return endMs;
            }

            if (bytes is null || calls.NowMs - sentMs < holdMs / 2)
            {
                // The leader holds back as many answers as it may, or has just changed.
                await StepAsync(PauseAsync(ct), token, ct);
            }
        }
    }

    private OutcomeStatus Learn(byte[] bytes, long sentMs, out long? endMs)
    {
        Outcome.TryRead(bytes, out Outcome outcome);
        if (outcome.Status is OutcomeStatus.Found or OutcomeStatus.Queued)
        {
            _aheadMs = Math.Max(_aheadMs, sentMs - LockCalls.ClusterMs(in outcome));
        }

        endMs = outcome.Status == OutcomeStatus.Found ? _aheadMs + outcome.Number : null;
        return outcome.Status;
    }

    /// <summary>How the claim stands; null when nobody could be asked, and there is time to ask again.</summary>
    private async Task<byte[]?> AskAsync(long token, long holdMs, CancellationToken ct)
    {
        try
        {
            return await calls.ExecuteAsync(LockCalls.Encode(claim.Await(token, holdMs)), null, ct);
        }
        catch (RpcException failure) when (IsPassing(failure.StatusCode) && LeftMs > 0 && !ct.IsCancellationRequested)
        {
            return null;
        }
    }

    private static bool IsPassing(StatusCode code) => code is StatusCode.Unavailable or StatusCode.ResourceExhausted or StatusCode.DeadlineExceeded;

    /// <summary>A grant of which little is left, because it was held up on its way, is renewed before it is passed on; null: it is lost.</summary>
    private async Task<long?> RefreshAsync(long token, long? endMs, CancellationToken ct)
    {
        if (endMs is not { } end || end - calls.NowMs >= claim.LeaseMs / 2)
        {
            return endMs;
        }

        long sentMs = calls.NowMs;
        byte[] bytes = await StepAsync(calls.LeaseAsync(LockCalls.Encode(claim.Extend(token)), timeLeft, ct), token, ct);
        return (OutcomeStatus)bytes[0] == OutcomeStatus.Applied ? sentMs + claim.LeaseMs : null;
    }

    /// <summary>Who has the lock, by its token; 0 when nobody does, or nobody could be asked.</summary>
    private async Task<long> HolderAsync(CancellationToken ct)
    {
        try
        {
            return Read(await calls.ExecuteAsync(LockCalls.Encode(claim.Get()), timeLeft, ct)).Token;
        }
        catch (RpcException)
        {
            return 0;
        }
    }

    private async Task<bool> PauseAsync(CancellationToken ct)
    {
        await calls.PauseAsync(s_pause, ct);
        return true;
    }

    /// <summary>Gives the place in the queue back. False when there is none: the claim has the lock, or is gone.</summary>
    private async Task<bool> TryLeaveAsync(long token) =>
        Read(await calls.ExecuteAsync(LockCalls.Encode(claim.Release(token, onlyPlace: true)), null, CancellationToken.None)).Status == OutcomeStatus.Applied;

    /// <summary>In the background: gives back the place that a claim gets in the queue. A lock that it gets instead stays: its owner may have asked again, and count on it.</summary>
    private async Task LeaveAsync(Task<byte[]> making)
    {
        try
        {
            (OutcomeStatus status, long token, _) = Read(await making);
            if (status == OutcomeStatus.Queued)
            {
                await TryLeaveAsync(token);
            }
        }
        catch (Exception failure) when (failure is RpcException or ObjectDisposedException)
        {
            // The leader gives up by itself what nobody asks about.
        }
    }

    private async Task LeaveAsync(long token)
    {
        try
        {
            await TryLeaveAsync(token);
        }
        catch (Exception failure) when (failure is RpcException or ObjectDisposedException)
        {
            // The leader gives up by itself what nobody asks about.
        }
    }

    /// <summary>Awaits what is done about a claim that was made: however that fails, it is said that there is one, and a caller who went away leaves the queue.</summary>
    private async Task<T> StepAsync<T>(Task<T> step, long token, CancellationToken ct)
    {
        try
        {
            return await step;
        }
        catch (Exception failure) when (failure is RpcException or OperationCanceledException)
        {
            if (caller.IsCancellationRequested)
            {
                _ = LeaveAsync(token);
            }

            throw ct.IsCancellationRequested || failure is not RpcException refusal
                ? Ended()
                : OutcomeErrors.Build(refusal.StatusCode, $"{refusal.Status.Detail} The claim may still wait, or have the lock; call again with the same owner.", OutcomeErrors.Unknown);
        }
    }

    private RpcException Ended() => caller.IsCancellationRequested
        ? OutcomeErrors.Build(StatusCode.DeadlineExceeded, "The deadline passed before the answer came. A place in the queue is given back; a lock that was granted in this moment lasts for its lease.", OutcomeErrors.Unknown)
        : OutcomeErrors.Build(StatusCode.Unavailable, "The node stops; the claim may still wait, or have the lock. Call again with the same owner.", OutcomeErrors.Unknown);
}
