using Google.Protobuf;
using Grpc.Core;
using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Client.Locks;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Network;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// A caller in any language, that asks for locks with unary calls, reckons its lease by itself, and writes under its
/// tokens. Owned by one client of a run.
/// </summary>
internal sealed class UnaryLockCaller(
    SimCluster cluster, KahunaClient client, UnaryClient unary, SimClock clock, int process)
    : ILockUser
{
    /// <summary>Pause between two attempts at a numbered call.</summary>
    private const int PauseMs = 20;

    private readonly SimRandom _random = new SimRandom(cluster.Config.Seed).Fork(20_000 + (ulong)process);
    private readonly FencedWrites _writes = new(cluster, client, process);
    private readonly ConnectionClock _clock = new(clock);
    private readonly TimeSpan _timeout = TimeSpan.FromMilliseconds(cluster.Config.RequestTimeoutMs);
    private int _owners;

    /// <inheritdoc/>
    public async Task RunAsync()
    {
        while (!cluster.LoadEnds)
        {
            await cluster.PauseAsync(_random.Exponential(2 * cluster.Config.ThinkMs));
            Call call = cluster.History.Begin(Draw(), cluster.Scheduler);
            string owner = call.IsNamed ? $"unary {process}" : $"unary {process} {++_owners}";
            long until = await AcquireAsync(call, owner, isNumbered: !call.IsEphemeral && _random.Chance(0.4));
            cluster.History.End(call, cluster.Scheduler);
            if (call.Outcome == CallOutcome.Ok)
            {
                await HoldAsync(call, owner, until);
            }
        }
    }

    private Call Draw() => new()
    {
        Process = process,
        Key = $"lock {_random.Next(2)}/lock",
        IsEphemeral = cluster.Config.HasEphemeral && _random.Chance(cluster.Config.Ephemeral),
        Kind = CallKind.Acquire,
        CallNs = cluster.Scheduler.NowNs,
        IsUnary = true,
        IsNamed = _random.Chance(0.3),
        Mode = LockMode.Exclusive,
        TtlMs = _random.Pick([400, 1_500, 4_000]),
        By = _random.Pick([0, 300, 3_000]),
    };

    /// <summary>The moment of this caller's clock until which it relies on the lock.</summary>
    private async Task<long> AcquireAsync(Call call, string owner, bool isNumbered)
    {
        AcquireLockRequest request = new()
        {
            Resource = call.Key,
            Durability = call.IsEphemeral
                ? Kahuna.Server.Api.Protos.Durability.Ephemeral
                : Kahuna.Server.Api.Protos.Durability.Persistent,
            Owner = owner,
            LeaseMs = call.TtlMs!.Value,
            Mode = (Kahuna.Server.Api.Protos.LockMode)call.Mode,
            Note = ByteString.Empty,
        };
        if (call.By > 0)
        {
            request.WaitMs = call.By;
        }

        ulong session = isNumbered ? cluster.Clients.NewSessionId() : 0;
        TimeSpan whole = TimeSpan.FromMilliseconds(call.By) + _timeout;
        long begun = _clock.Now;
        int node = _random.Between(1, cluster.Config.Nodes);
        bool mayHaveHappened = false;
        while (true)
        {
            long sent = _clock.Now;
            UnaryAnswer answer = await unary.AttemptAsync(
                new UnaryRequest(null, request, session), node, whole - _clock.Span(sent - begun), default);
            if (answer.Acquired is { } acquired)
            {
                call.Outcome =
                    acquired.Granted ? CallOutcome.Ok : mayHaveHappened ? CallOutcome.Unknown : CallOutcome.Fail;
                call.Token = acquired.Token;
                long until = acquired.Granted
                    ? LockHandle.UsableUntil(_clock, sent, TimeSpan.FromMilliseconds(acquired.LeaseMsFromCall))
                    : 0;
                if (acquired.Granted && until <= _clock.Now)
                {
                    // The answer was long on its way: nobody believes in it.
                    call.UntilNs = cluster.Scheduler.NowNs;
                }

                return until;
            }

            if (answer.Error!.StatusCode == StatusCode.InvalidArgument)
            {
                throw answer.Error;
            }

            mayHaveHappened |= !answer.DidNotHappen;
            if (!isNumbered || whole - _clock.Span(_clock.Now - begun) < TimeSpan.FromMilliseconds(5 * PauseMs))
            {
                call.Error = answer.Error.StatusCode.ToString();
                call.Outcome = mayHaveHappened ? CallOutcome.Unknown : CallOutcome.Fail;
                return 0;
            }

            node = (node % cluster.Config.Nodes) + 1;
            await cluster.PauseAsync(PauseMs);
        }
    }

    private async Task HoldAsync(Call call, string owner, long until)
    {
        long endAt = Math.Min(until, _clock.Now + (long)(_random.NextDouble() * 1.2 * (until - _clock.Now)));
        while (_clock.Now < endAt)
        {
            if (_random.Chance(0.5))
            {
                long surely = until;
                await _writes.WriteAsync(call, () => SimNs(surely));
            }

            if (_random.Chance(0.3)
                && until - _clock.Now is var left and > 0
                && await ExtendAsync(call, owner, _clock.Span(left)) is { } extended)
            {
                until = Math.Max(until, extended);
            }

            await cluster.PauseAsync(
                Math.Min(_clock.Ms(Math.Max(0, Math.Min(endAt, until) - _clock.Now)), _random.Exponential(100)));
        }

        call.UntilNs = Math.Min(call.UntilNs, SimNs(until));
        if (_random.Chance(0.8))
        {
            call.UntilNs = Math.Min(call.UntilNs, cluster.Scheduler.NowNs);
            await unary.AttemptAsync(
                new UnaryRequest(
                    Server.Api.LockExecutor.Encode(Claim(call, owner).Release(call.Token, onlyPlace: false))),
                _random.Between(1, cluster.Config.Nodes),
                _timeout,
                default);
        }
        else
        {
            // Its process has died, and another one begins.
            call.UntilNs = Math.Min(call.UntilNs, cluster.Scheduler.NowNs);
        }
    }

    /// <summary>
    /// The moment until which the lock is relied on, when it was renewed; not later than the lock is surely held until
    /// the answer is here.
    /// </summary>
    private async Task<long?> ExtendAsync(Call call, string owner, TimeSpan left)
    {
        long sent = _clock.Now;
        UnaryAnswer answer = await unary.AttemptAsync(
            new UnaryRequest(Server.Api.LockExecutor.Encode(Claim(call, owner).Extend(call.Token))), _random.Between(
                1, cluster.Config.Nodes), left < _timeout ? left : _timeout, default);
        return answer.Outcome is [(byte)OutcomeStatus.Applied, ..] && _clock.Now < sent + _clock.Of(left)
            ? LockHandle.UsableUntil(_clock, sent, TimeSpan.FromMilliseconds(call.TtlMs!.Value))
            : null;
    }

    private static Server.Api.LockCommandBuilder Claim(Call call, string owner) => Server.Api.LockCommandBuilder.Of(
        call.Key,
        call.IsEphemeral
            ? Kahuna.Server.Api.Protos.Durability.Ephemeral
            : Kahuna.Server.Api.Protos.Durability.Persistent,
        owner,
        call.TtlMs!.Value);

    /// <summary>A moment of this caller's clock in the run's time, as long as the clock goes on as it does.</summary>
    private long SimNs(long at) => cluster.Scheduler.NowNs + (long)_clock.Span(at - _clock.Now).TotalNanoseconds;
}
