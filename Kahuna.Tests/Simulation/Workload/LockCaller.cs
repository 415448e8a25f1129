using Kahuna.Client;
using Kahuna.Client.Locks;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// A caller that asks for locks, holds them for a while, writes under their tokens, and gives them back or lets them
/// go. Owned by one client of a run.
/// </summary>
internal sealed class LockCaller(
    SimCluster cluster, KahunaClient client, FencedTransactions transactions, int process) : ILockUser
{
    /// <summary>Longer than it takes to lose an epoch and begin the next.</summary>
    private const int LongLeaseMs = 12_000;

    private static readonly LockMode[] s_modes =
        [LockMode.Exclusive, LockMode.Exclusive, LockMode.Shared, LockMode.Permit];

    /// <summary>Part of the callers with a forgotten grant that write under its token before their next call.</summary>
    private const double LateWrites = 0.3;

    /// <summary>Grants that their process has forgotten, and remembers when it is late.</summary>
    private readonly List<(Call Call, LockHandle Handle)> _forgotten = [];

    private readonly SimRandom _random = new SimRandom(cluster.Config.Seed).Fork(20_000 + (ulong)process);

    private readonly FencedWrites _writes = new(cluster, client, process);
    private readonly LockCalls _locks = new(cluster, client);

    /// <inheritdoc/>
    public async Task RunAsync()
    {
        while (!cluster.LoadEnds)
        {
            await cluster.PauseAsync(_random.Exponential(2 * cluster.Config.ThinkMs));
            if (_forgotten.Count > 0 && _random.Chance(LateWrites))
            {
                // Others may have had the lock since then, and nobody may have it now.
                Call forgotten = _random.Pick(_forgotten).Call;
                await _writes.WriteAsync(forgotten, static () => 0);
                await transactions.MayRunAsync(forgotten, static () => 0, _writes.EndedEarly);
            }

            Call call = cluster.History.Begin(Draw(), cluster.Scheduler);
            bool renews = _random.Chance(0.5);
            LockHandle? handle = await _locks.AcquireAsync(call, renews);
            cluster.History.End(call, cluster.Scheduler);
            if (handle is not null)
            {
                await HoldAsync(call, handle, renews);
            }
        }
    }

    private Call Draw()
    {
        int number = _random.Next(s_modes.Length);
        bool isReader = s_modes[number] == LockMode.Shared && _random.Chance(0.7);
        return new Call
        {
            Process = process,
            Key = $"lock {number}/lock",
            IsEphemeral = cluster.Config.HasEphemeral && _random.Chance(cluster.Config.Ephemeral),
            Kind = CallKind.Acquire,
            CallNs = cluster.Scheduler.NowNs,
            IsNamed = _random.Chance(0.3),
            Mode = isReader || s_modes[number] == LockMode.Permit ? s_modes[number] : LockMode.Exclusive,
            Permits = s_modes[number] == LockMode.Permit ? 2 : 0,
            TtlMs = _random.Pick([150, 400, 1_500, 4_000, LongLeaseMs]),
            By = _random.Pick([0, 300, 3_000]),
        };
    }

    private async Task HoldAsync(Call call, LockHandle handle, bool renews)
    {
        using CancellationTokenRegistration lost = handle.LostToken.Register(
            () => call.UntilNs = Math.Min(call.UntilNs, cluster.Scheduler.NowNs));
        long endNs = cluster.Scheduler.NowNs
            + (long)(Math.Min(3, _random.Exponential(0.7)) * Math.Min(call.TtlMs!.Value, LongLeaseMs / 3) * 1_000_000);
        long SurelyNs() => cluster.Scheduler.NowNs + (long)handle.Remaining.TotalNanoseconds;
        while (cluster.Scheduler.NowNs < endNs && call.UntilNs == long.MaxValue)
        {
            if (_random.Chance(0.5))
            {
                await _writes.WriteAsync(call, SurelyNs);
            }

            await transactions.MayRunAsync(call, SurelyNs, _writes.EndedEarly);

            if (_random.Chance(0.1))
            {
                await LookAsync(call, handle);
            }

            if (_forgotten.FindIndex(
                late => late.Handle.Resource == handle.Resource
                    && late.Handle.Durability == handle.Durability
                    && late.Handle.Token != handle.Token) is var index and >= 0
                && _random.Chance(0.3))
            {
                LockHandle late = _forgotten[index].Handle;
                _forgotten.RemoveAt(index);
                await late.DisposeAsync();
            }

            await cluster.PauseAsync(Math.Min((endNs - cluster.Scheduler.NowNs) / 1e6, _random.Exponential(100)));
        }

        if (_random.Chance(0.15) && !renews)
        {
            call.UntilNs = Math.Min(call.UntilNs, cluster.Scheduler.NowNs);
            _forgotten.Add((call, handle));
            return;
        }

        call.UntilNs = Math.Min(call.UntilNs, cluster.Scheduler.NowNs);
        if (_random.Chance(0.5))
        {
            await handle.DisposeAsync();
            return;
        }

        try
        {
            long surelyNs = SurelyNs();
            if (!await handle.ReleaseAsync() && cluster.Scheduler.NowNs < surelyNs)
            {
                _writes.EndedEarly(call, "released");
            }
        }
        catch (KahunaException)
        {
            // The lease ends it.
        }
    }

    /// <summary>Whoever has a lock is told of by a look at it, and by a list of all, as one of its holders.</summary>
    private async Task LookAsync(Call call, LockHandle handle)
    {
        List<LockDescription> listed = [];
        LockDescription? found;
        try
        {
            await foreach (LockDescription description in client.Locks.ListAsync("lock ", handle.Durability))
            {
                listed.Add(description);
            }

            found = await client.Locks.GetAsync(handle.Resource, handle.Durability);
        }
        catch (KahunaException)
        {
            // Not all of it came.
            return;
        }

        bool isHeld = call.UntilNs == long.MaxValue
            && handle.Remaining > TimeSpan.Zero
            && !call.IsEphemeral
            && !cluster.Config.Classes.Contains(FaultClass.ClockDrift);
        if (isHeld
            && (found?.Holders.Any(holder => holder.Token == handle.Token) != true || !listed.Any(
                one => one.Resource == handle.Resource && one.Holders.Any(holder => holder.Token == handle.Token))))
        {
            cluster.Rules.Break(
                "whoever has a lock is told of",
                $"token {handle.Token} of {call.Name}, held by {process}: {found}, in a list of {listed.Count}");
        }
    }
}
