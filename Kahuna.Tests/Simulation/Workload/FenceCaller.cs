using System.Globalization;
using Kahuna.Client;
using Kahuna.Client.Locks;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// A caller that loses its lock while it runs a transaction under its token: because the lease ends between the reads
/// and the commit, or because it releases the lock while the commit is under way. Others of its kind wait for the lock,
/// get it at once and read the same keys. Owned by one client of a run.
/// </summary>
internal sealed class FenceCaller(
    SimCluster cluster, KahunaClient client, FencedTransactions transactions, int process) : ILockUser
{
    /// <summary>Few, so that somebody waits for each.</summary>
    private const int Locks = 2;

    private const int WaitMs = 3_000;

    /// <summary>Mean pause of a caller, where the others of a seed do not hurry more.</summary>
    private const double PauseMsMax = 400;

    private readonly SimRandom _random = new SimRandom(cluster.Config.Seed).Fork(200_000 + (ulong)process);

    private readonly FencedWrites _writes = new(cluster, client, process);
    private readonly LockCalls _locks = new(cluster, client);

    /// <inheritdoc/>
    public async Task RunAsync()
    {
        while (!cluster.LoadEnds)
        {
            await cluster.PauseAsync(_random.Exponential(Math.Min(cluster.Config.ThinkMs, PauseMsMax)));
            Call call = cluster.History.Begin(Draw(), cluster.Scheduler);
            LockHandle? handle = await _locks.AcquireAsync(call, renews: false);
            cluster.History.End(call, cluster.Scheduler);
            if (handle is not null)
            {
                await HoldAsync(call, handle);
            }
        }
    }

    private Call Draw() => new()
    {
        Process = process,
        Key = string.Create(CultureInfo.InvariantCulture, $"fence {_random.Next(Locks)}/lock"),
        Kind = CallKind.Acquire,
        CallNs = cluster.Scheduler.NowNs,
        Mode = LockMode.Exclusive,
        TtlMs = _random.Pick([150, 250, 400]),
        By = WaitMs,
    };

    private async Task HoldAsync(Call call, LockHandle handle)
    {
        void End() => call.UntilNs = Math.Min(call.UntilNs, cluster.Scheduler.NowNs);
        using CancellationTokenRegistration lost = handle.LostToken.Register(End);
        bool releases = _random.Chance(0.5);
        Task releasing = Task.CompletedTask;

        await transactions.RunAsync(
            call,
            () =>
            {
                if (!releases)
                {
                    return cluster.PauseAsync(call.TtlMs!.Value * (0.5 + (0.7 * _random.NextDouble())));
                }

                releasing = ReleaseSoonAsync();
                return Task.CompletedTask;
            },
            () => releases ? 0 : cluster.Scheduler.NowNs + (long)handle.Remaining.TotalNanoseconds,
            _writes.EndedEarly);
        await releasing;
        End();
        if (_random.Chance(0.5))
        {
            await handle.DisposeAsync();
        }

        async Task ReleaseSoonAsync()
        {
            TaskCompletionSource over = new(TaskCreationOptions.RunContinuationsAsynchronously);
            cluster.Scheduler.At(
                cluster.Scheduler.NowNs + 1_000 + (long)_random.Exponential(2 * cluster.Config.DelayNs),
                over.SetResult);
            await over.Task;
            End();
            await handle.DisposeAsync();
        }
    }
}
