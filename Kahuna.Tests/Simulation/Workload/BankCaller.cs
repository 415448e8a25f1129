using System.Globalization;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Scripts;
using Kahuna.Client.Transactions;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// A caller that moves money between accounts of one bucket with transactions, and counts the transfers in the same
/// transactions. Every read of all accounts shows the same sum, or no account; a transfer that was answered took effect
/// once. Owned by one client of a run.
/// </summary>
internal sealed class BankCaller(SimCluster cluster, KahunaClient client, int process)
{
    private const string SumRule = "a transfer is seen as a whole or not at all";
    private const string OnceRule = "a transfer takes effect once";

    private const string PersistentTransfer =
        """
        let giver = get @from
        let taker = get @to
        if giver = null || taker = null then return null end
        set @from (to_int(giver) - @amount)
        set @to (to_int(taker) + @amount)
        let count = get @counter
        let next = 1
        if count != null then let next = to_int(count) + 1 end
        set @counter next
        if @fails then throw 'as it should' end
        let sum = 0
        for i in 0..3 do
          let account = get (concat('bank/', to_str(i)))
          let sum = sum + to_int(account)
        end
        let all = get by bucket bank
        if count(all) < 5 then throw 'an account is missing' end
        return [next, sum]
        """;

    private const int Accounts = 4;
    private const int Each = 100;

    private static readonly string s_ephemeralTransfer = PersistentTransfer
        .Replace(" get ", " eget ", StringComparison.Ordinal)
        .Replace("set @", "eset @", StringComparison.Ordinal);

    private readonly SimRandom _random = new SimRandom(cluster.Config.Seed).Fork(120_000 + (ulong)process);
    private readonly string[] _accounts =
        [.. Enumerable.Range(0, Accounts).Select(static i => string.Create(CultureInfo.InvariantCulture, $"bank/{i}"))];

    private HoldingTransactions? _interactive;

    /// <summary>Transfers of this caller that were answered, and those that may have happened besides.</summary>
    private int _done;
    private int _unknown;

    private string Counter => string.Create(CultureInfo.InvariantCulture, $"bank/transfers{process}");

    public async Task RunAsync()
    {
        while (!cluster.LoadEnds)
        {
            await cluster.PauseAsync(_random.Exponential(4 * cluster.Config.ThinkMs));

            // Eviction could take one account and leave the others.
            bool isEphemeral = cluster.Config is { HasEphemeral: true, Evicts: false }
                && _random.Chance(cluster.Config.Ephemeral);
            try
            {
                await TransferAsync(isEphemeral ? Durability.Ephemeral : Durability.Persistent);
            }
            catch (KahunaException)
            {
                // A read that failed, or a transfer that is counted where it is made.
            }
        }
    }

    private async Task TransferAsync(Durability durability)
    {
        (Revision Revision, int Money)[]? read = await ReadAsync(durability);
        if (read is null)
        {
            await client.Transactions
                .If(_accounts.Select(KeyCondition.Absent))
                .Then(_accounts.Select(static account => KeyOperation.Set(account, $"{Each}")))
                .WithDurability(durability)
                .CommitAsync();
            return;
        }

        int from = _random.Next(Accounts);
        int to = (from + 1 + _random.Next(Accounts - 1)) % Accounts;
        int amount = 1 + _random.Next(9);
        if (_random.Chance(0.3))
        {
            await ScriptAsync(durability, from, to, amount);
            return;
        }

        if (_random.Chance(0.5))
        {
            await InteractAsync(durability, from, to, amount);
            return;
        }

        ConditionalTransaction transfer = client.Transactions
            .If(
                KeyCondition.HasRevision(_accounts[from], read[from].Revision),
                KeyCondition.HasRevision(_accounts[to], read[to].Revision))
            .Then(
                KeyOperation.Set(_accounts[from], $"{read[from].Money - amount}"),
                KeyOperation.Set(_accounts[to], $"{read[to].Money + amount}", returnPrevious: true),
                KeyOperation.Increment(Counter))
            .Else(_accounts.Select(static account => KeyOperation.Get(account)))
            .WithDurability(durability);
        try
        {
            TransactionResult result = await transfer.CommitAsync();
            if (!result.Succeeded)
            {
                CheckSum(result.Results.Select(static account => account.AsGet()), "the other case");
            }
            else
            {
                Committed(durability, result[2].AsIncrement().Value);
            }
        }
        catch (KahunaException error)
        {
            Failed(durability, error);
            throw;
        }
    }

