using System.Runtime.CompilerServices;
using Kahuna.Client.Locks;
using Kahuna.Client.Outcomes;
using Kahuna.Wire;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Elections;

/// <summary>
/// Leader elections: one leader out of many candidates. Obtained from <see cref="KahunaClient.Elections"/>; any thread,
/// any number of concurrent calls.
/// <para>
/// An election is a lock of the same name. Candidates lead in the order in which they began to campaign, each under a
/// token greater than every earlier one. When a leader fails, the next one leads after its lease has ended. Calls
/// without a durability use the client's.
/// </para>
/// </summary>
public sealed class ElectionClient
{
    private static readonly TimeSpan s_waitMax = TimeSpan.FromMilliseconds(Limits.LockWaitMsMax);

    /// <summary>
    /// The pause after a poll that failed, which may have failed at once because too many operations wait.
    /// </summary>
    private static readonly TimeSpan s_pause = TimeSpan.FromMilliseconds(200);

    private readonly Acquirer _acquirer;
    private readonly LockOperations _calls;
    private readonly Durability _durability;

    internal ElectionClient(Acquirer acquirer, Durability durability)
    {
        _acquirer = acquirer;
        _calls = acquirer.Calls;
        _durability = durability;
    }

    /// <summary>
    /// Waits until this candidate leads, for any length of time: only <paramref name="ct"/> ends a campaign that others
    /// win.
    /// </summary>
    /// <param name="name">Name of the election.</param>
    /// <param name="candidate">
    /// What every client can read about the leader, such as its address; at most 1,024 bytes. The null value counts as
    /// no bytes.
    /// </param>
    /// <param name="lease">
    /// How long the candidate leads without a renewal: 1 ms to 1 hour. It should be much longer than a round trip.
    /// </param>
    /// <param name="ct">Ends the campaign.</param>
    /// <returns>The leadership, which renews itself; dispose it to resign.</returns>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.InvalidArgument"/>: an argument is invalid.
    /// <see cref="KahunaErrorCode.LockModeDiffers"/>: the name is in use as another kind of lock; or the caller, or a
    /// method that called it, holds the lock of that name shared. Other codes: no node answered the first request
    /// within the request timeout. The campaign is then over. Once it waits, it survives any outage of the cluster, but
    /// may have to queue again.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<Leadership> CampaignAsync(
        string name, KahunaValue candidate, TimeSpan lease, CancellationToken ct = default) =>
        CampaignAsync(name, candidate, lease, _durability, ct);

    /// <inheritdoc cref="CampaignAsync(string, KahunaValue, TimeSpan, CancellationToken)"/>
    /// <param name="name">Name of the election.</param>
    /// <param name="candidate">
    /// What every client can read about the leader, such as its address; at most 1,024 bytes. The null value counts as
    /// no bytes.
    /// </param>
    /// <param name="lease">
    /// How long the candidate leads without a renewal: 1 ms to 1 hour. It should be much longer than a round trip.
    /// </param>
    /// <param name="durability">Durability of the election, which is part of its name.</param>
    /// <param name="ct">Ends the campaign.</param>
    public async ValueTask<Leadership> CampaignAsync(
        string name, KahunaValue candidate, TimeSpan lease, Durability durability, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(name);
        LockRequest request = new(name, durability, lease, LockMode.Exclusive)
        {
            Note = candidate.Memory,
        };
        if (SharedHold.TokenOf(_calls, in request) is { } token)
        {
            throw OperationErrors.WaitsForItself(name, token);
        }

        while (true)
        {
            try
            {
                LockHandle? handle = await _acquirer.AcquireAsync(request, s_waitMax, null, ct)
                    .ConfigureAwait(_calls.CapturesContext);
                return new Leadership(handle!, candidate);
            }
            catch (KahunaException busy) when (busy.Code == KahunaErrorCode.LockBusy)
            {
                // A day is the longest wait that the cluster accepts.
            }
        }
    }

    /// <summary>Reads who leads.</summary>
    /// <param name="name">Name of the election.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <returns>The leader; null when nobody leads.</returns>
    /// <exception cref="KahunaException">The read could not be answered; it is safe to repeat.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<LeaderDescription?> GetLeaderAsync(string name, CancellationToken ct = default) =>
        GetLeaderAsync(name, _durability, ct);

    /// <inheritdoc cref="GetLeaderAsync(string, CancellationToken)"/>
    /// <param name="name">Name of the election.</param>
    /// <param name="durability">Durability of the election, which is part of its name.</param>
    /// <param name="ct">Ends the wait.</param>
    public async ValueTask<LeaderDescription?> GetLeaderAsync(
        string name, Durability durability, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(name);
        return Read(
            name,
            await _calls.GetAsync(name, durability, ct).ConfigureAwait(_calls.CapturesContext),
            out _);
    }

    /// <summary>
    /// Observes who leads: returns the current leader first, then each change. A slow caller gets the newest leader and
    /// misses those in between. No request is sent while the caller processes an element.
    /// </summary>
    /// <param name="name">Name of the election.</param>
    /// <param name="ct">Ends the observation.</param>
    /// <returns>The leaders; null while nobody leads.</returns>
    /// <exception cref="KahunaException">
    /// No node answered the first request within the request timeout. After the first answer the observation survives
    /// any outage of the cluster and then continues with the current leader.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public IAsyncEnumerable<LeaderDescription?> ObserveAsync(string name, CancellationToken ct = default) =>
        ObserveAsync(name, _durability, ct);

    /// <inheritdoc cref="ObserveAsync(string, CancellationToken)"/>
    /// <param name="name">Name of the election.</param>
    /// <param name="durability">Durability of the election, which is part of its name.</param>
    /// <param name="ct">Ends the observation.</param>
    public async IAsyncEnumerable<LeaderDescription?> ObserveAsync(
        string name, Durability durability, [EnumeratorCancellation] CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(name);
        FencingToken? known = null;
        FencingToken? told = null;
        while (true)
        {
            LockReply reply;
            try
            {
                reply = await AskAsync(name, durability, known, ct)
                    .ConfigureAwait(_calls.CapturesContext);
            }
            catch (KahunaException failure) when (known is not null && IsPassing(failure.Code))
            {
                await PauseAsync(ct).ConfigureAwait(_calls.CapturesContext);
                continue;
            }

            LeaderDescription? leader = Read(name, reply, out FencingToken current);
            known = current;
            if ((leader?.Token ?? default) != told)
            {
                told = leader?.Token ?? default;
                yield return leader;
            }
        }
    }

    /// <summary>
    /// The leader, and the token that holds the lock. A new epoch that waits for the leases of a lost one holds the
    /// lock for nobody.
    /// </summary>
    private static LeaderDescription? Read(string name, LockReply reply, out FencingToken current)
    {
        LockDescription? held = reply.Status == OutcomeStatus.Found
            ? LockDescription.Read(name, reply.Value.Span, out _)
            : null;
        LockHolder? first = held is { Holders: [{ } holder, ..] } ? holder : null;
        current = first?.Token ?? default;
        return first is { Owner.Length: > 0 } ? new LeaderDescription(first.Note, first.Token) : null;
    }

    private static bool IsPassing(KahunaErrorCode code) =>
        code is KahunaErrorCode.DeadlineExceeded
            or KahunaErrorCode.Unavailable
            or KahunaErrorCode.Overloaded
            or KahunaErrorCode.ConnectionLost;

    /// <summary>Pauses before a poll is repeated; the failed one has usually taken a whole request timeout.</summary>
    private async ValueTask PauseAsync(CancellationToken ct)
    {
        try
        {
            await Task.Delay(s_pause, _calls.Time, ct).ConfigureAwait(_calls.CapturesContext);
        }
        catch (OperationCanceledException)
        {
            throw new KahunaCanceledException(OperationOutcome.DidNotHappen, ct);
        }
    }

    private async ValueTask<LockReply> AskAsync(
        string name, Durability durability, FencingToken? known, CancellationToken ct)
    {
        if (known is not { } token)
        {
            return await _calls.GetAsync(name, durability, ct).ConfigureAwait(_calls.CapturesContext);
        }

        try
        {
            await _calls.Waits.EnterAsync(Timeout.InfiniteTimeSpan, ct).ConfigureAwait(_calls.CapturesContext);
        }
        catch (OperationCanceledException)
        {
            throw new KahunaCanceledException(OperationOutcome.DidNotHappen, ct);
        }

        Task<LockReply> answer = HoldAsync(name, durability, token);
        try
        {
            return await answer.WaitAsync(ct).ConfigureAwait(_calls.CapturesContext);
        }
        catch (OperationCanceledException)
        {
            _ = IgnoreAsync(answer);
            throw new KahunaCanceledException(OperationOutcome.DidNotHappen, ct);
        }
    }

    private async Task IgnoreAsync(Task<LockReply> answer)
    {
        try
        {
            await answer.ConfigureAwait(_calls.CapturesContext);
        }
        catch (Exception failure) when (failure is KahunaException or ObjectDisposedException)
        {
            // The answer is no longer needed.
        }
    }

    /// <summary>
    /// Polls once. The leader keeps the request, and the stream its slot, until the answer; so the place in the limiter
    /// is returned then, even if the caller no longer waits.
    /// </summary>
    private async Task<LockReply> HoldAsync(string name, Durability durability, FencingToken token)
    {
        try
        {
            return await _calls.ObserveAsync(
                name, durability, token, _calls.Waits.NextHoldMs, CancellationToken.None)
                .ConfigureAwait(_calls.CapturesContext);
        }
        finally
        {
            _calls.Waits.Exit();
        }
    }
}
