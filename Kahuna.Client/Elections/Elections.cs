using System.Runtime.CompilerServices;
using Kahuna.Client.Connection;
using Kahuna.Client.Locks;
using Kahuna.Client.Results;
using Kahuna.Client.Wire;
using Kahuna.Client.Wire.Commands;
using Kahuna.Client.Wire.Outcomes;
using LockMode = Kahuna.Client.Locks.LockMode;

namespace Kahuna.Client.Elections;

/// <summary>
/// One leader out of many candidates. Part of a <see cref="KahunaClient"/>; any thread, any number of calls at a time. An election is a lock of the same name: candidates lead in the order in which they began
/// to campaign, each under a token that is greater than all before it, and a leader that is gone is followed by the next when its lease has ended. Calls without a durability are for the client's.
/// </summary>
public sealed class Elections
{
    private static readonly TimeSpan s_waitMax = TimeSpan.FromMilliseconds(Limits.LockWaitMsMax);

    /// <summary>A question that fails at once, because as many operations wait as may, is not asked in a circle.</summary>
    private static readonly TimeSpan s_pause = TimeSpan.FromMilliseconds(200);

    private readonly Acquirer _acquirer;
    private readonly LockCalls _calls;
    private readonly Durability _durability;

    internal Elections(Acquirer acquirer, Durability durability)
    {
        _acquirer = acquirer;
        _calls = acquirer.Calls;
        _durability = durability;
    }

    /// <summary>Waits until this candidate leads, however long that takes: only <paramref name="ct"/> ends a campaign that others win.</summary>
    /// <param name="name">Name of the election.</param>
    /// <param name="candidate">What everybody can read of the leader, such as its address; at most 1,024 bytes. Null counts as no bytes.</param>
    /// <param name="lease">After so long without a renewal somebody else leads; 1 ms to 1 hour. It should be much longer than a round trip.</param>
    /// <param name="ct">Ends the campaign.</param>
    /// <returns>The leadership, which renews itself; dispose it to resign.</returns>
    /// <exception cref="KahunaException">
    /// An argument cannot be used; the name is in use as another kind of lock, or the calling method, or one that called it, holds the lock of that name shared (<see cref="KahunaErrorCode.LockModeDiffers"/>); or no node has answered its first request until the request timeout. The campaign is then over. Once it waits, it goes on however long the cluster is away; after that
    /// it may have to queue anew.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<Leadership> CampaignAsync(string name, KahunaValue candidate, TimeSpan lease, CancellationToken ct = default) => CampaignAsync(name, candidate, lease, _durability, ct);

    /// <inheritdoc cref="CampaignAsync(string, KahunaValue, TimeSpan, CancellationToken)"/>
    /// <param name="name">Name of the election.</param>
    /// <param name="candidate">What everybody can read of the leader, such as its address; at most 1,024 bytes. Null counts as no bytes.</param>
    /// <param name="lease">After so long without a renewal somebody else leads; 1 ms to 1 hour. It should be much longer than a round trip.</param>
    /// <param name="durability">Level of the election, which is part of its name.</param>
    /// <param name="ct">Ends the campaign.</param>
    public async ValueTask<Leadership> CampaignAsync(string name, KahunaValue candidate, TimeSpan lease, Durability durability, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(name);
        LockWish wish = new(name, WireLevels.Of(durability), lease, LockMode.Exclusive) { Note = candidate.Memory };
        if (SharedHold.TokenOf(_calls, in wish) is { } token)
        {
            throw Failures.WaitsForItself(name, token);
        }

        while (true)
        {
            try
            {
                LockHandle? handle = await _acquirer.AcquireAsync(wish, s_waitMax, null, ct).ConfigureAwait(_calls.CapturesContext);
                return new Leadership(handle!, candidate);
            }
            catch (KahunaException busy) when (busy.Code == KahunaErrorCode.LockBusy)
            {
                // A day is the longest that the cluster lets anybody wait.
            }
        }
    }

    /// <summary>Tells who leads.</summary>
    /// <param name="name">Name of the election.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <returns>The leader; null when nobody leads.</returns>
    /// <exception cref="KahunaException">The read could not be answered; it may be repeated at will.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public ValueTask<LeaderDescription?> GetLeaderAsync(string name, CancellationToken ct = default) => GetLeaderAsync(name, _durability, ct);

