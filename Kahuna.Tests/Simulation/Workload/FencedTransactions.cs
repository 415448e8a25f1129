using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Locks;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Transactions;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// What those do who hold a persistent lock alone: transactions over several partitions that count only while they do,
/// by the SDK and by a coordinator that stands still between the parts and the decision. Owned by one caller.
/// </summary>
internal sealed class FencedTransactions(
    SimCluster cluster,
    KahunaClient client,
    TimeProvider clock,
    Func<LeavingCoordinator> newCoordinator,
    int process)
{
    private readonly SimRandom _random = new SimRandom(cluster.Config.Seed).Fork(190_000 + (ulong)process);

    private LeavingCoordinator? _coordinator;
    private CommitOutcomes? _outcomes;

    private WideFences Fences => cluster.WideFences;

    private CommitOutcomes Outcomes => _outcomes ??= new CommitOutcomes(client, clock, _random);

    /// <summary>Now and then a transaction under the token of what is held.</summary>
    /// <param name="held">The lock, as it was granted.</param>
    /// <param name="surelyNs">Until then the lease surely lasts; asked for when the commit is refused.</param>
    /// <param name="endedEarly">Is told when that is too early.</param>
    public async Task MayRunAsync(Call held, Func<long> surelyNs, Action<Call, string> endedEarly)
    {
        if (cluster.Config.HasWideFences
            && held is { IsEphemeral: false, Mode: LockMode.Exclusive }
            && !_random.Chance(0.6))
        {
            await RunAsync(held, static () => Task.CompletedTask, surelyNs, endedEarly);
        }
    }

    /// <summary>A transaction under the token of a persistent lock that is held alone.</summary>
    /// <param name="held">The lock, as it was granted.</param>
    /// <param name="meanwhile">What is done between the reads and the commit.</param>
    /// <param name="surelyNs">Until then the lease surely lasts; asked for when the commit is refused.</param>
    /// <param name="endedEarly">Is told when that is too early.</param>
    public async Task RunAsync(
        Call held, Func<Task> meanwhile, Func<long> surelyNs, Action<Call, string> endedEarly)
    {
        try
        {
            string[] keys = Fences.KeysOf(held.Key);
            GetResult[] reads = await Task.WhenAll(keys.Select(key => ReadAsync(key, held.Token)));
            await meanwhile();
            Fence fence = new(held.Key, new FencingToken(held.Token));
            string value = WideFences.ValueOf(held.Token, process);
            int how = _random.Next(4);
            bool? happened = how < 2
                ? await LeaveAsync(keys, reads, value, fence)
                : await CommitAsync(held, keys, value, isInteractive: how == 2, surelyNs, endedEarly);
            Fences.Committed += happened == true ? 1 : 0;
        }
        catch (KahunaException)
        {
            // A read that failed.
        }
    }

    /// <summary>By the coordinator that may leave.</summary>
    private async Task<bool?> LeaveAsync(string[] keys, GetResult[] reads, string value, Fence fence)
    {
        WideWrite[] writes =
        [
            .. keys.Zip(reads, (key, read) => new WideWrite(key, read.Found ? read.Revision.Value : 0, value)),
        ];
        _coordinator ??= newCoordinator();
        bool? happened = await _coordinator.CommitAsync(writes, fence);
        Fences.Refused += _coordinator.IsFenceLost ? 1 : 0;
        return happened;
    }

    private Task<bool?> CommitAsync(
        Call held,
        string[] keys,
        string value,
        bool isInteractive,
        Func<long> surelyNs,
        Action<Call, string> endedEarly)
    {
        Fence fence = new(held.Key, new FencingToken(held.Token));
        return Outcomes.FindAsync(async ct =>
        {
            try
            {
                return isInteractive
                    ? await CommitAsync(await BeginAsync(keys, value, fence, ct), ct)
                    : await AtOnceAsync(keys, value, fence, ct);
            }
            catch (KahunaException refused) when (refused.Code == KahunaErrorCode.LockLost)
            {
                Fences.Refused++;
                if (cluster.Scheduler.NowNs < surelyNs())
                {
                    endedEarly(held, "committed under");
                }

                throw;
            }
        });
    }

    private async Task<bool> AtOnceAsync(string[] keys, string value, Fence fence, CancellationToken ct) =>
        (await client.Transactions.If()
            .Then(keys.Select(key => KeyOperation.Set(key, value)))
            .WithDurability(Durability.Persistent)
            .WithFence(fence)
            .CommitAsync(ct)).Succeeded;

    /// <summary>An interactive one, with all but the commit.</summary>
    private async Task<Transaction> BeginAsync(string[] keys, string value, Fence fence, CancellationToken ct)
    {
        Transaction transaction = await client.Transactions.BeginAsync(
            new TransactionOptions { Durability = Durability.Persistent, Fence = fence }, ct);
        foreach (string key in keys)
        {
            await transaction.GetAsync(key, ct);
            await transaction.SetAsync(key, value, ct: ct);
        }

        return transaction;
    }

    private static async Task<bool> CommitAsync(Transaction transaction, CancellationToken ct)
    {
        await using (transaction)
        {
            await transaction.CommitAsync(ct);
            return true;
        }
    }

    private async Task<GetResult> ReadAsync(string key, long token)
    {
        GetResult read = await client.KeyValues.GetAsync(
            key, new ReadOptions { Durability = Durability.Persistent });
        Fences.NoteRead(key, token, read);
        return read;
    }
}
