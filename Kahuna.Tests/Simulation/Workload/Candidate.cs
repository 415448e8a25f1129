using Kahuna.Client;
using Kahuna.Client.Elections;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// A caller that campaigns, leads for a while and writes as the leader, and now and then looks at who leads. Owned by
/// one client of a run.
/// </summary>
internal sealed class Candidate(SimCluster cluster, KahunaClient client, SimClock clock, int process) : ILockUser
{
    /// <summary>Key of the election.</summary>
    public const string Election = "election/lock";

    private readonly SimRandom _random = new SimRandom(cluster.Config.Seed).Fork(20_000 + (ulong)process);
    private readonly FencedWrites _writes = new(cluster, client, process);

    // Of the persistent and the ephemeral election.
    private readonly long[] _newestSeen = new long[2];

    /// <inheritdoc/>
    public async Task RunAsync()
    {
        while (!cluster.LoadEnds)
        {
            await cluster.PauseAsync(_random.Exponential(2 * cluster.Config.ThinkMs));
            bool isEphemeral = cluster.Config.HasEphemeral && _random.Chance(cluster.Config.Ephemeral);
            await (_random.Chance(0.6) ? CampaignAsync(isEphemeral) : ObserveAsync(isEphemeral));
        }
    }

    private static Durability LevelOf(bool isEphemeral) => isEphemeral ? Durability.Ephemeral : Durability.Persistent;

    private async Task CampaignAsync(bool isEphemeral)
    {
        Call call = cluster.History.Begin(
            new Call
            {
                Process = process,
                Key = Election,
                IsEphemeral = isEphemeral,
                Kind = CallKind.Acquire,
                CallNs = cluster.Scheduler.NowNs,
                Mode = LockMode.Exclusive,
                TtlMs = _random.Pick([400, 1_500, 4_000]),
            },
            cluster.Scheduler);
        using CancellationTokenSource patience = new(TimeSpan.FromMilliseconds(_random.Between(500, 8_000)), clock);
        Leadership? leadership = null;
        try
        {
            leadership = await client.Elections.CampaignAsync(
                Election,
                $"candidate {process}",
                TimeSpan.FromMilliseconds(call.TtlMs!.Value),
                LevelOf(isEphemeral),
                patience.Token);
            call.Outcome = CallOutcome.Ok;
            call.Token = leadership.Token.Value;
        }
        catch (KahunaCanceledException error)
        {
            call.Error = "Canceled";
            call.Outcome = error.Outcome == OperationOutcome.DidNotHappen ? CallOutcome.Fail : CallOutcome.Unknown;
        }
        catch (KahunaException error)
        {
            call.Error = error.Code.ToString();
            call.Outcome = error.Outcome == OperationOutcome.DidNotHappen ? CallOutcome.Fail : CallOutcome.Unknown;
        }

        cluster.History.End(call, cluster.Scheduler);
        if (leadership is not null)
        {
            await LeadAsync(call, leadership);
        }
    }

    private async Task LeadAsync(Call call, Leadership leadership)
    {
        using CancellationTokenRegistration lost = leadership.LostToken.Register(
            () => call.UntilNs = Math.Min(call.UntilNs, cluster.Scheduler.NowNs));
        Saw(leadership.Token.Value, call.IsEphemeral);
        long endNs = cluster.Scheduler.NowNs + (long)(_random.Exponential(2_000) * 1_000_000);
        while (cluster.Scheduler.NowNs < endNs && call.UntilNs == long.MaxValue)
        {
            if (_random.Chance(0.5))
            {
                await _writes.WriteAsync(
                    call, () => cluster.Scheduler.NowNs + (long)leadership.Remaining.TotalNanoseconds);
            }

            await cluster.PauseAsync(_random.Exponential(100));
        }

        call.UntilNs = Math.Min(call.UntilNs, cluster.Scheduler.NowNs);
        try
        {
            long surelyNs = cluster.Scheduler.NowNs + (long)leadership.Remaining.TotalNanoseconds;
            if (!await leadership.ResignAsync() && cluster.Scheduler.NowNs < surelyNs)
            {
                _writes.EndedEarly(call, "resigned");
            }
        }
        catch (KahunaException)
        {
            // The lease ends it.
        }
    }

    private async Task ObserveAsync(bool isEphemeral)
    {
        using CancellationTokenSource patience = new(TimeSpan.FromMilliseconds(_random.Between(100, 5_000)), clock);
        try
        {
            await foreach (LeaderDescription? leader in client.Elections.ObserveAsync(
                Election, LevelOf(isEphemeral), patience.Token))
            {
                Saw(leader?.Token.Value ?? 0, isEphemeral);
            }
        }
        catch (Exception error) when (error is KahunaCanceledException or KahunaException)
        {
            // Nobody answered, or it was long enough.
        }
    }

    /// <summary>Who has seen a leader sees none before it.</summary>
    private void Saw(long token, bool isEphemeral)
    {
        ref long newest = ref _newestSeen[isEphemeral ? 1 : 0];
        if (token != 0 && token < newest)
        {
            cluster.Rules.Break(
                "leaders are seen in their order",
                $"process {process} saw the leader with token {newest}, and later the one with token {token}");
        }

        newest = Math.Max(newest, token);
    }
}