    /// <inheritdoc cref="GetLeaderAsync(string, CancellationToken)"/>
    /// <param name="name">Name of the election.</param>
    /// <param name="durability">Level of the election.</param>
    /// <param name="ct">Ends the wait.</param>
    public async ValueTask<LeaderDescription?> GetLeaderAsync(string name, Durability durability, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(name);
        return Read(name, await _calls.GetAsync(name, WireLevels.Of(durability), ct).ConfigureAwait(_calls.CapturesContext), out _);
    }

    /// <summary>
    /// Follows who leads: first who does so now, then each change. Whoever is slower than the changes gets the newest one, and those in between never. Nothing is asked while the caller is busy with an element.
    /// </summary>
    /// <param name="name">Name of the election.</param>
    /// <param name="ct">Ends the observation.</param>
    /// <returns>The leaders; null while nobody leads.</returns>
    /// <exception cref="KahunaException">No node has answered the first question until the request timeout. Once there was an answer, the observation goes on however long the cluster is away, and then tells who leads.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public IAsyncEnumerable<LeaderDescription?> ObserveAsync(string name, CancellationToken ct = default) => ObserveAsync(name, _durability, ct);

    /// <inheritdoc cref="ObserveAsync(string, CancellationToken)"/>
    /// <param name="name">Name of the election.</param>
    /// <param name="durability">Level of the election.</param>
    /// <param name="ct">Ends the observation.</param>
    public async IAsyncEnumerable<LeaderDescription?> ObserveAsync(string name, Durability durability, [EnumeratorCancellation] CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(name);
        long? known = null;
        long? told = null;
        while (true)
        {
            LockReply reply;
            try
            {
                reply = await AskAsync(name, WireLevels.Of(durability), known, ct).ConfigureAwait(_calls.CapturesContext);
            }
            catch (KahunaException failure) when (known is not null && IsPassing(failure.Code))
            {
                await PauseAsync(ct).ConfigureAwait(_calls.CapturesContext);
                continue;
            }

            LeaderDescription? leader = Read(name, reply, out long current);
            known = current;
            if ((leader?.Token ?? 0) != told)
            {
                told = leader?.Token ?? 0;
                yield return leader;
            }
        }
    }

    /// <summary>Who leads, and the token that holds the lock: an epoch that waits for the leases of one that was lost holds it for nobody.</summary>
    private static LeaderDescription? Read(string name, LockReply reply, out long current)
    {
        LockDescription? held = reply.Status == OutcomeStatus.Found ? LockDescription.Read(name, reply.Value.Span, out _) : null;
        LockHolder? first = held is { Holders: [{ } holder, ..] } ? holder : null;
        current = first?.Token ?? 0;
        return first is { Owner.Length: > 0 } ? new LeaderDescription(first.Note, first.Token) : null;
    }

    private static bool IsPassing(KahunaErrorCode code) =>
        code is KahunaErrorCode.DeadlineExceeded or KahunaErrorCode.Unavailable or KahunaErrorCode.Overloaded or KahunaErrorCode.ConnectionLost;

    /// <summary>Before a question is asked again that most often has taken a whole request timeout.</summary>
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

    private async ValueTask<LockReply> AskAsync(string name, CommandDurability durability, long? known, CancellationToken ct)
    {
        if (known is not { } token)
        {
            return await _calls.GetAsync(name, durability, ct).ConfigureAwait(_calls.CapturesContext);
        }

        try
        {
            await _calls.Gate.EnterAsync(Timeout.InfiniteTimeSpan, ct).ConfigureAwait(_calls.CapturesContext);
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
            // Nobody waits for it any more.
        }
    }

    /// <summary>Asks once. The leader keeps the question, and the stream a place for it, until it is answered, so that its place in the gate is given back then, too, whoever waits for the answer.</summary>
    private async Task<LockReply> HoldAsync(string name, CommandDurability durability, long token)
    {
        try
        {
            return await _calls.ObserveAsync(name, durability, token, _calls.Gate.NextHoldMs, CancellationToken.None).ConfigureAwait(_calls.CapturesContext);
        }
        finally
        {
            _calls.Gate.Leave();
        }
    }
}
