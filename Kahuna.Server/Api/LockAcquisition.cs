using Grpc.Core;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Api.Protos;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Api;

/// <summary>
/// Acquires a lock for one unary call: sends the claim, polls it while the caller waits, and computes the remaining
/// lease when the reply leaves. Used once, by one flow; continuations run in the caller's context. All times are those
/// of <see cref="LockExecutor.Now"/>.
/// </summary>
/// <param name="calls">Executes commands.</param>
/// <param name="commands">Builds the commands of this request.</param>
/// <param name="isNumbered">Whether the call has a number. Its command may then be a retry, and a lost claim is not
/// replaced by a new one.</param>
/// <param name="timeLeft">Time until the caller's deadline; null: no deadline.</param>
/// <param name="caller">Cancelled when the caller no longer waits.</param>
/// <param name="stopping">Cancelled when the node stops.</param>
internal sealed class LockAcquisition(
    LockExecutor calls,
    LockCommandBuilder commands,
    bool isNumbered,
    TimeSpan? timeLeft,
    CancellationToken caller,
    CancellationToken stopping)
{
    /// <summary>
    /// Longest hold time of one poll: half of the time after which a leader abandons a claim that is not polled.
    /// </summary>
    private const int HoldMsMax = 10_000;

    /// <summary>Shortest hold time of one poll, for the end of the wait.</summary>
    private const int HoldMsMin = 250;

    /// <summary>Allowance for cluster time, which may lag. After it, this call ends a wait that is over.</summary>
    private const int GraceMs = 1000;

    /// <summary>Pause between two attempts.</summary>
    private static readonly TimeSpan s_pause = TimeSpan.FromMilliseconds(500);

    private readonly NodeTime _began = calls.Now;

    // Lower bound of this node's time minus cluster time, learned from the present claim. Valid for one epoch of the
    // partition, as the claim is.
    private long _clockOffsetMs;

    private long LeftMs => _began + (commands.WaitMs ?? 0) - calls.Now;

    private long DeadlineLeftMs =>
        timeLeft is { } left ? _began + (long)left.TotalMilliseconds - calls.Now : long.MaxValue;

    /// <summary>Acquires the lock.</summary>
    /// <param name="command">The encoded command that makes the claim.</param>
    /// <exception cref="RpcException">The claim was refused, or ended while it waited.</exception>
    public async Task<AcquireLockResponse> RunAsync(byte[] command)
    {
        using CancellationTokenSource either = CancellationTokenSource.CreateLinkedTokenSource(caller, stopping);
        CancellationToken ct = either.Token;
        while (true)
        {
            NodeTime sent = calls.Now;
            (OutcomeStatus status, long token, ClusterTime clusterTime) = Read(await SendClaimAsync(command, ct));
            if (status == OutcomeStatus.ConditionFailed)
            {
                return new AcquireLockResponse { HolderToken = token };
            }

            // The outcome of a numbered command may be that of an attempt sent before this call.
            _clockOffsetMs = status == OutcomeStatus.Queued && !isNumbered ? sent.Ms - clusterTime.Ms : long.MinValue;
            NodeTime? ends = status == OutcomeStatus.Applied && !isNumbered
                ? sent + commands.LeaseMs
                : await WaitAsync(token, ct);
            ends = await RefreshAsync(token, ends, ct);
            if (ends is { } end && end - calls.Now > 1)
            {
                // Rounding may have added one millisecond.
                return new AcquireLockResponse
                {
                    Granted = true,
                    Token = token,
                    RemainingLeaseMs = end - calls.Now - 1,
                    LeaseMsFromCall = end - _began - 1,
                };
            }

            if (isNumbered || LeftMs <= s_pause.TotalMilliseconds)
            {
                return new AcquireLockResponse { HolderToken = await HolderAsync(ct) };
            }

            await GuardAsync(PauseAsync(ct), token, ct);
            command = LockExecutor.Encode(commands.Acquire(Math.Max(1, LeftMs)));
        }
    }

    private static (OutcomeStatus Status, long Token, ClusterTime Time) Read(byte[] bytes)
    {
        Outcome.TryRead(bytes, out Outcome outcome);
        ClusterTime time = new(LockOutcome.TimeMsOf(in outcome));
        return (outcome.Status, LockOutcome.TokenOf(in outcome).Value, time);
    }

    /// <summary>
    /// Sends the claim. If the caller leaves before the outcome is known, a background task abandons the place in the
    /// queue.
    /// </summary>
    private async Task<byte[]> SendClaimAsync(byte[] command, CancellationToken ct)
    {
        Task<byte[]> sending = calls.ExecuteLeaseAsync(
            command, timeLeft, commands.WaitMs is null ? ct : CancellationToken.None);
        try
        {
            return await sending.WaitAsync(ct);
        }
        catch (OperationCanceledException)
        {
            if (caller.IsCancellationRequested)
            {
                _ = AbandonAsync(sending);
            }

            throw Ended();
        }
    }

    /// <summary>Waits for the grant. Returns a lower bound of the end of the lease; null: the claim is gone.</summary>
    private async Task<NodeTime?> WaitAsync(long token, CancellationToken ct)
    {
        while (true)
        {
            if (LeftMs < -GraceMs && commands.WaitMs is not null && await GuardAsync(TryAbandonAsync(token), token, ct))
            {
                return null;
            }

            long holdMs = Math.Clamp(
                Math.Min(LeftMs, DeadlineLeftMs), HoldMsMin, Math.Clamp(commands.LeaseMs / 2, GraceMs, HoldMsMax));
            NodeTime sent = calls.Now;
            byte[]? bytes = await GuardAsync(PollAsync(token, holdMs, ct), token, ct);
            if (bytes is not null && Learn(bytes, sent, out NodeTime? end) != OutcomeStatus.Queued)
            {
                return end;
            }

            if (bytes is null || calls.Now - sent < holdMs / 2)
            {
                // The leader holds its maximum of long polls, or has just changed.
                await GuardAsync(PauseAsync(ct), token, ct);
            }
        }
    }

    private OutcomeStatus Learn(byte[] bytes, NodeTime sent, out NodeTime? end)
    {
        Outcome.TryRead(bytes, out Outcome outcome);
        if (outcome.Status is OutcomeStatus.Found or OutcomeStatus.Queued)
        {
            _clockOffsetMs = Math.Max(_clockOffsetMs, sent.Ms - LockExecutor.TimeOf(in outcome).Ms);
        }

        end = outcome.Status == OutcomeStatus.Found
            ? new NodeTime(_clockOffsetMs + LockOutcome.TimeMsOf(in outcome))
            : null;
        return outcome.Status;
    }

    /// <summary>Polls the claim. Null if no node could be asked and time remains to ask again.</summary>
    private async Task<byte[]?> PollAsync(long token, long holdMs, CancellationToken ct)
    {
        try
        {
            return await calls.ExecuteAsync(LockExecutor.Encode(commands.Await(token, holdMs)), null, ct);
        }
        catch (RpcException failure) when (IsPassing(failure.StatusCode) && LeftMs > 0 && !ct.IsCancellationRequested)
        {
            return null;
        }
    }

    private static bool IsPassing(StatusCode code) =>
        code is StatusCode.Unavailable or StatusCode.ResourceExhausted or StatusCode.DeadlineExceeded;

    /// <summary>
    /// Renews a grant whose lease is more than half over, because it was delayed on its way. Null: the lock is lost.
    /// </summary>
    private async Task<NodeTime?> RefreshAsync(long token, NodeTime? end, CancellationToken ct)
    {
        if (end is not { } known || known - calls.Now >= commands.LeaseMs / 2)
        {
            return end;
        }

        NodeTime sent = calls.Now;
        byte[] bytes = await GuardAsync(
            calls.ExecuteLeaseAsync(LockExecutor.Encode(commands.Extend(token)), timeLeft, ct), token, ct);
        return (OutcomeStatus)bytes[0] == OutcomeStatus.Applied ? sent + commands.LeaseMs : null;
    }

    /// <summary>The token of the present holder; 0 if there is none or no node could be asked.</summary>
    private async Task<long> HolderAsync(CancellationToken ct)
    {
        try
        {
            return Read(await calls.ExecuteAsync(LockExecutor.Encode(commands.Get()), timeLeft, ct)).Token;
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

    /// <summary>Abandons the place in the queue. False if there is none: the claim holds the lock or is gone.</summary>
    private async Task<bool> TryAbandonAsync(long token) =>
        Read(await calls.ExecuteAsync(
            LockExecutor.Encode(commands.Release(token, onlyPlace: true)), null, CancellationToken.None)).Status
            == OutcomeStatus.Applied;

    /// <summary>
    /// In the background: abandons the claim if it is queued. A granted lock is kept, because its owner may have called
    /// again and rely on it.
    /// </summary>
    private async Task AbandonAsync(Task<byte[]> sending)
    {
        try
        {
            (OutcomeStatus status, long token, _) = Read(await sending);
            if (status == OutcomeStatus.Queued)
            {
                await TryAbandonAsync(token);
            }
        }
        catch (Exception failure) when (failure is RpcException or ObjectDisposedException)
        {
            // The leader abandons claims that are not polled.
        }
    }

    private async Task AbandonAsync(long token)
    {
        try
        {
            await TryAbandonAsync(token);
        }
        catch (Exception failure) when (failure is RpcException or ObjectDisposedException)
        {
            // The leader abandons claims that are not polled.
        }
    }

    /// <summary>
    /// Awaits a step that follows the claim. Any error reports that the claim exists, and a caller that has left is
    /// removed from the queue.
    /// </summary>
    private async Task<T> GuardAsync<T>(Task<T> step, long token, CancellationToken ct)
    {
        try
        {
            return await step;
        }
        catch (Exception failure) when (failure is RpcException or OperationCanceledException)
        {
            if (caller.IsCancellationRequested)
            {
                _ = AbandonAsync(token);
            }

            throw ct.IsCancellationRequested || failure is not RpcException refusal
                ? Ended()
                : OutcomeErrors.Build(
                    refusal.StatusCode,
                    $"{refusal.Status.Detail} The claim may still wait or hold the lock; "
                        + $"call again with the same owner.",
                    OutcomeErrors.Unknown);
        }
    }

    private RpcException Ended() => caller.IsCancellationRequested
        ? OutcomeErrors.Build(
            StatusCode.DeadlineExceeded,
            "The deadline passed before the reply arrived. The place in the queue is abandoned; a lock granted at "
                + "this moment is held until its lease ends.",
            OutcomeErrors.Unknown)
        : OutcomeErrors.Build(
            StatusCode.Unavailable,
            "The node is stopping; the claim may still wait or hold the lock. Call again with the same owner.",
            OutcomeErrors.Unknown);
}