    /// <summary>The same in an interactive transaction, whose reads are of different moments.</summary>
    private async Task InteractAsync(Durability durability, int from, int to, int amount)
    {
        HoldingTransactions calls = _interactive ??= new HoldingTransactions(cluster, _random, process);
        await using Transaction transfer = await client.Transactions.BeginAsync(calls.Options(durability));
        GetResult giver = await calls.ReadAsync(transfer, _accounts[from], CancellationToken.None);
        GetResult taker = await calls.ReadAsync(transfer, _accounts[to], CancellationToken.None);
        if (!giver.Found || !taker.Found)
        {
            return;
        }

        await calls.WriteAsync(transfer, _accounts[from], $"{MoneyOf(giver) - amount}", CancellationToken.None);
        await calls.WriteAsync(transfer, _accounts[to], $"{MoneyOf(taker) + amount}", CancellationToken.None);
        long count = await transfer.IncrementAsync(Counter);
        try
        {
            await transfer.CommitAsync();
            Committed(durability, count);
        }
        catch (KahunaException error)
        {
            Failed(durability, error);
            throw;
        }
    }

    /// <summary>
    /// The same as a script, which reads and writes within the partition. Some end with an error after they have
    /// written, and must leave nothing.
    /// </summary>
    private async Task ScriptAsync(Durability durability, int from, int to, int amount)
    {
        bool fails = _random.Chance(0.2);
        ScriptParameters parameters = new()
        {
            ["from"] = _accounts[from],
            ["to"] = _accounts[to],
            ["amount"] = amount,
            ["counter"] = Counter,
            ["fails"] = fails,
        };
        try
        {
            ScriptResult result = await client.Scripts.RunAsync(
                durability == Durability.Ephemeral ? s_ephemeralTransfer : PersistentTransfer, parameters);
            if (result.IsNull)
            {
                return;
            }

            if (fails)
            {
                cluster.Rules.Break(SumRule, $"a script at {process} has thrown an error and returned {result}");
            }

            Committed(durability, result.Items[0].AsInteger());
            if (result.Items[1].AsInteger() != Accounts * Each)
            {
                cluster.Rules.Break(SumRule, $"a script at {process} saw {result.Items[1]} together");
            }
        }
        catch (KahunaException error) when (error.Code == KahunaErrorCode.ScriptFailed && fails)
        {
            // As it should.
        }
        catch (KahunaException error)
        {
            Failed(durability, error);
            throw;
        }
    }

    private void Committed(Durability durability, long count)
    {
        if (durability == Durability.Persistent)
        {
            _done++;
            CheckCount(count);
        }
    }

    private void Failed(Durability durability, KahunaException error) =>
        _unknown += error.Outcome == OperationOutcome.DidNotHappen || durability == Durability.Ephemeral ? 0 : 1;

    /// <summary>All accounts at one moment; null when there are none.</summary>
    private async Task<(Revision Revision, int Money)[]?> ReadAsync(Durability durability)
    {
        BatchResult<GetResult> read = await client.KeyValues.GetManyAsync(
            _accounts, new BatchOptions { Atomic = true, Durability = durability });
        GetResult[] accounts = [.. read.Items.Select(static item => item.Result)];
        CheckSum(accounts, "a read");
        return accounts[0].Found
            ? [.. accounts.Select(static account => (account.Revision, MoneyOf(account)))]
            : null;
    }

    private void CheckSum(IEnumerable<GetResult> read, string what)
    {
        GetResult[] accounts = [.. read];
        int found = accounts.Count(static account => account.Found);
        int sum = accounts.Where(static account => account.Found).Sum(MoneyOf);
        if (found is not 0 && (found, sum) != (Accounts, Accounts * Each))
        {
            cluster.Rules.Break(SumRule, string.Create(
                CultureInfo.InvariantCulture, $"{what} at {process}: {found} accounts with {sum} together"));
        }
    }

    private void CheckCount(long count)
    {
        if (count < _done || count > _done + _unknown)
        {
            cluster.Rules.Break(OnceRule, string.Create(
                CultureInfo.InvariantCulture,
                $"at {process}: {count} transfers are counted, {_done} were answered and {_unknown} may have been"));
        }
    }

    private static int MoneyOf(GetResult account) =>
        int.Parse(account.Value.AsString()!, CultureInfo.InvariantCulture);
}
