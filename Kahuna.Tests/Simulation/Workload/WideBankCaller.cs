using System.Globalization;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Transactions;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// A caller that moves money between accounts of several partitions, reads all of them at one moment, and counts
/// tallies up beside the transactions that do the same. Owned by one client of a run.
/// </summary>
internal sealed class WideBankCaller(
    SimCluster cluster, KahunaClient client, LeavingCoordinator coordinator, TimeProvider clock, int process)
{
    /// <summary>Mean pause of a caller, where the others of a seed do not hurry more.</summary>
    private const double PauseMsMax = 400;

    private readonly SimRandom _random = new SimRandom(cluster.Config.Seed).Fork(140_000 + (ulong)process);

    private HoldingTransactions? _interactive;
    private CommitOutcomes? _outcomes;

    private WideBank Bank => cluster.WideBank;

    private HoldingTransactions Interactive =>
        _interactive ??= new HoldingTransactions(cluster, _random, process);

    private CommitOutcomes Outcomes => _outcomes ??= new CommitOutcomes(client, clock, _random);

    public async Task RunAsync()
    {
        while (!cluster.LoadEnds)
        {
            await cluster.PauseAsync(_random.Exponential(Math.Min(cluster.Config.ThinkMs, PauseMsMax)));
            try
            {
                await (_random.Next(13) switch
                {
                    0 => ScanAsync(),
                    1 => ReadAsync(),
                    2 => ReadTogetherAsync(),
                    3 when cluster.Config is { HasEphemeral: true, Evicts: false } => PairAsync(),
                    < 7 => CountAsync(_random.Next(Bank.Tallies.Length)),
                    _ => TransferAsync(),
                });
            }
            catch (KahunaException)
            {
                // A read that failed, or a write that is counted where it is made.
            }
        }
    }

    /// <summary>
    /// Two readings one after the other that find the same revisions show the moment between them: a revision never
    /// comes back.
    /// </summary>
    private async Task ReadAsync()
    {
        GetResult[] first = await Task.WhenAll(Bank.Accounts.Select(ReadAsync));
        GetResult[] second = await Task.WhenAll(Bank.Accounts.Select(ReadAsync));
        bool isSame = first.Zip(second)
            .All(static pair => pair.First.Found == pair.Second.Found && pair.First.Revision == pair.Second.Revision);
        if (!isSame)
        {
            return;
        }

        Bank.Reads += second[0].Found ? 1 : 0;
        if (WideBank.CheckSum([.. second.Select(static read => ValueOf(read))]) is { } wrong)
        {
            WideBank.Break(cluster, $"a read at {process}: {wrong}");
        }
    }

    /// <summary>A consistent scan shows one moment, too, or ends with an error.</summary>
    private async Task ScanAsync()
    {
        Dictionary<string, string?> found = [];
        ScanOptions options = new()
        {
            Durability = Durability.Persistent,
            Consistent = true,
            PageSize = _random.Between(1, 5),
        };
        await foreach (KeyValueEntry entry in client.KeyValues.ScanAsync("wide", options))
        {
            found[entry.Key] = entry.Value.AsString();
        }

        Bank.Reads += found.Count > 0 ? 1 : 0;
        if (WideBank.CheckSum([.. Bank.Accounts.Select(found.GetValueOrDefault)]) is { } wrong)
        {
            WideBank.Break(cluster, $"a scan at {process}: {wrong}");
        }
    }

    private async Task CountAsync(int tally)
    {
        bool? happened = null;
        try
        {
            await client.KeyValues.IncrementAsync(
                Bank.Tallies[tally], options: new IncrementOptions { Durability = Durability.Persistent });
            happened = true;
        }
        catch (KahunaException error)
        {
            happened = error.Outcome == OperationOutcome.DidNotHappen ? false : null;
            throw;
        }
        finally
        {
            Bank.Counted(tally, happened);
        }
    }

    private async Task TransferAsync()
    {
        int from = _random.Next(Bank.Accounts.Length);
        int to = (from + 1 + _random.Next(Bank.Accounts.Length - 1)) % Bank.Accounts.Length;
        GetResult giver = await ReadAsync(Bank.Accounts[from]);
        GetResult taker = await ReadAsync(Bank.Accounts[to]);
        if (!giver.Found || !taker.Found)
        {
            await coordinator.CommitAsync(
                [.. Bank.Accounts.Select(static account => new WideWrite(account, 0, $"{WideBank.Each}"))]);
            return;
        }

        int amount = 1 + _random.Next(9);
        bool? happened = _random.Next(10) switch
        {
            < 4 => await coordinator.CommitAsync(
            [
                Write(Bank.Accounts[from], giver, -amount),
                Write(Bank.Accounts[to], taker, amount),
                Write(Bank.Tallies[from], await ReadAsync(Bank.Tallies[from]), 1),
            ]),
            < 7 => await Outcomes.FindAsync(ct => CommitAsync((from, giver), (to, taker), amount, ct)),
            _ => await Outcomes.FindAsync(ct => InteractAsync(from, to, amount, ct)),
        };
        Bank.Counted(from, happened);
        Bank.Transfers += happened == true ? 1 : 0;
    }

    /// <summary>The one-shot form: true when the first list was carried out.</summary>
    private async Task<bool> CommitAsync(
        (int Account, GetResult Read) from, (int Account, GetResult Read) to, int amount, CancellationToken ct)
    {
        TransactionResult result = await client.Transactions
            .If(
                KeyCondition.HasRevision(Bank.Accounts[from.Account], from.Read.Revision),
                KeyCondition.HasRevision(Bank.Accounts[to.Account], to.Read.Revision))
            .Then(
                KeyOperation.Set(Bank.Accounts[from.Account], Sum(from.Read, -amount)),
                KeyOperation.Set(Bank.Accounts[to.Account], Sum(to.Read, amount)),
                KeyOperation.Increment(Bank.Tallies[from.Account]))
            .Else(Bank.Accounts.Select(static account => KeyOperation.Get(account)))
            .WithDurability(Durability.Persistent)
            .CommitAsync(ct);
        if (!result.Succeeded
            && WideBank.CheckSum([.. result.Results.Select(static read => ValueOf(read.AsGet()))]) is { } wrong)
        {
            WideBank.Break(cluster, $"the other case at {process}: {wrong}");
        }

        return result.Succeeded;
    }

    private Task<bool> InteractAsync(int from, int to, int amount, CancellationToken ct) =>
        client.Transactions.RunAsync(
            async transaction =>
            {
                GetResult giver = await Interactive.ReadAsync(transaction, Bank.Accounts[from], ct);
                GetResult taker = await Interactive.ReadAsync(transaction, Bank.Accounts[to], ct);
                await Interactive.WriteAsync(transaction, Bank.Accounts[from], Sum(giver, -amount), ct);
                await Interactive.WriteAsync(transaction, Bank.Accounts[to], Sum(taker, amount), ct);
                await transaction.IncrementAsync(Bank.Tallies[from], ct: ct);
                return true;
            },
            Interactive.Options(Durability.Persistent) with { TriesMax = 3 },
            ct);

    /// <summary>Reads a key of both durabilities in one transaction, and writes both in some.</summary>
    private async Task PairAsync()
    {
        await using Transaction transaction = await client.Transactions.BeginAsync(
            new TransactionOptions { Durability = Durability.Persistent });
        Transaction ephemeral = transaction.WithDurability(Durability.Ephemeral);
        string? stays = ValueOf(await transaction.GetAsync(Bank.Pair));
        string? goes = ValueOf(await ephemeral.GetAsync(Bank.Pair));
        if (_random.Chance(0.6))
        {
            string next = $"{int.Parse(stays ?? "0", CultureInfo.InvariantCulture) + 1}";
            await transaction.SetAsync(Bank.Pair, next);
            await ephemeral.SetAsync(Bank.Pair, next);
        }

        await transaction.CommitAsync();
        WideBank.CheckPair(cluster, stays, goes);
    }

    private async Task ReadTogetherAsync()
    {
        BatchResult<GetResult> read = await client.KeyValues.GetManyAsync(
            Bank.Accounts, new BatchOptions { Atomic = true, Durability = Durability.Persistent });
        Bank.Reads += read[0].Result.Found ? 1 : 0;
        if (WideBank.CheckSum([.. read.Items.Select(static item => ValueOf(item.Result))]) is { } wrong)
        {
            WideBank.Break(cluster, $"an atomic read at {process}: {wrong}");
        }
    }

    private async Task<GetResult> ReadAsync(string key) =>
        await client.KeyValues.GetAsync(key, new ReadOptions { Durability = Durability.Persistent });

    private static WideWrite Write(string key, GetResult read, int change) =>
        new(key, read.Found ? read.Revision.Value : 0, Sum(read, change));

    private static string Sum(GetResult read, int change) =>
        (int.Parse(ValueOf(read) ?? "0", CultureInfo.InvariantCulture) + change).ToString(CultureInfo.InvariantCulture);

    private static string? ValueOf(GetResult read) => read.Found ? read.Value.AsString() : null;
}
