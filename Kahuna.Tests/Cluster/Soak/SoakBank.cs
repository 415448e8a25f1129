using System.Globalization;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Transactions;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>
/// Transfers between accounts of several partitions, while processes are killed: every read of all accounts shows the
/// same sum. One bank has persistent accounts only. The other one also has accounts in memory, and a new one is opened
/// when some of these are lost with their epoch. Owned by one run.
/// </summary>
internal sealed class SoakBank : IAsyncDisposable
{
    private const int Accounts = 12;
    private const int Callers = 3;
    private const long Balance = 100;
    private const double ThinkMs = 30;

    private readonly KahunaClient _client;
    private readonly SoakOptions _options;
    private readonly CancellationTokenSource _stop = new();
    private Task[] _running = [];
    private int _banks;
    private long _transfers;
    private long _refused;
    private long _reads;
    private long _unknown;

    public SoakBank(ProcessCluster cluster, SoakOptions options)
    {
        _client = cluster.Connect(TimeSpan.FromSeconds(10));
        _options = options;
    }

    /// <summary>Ends as soon as a caller does, which only happens when something is wrong.</summary>
    public Task Broken => Task.WhenAny(_running).Unwrap();

    /// <summary>Opens the banks, and begins.</summary>
    public void Start() =>
        _running = [Task.Run(() => RunBankAsync(isMixed: false)), Task.Run(() => RunBankAsync(isMixed: true))];

    /// <summary>Nobody begins anything more; what was done.</summary>
    /// <exception cref="SoakException">A sum was wrong, or nothing was done.</exception>
    public async Task<string> StopAsync(TimeSpan within)
    {
        await _stop.CancelAsync();
        await Task.WhenAll(_running).WaitAsync(within);
        return _transfers > 0 && _reads > 0
            ? string.Create(
                CultureInfo.InvariantCulture,
                $"{_transfers:N0} transfers, {_refused:N0} without effect, {_unknown:N0} unknown, {_reads:N0} sums, "
                    + $"{_banks} banks")
            : throw new SoakException("bank: nothing was transferred, or no sum was read");
    }

    public async ValueTask DisposeAsync()
    {
        await _stop.CancelAsync();
        await _client.DisposeAsync();
        _stop.Dispose();
    }

    /// <summary>One bank after the other, each until accounts in memory are lost.</summary>
    private async Task RunBankAsync(bool isMixed)
    {
        SimRandom seeds = new SimRandom(_options.Seed).Fork(isMixed ? 51_000u : 50_000u);
        while (!_stop.IsCancellationRequested)
        {
            string name = string.Create(
                CultureInfo.InvariantCulture, $"soak/bank{Interlocked.Increment(ref _banks)}");
            Account[] accounts =
            [
                .. Enumerable.Range(0, Accounts).Select(number => new Account(
                    string.Create(CultureInfo.InvariantCulture, $"{name}/{number}/account"),
                    isMixed && number % 2 == 1 ? Durability.Ephemeral : Durability.Persistent)),
            ];
            if (!await OpenAsync(accounts))
            {
                continue;
            }

            using CancellationTokenSource lost = CancellationTokenSource.CreateLinkedTokenSource(_stop.Token);
            await Task.WhenAll(
            [
                .. Enumerable.Range(0, Callers).Select(_ => TransferAsync(accounts, new SimRandom(seeds.Next()), lost)),
                SumAsync(accounts, isMixed, lost),
            ]);
        }
    }

    /// <summary>Gives every account its balance, all at one moment. False: it is not known whether it did.</summary>
    private async Task<bool> OpenAsync(Account[] accounts)
    {
        try
        {
            await _client.Transactions.If()
                .Then(accounts.Select(static account => KeyOperation
                    .Set(account.Name, Balance.ToString(CultureInfo.InvariantCulture))
                    .WithDurability(account.Durability)))
                .CommitAsync();
            return true;
        }
        catch (KahunaException)
        {
            return false;
        }
    }

    private async Task TransferAsync(Account[] accounts, SimRandom random, CancellationTokenSource lost)
    {
        while (!lost.IsCancellationRequested)
        {
            await Task.Delay(TimeSpan.FromMilliseconds(random.Exponential(ThinkMs)), CancellationToken.None);
            Account from = random.Pick(accounts);
            Account to = random.Pick(accounts);
            long amount = 1 + random.Next(20);
            if (from == to)
            {
                continue;
            }

            try
            {
                bool isDone = await (random.Chance(0.5)
                    ? InOneCallAsync(from, to, amount, lost)
                    : InteractivelyAsync(from, to, amount, lost));
                Interlocked.Increment(ref isDone ? ref _transfers : ref _refused);
            }
            catch (KahunaException error)
            {
                Interlocked.Increment(ref error.Outcome == OperationOutcome.DidNotHappen ? ref _refused : ref _unknown);
            }
        }
    }

    /// <summary>Reads both accounts, and transfers under the condition that nothing has changed.</summary>
    private async Task<bool> InOneCallAsync(Account from, Account to, long amount, CancellationTokenSource lost)
    {
        GetResult paying = await ReadAsync(from);
        GetResult paid = await ReadAsync(to);
        if (!paying.Found || !paid.Found)
        {
            await lost.CancelAsync();
            return false;
        }

        if (ToAmount(paying) < amount)
        {
            return false;
        }

        TransactionResult result = await _client.Transactions
            .If(
                KeyCondition.HasRevision(from.Name, paying.Revision).WithDurability(from.Durability),
                KeyCondition.HasRevision(to.Name, paid.Revision).WithDurability(to.Durability))
            .Then(
                KeyOperation.Increment(from.Name, -amount).WithDurability(from.Durability),
                KeyOperation.Set(to.Name, ToText(ToAmount(paid) + amount)).WithDurability(to.Durability))
            .CommitAsync();
        return result.Succeeded;
    }

    private Task<bool> InteractivelyAsync(Account from, Account to, long amount, CancellationTokenSource lost) =>
        _client.Transactions.RunAsync(async transaction =>
        {
            Transaction paying = transaction.WithDurability(from.Durability);
            Transaction paid = transaction.WithDurability(to.Durability);
            GetResult before = await paying.GetAsync(from.Name);
            GetResult other = await paid.GetAsync(to.Name);
            if (!before.Found || !other.Found)
            {
                await lost.CancelAsync();
                return false;
            }

            if (ToAmount(before) < amount)
            {
                return false;
            }

            await paying.SetAsync(from.Name, ToText(ToAmount(before) - amount));
            await paid.SetAsync(to.Name, ToText(ToAmount(other) + amount));
            return true;
        });

    private async Task SumAsync(Account[] accounts, bool isMixed, CancellationTokenSource lost)
    {
        while (!lost.IsCancellationRequested)
        {
            await Task.Delay(TimeSpan.FromMilliseconds(ThinkMs), CancellationToken.None);
            GetResult[] read;
            try
            {
                read = await _client.Transactions.RunAsync(async transaction =>
                {
                    GetResult[] all = new GetResult[accounts.Length];
                    for (int i = 0; i < accounts.Length; i++)
                    {
                        all[i] = await transaction.WithDurability(accounts[i].Durability).GetAsync(accounts[i].Name);
                    }

                    return all;
                });
            }
            catch (KahunaException)
            {
                continue;
            }

            Interlocked.Increment(ref _reads);
            if (isMixed && read.Any(static each => !each.Found))
            {
                await lost.CancelAsync();
                return;
            }

            long sum = read.Sum(ToAmount);
            if (sum != Accounts * Balance)
            {
                throw new SoakException(string.Create(
                    CultureInfo.InvariantCulture,
                    $"bank: the accounts of {accounts[0].Name} have {sum} together, not {Accounts * Balance}: "
                        + $"{string.Join(' ', read.Select(ToAmount))}"));
            }
        }
    }

    private ValueTask<GetResult> ReadAsync(Account account) =>
        _client.KeyValues.GetAsync(account.Name, new ReadOptions { Durability = account.Durability });

    private static long ToAmount(GetResult read) =>
        read.Found ? long.Parse(read.Value.AsString()!, CultureInfo.InvariantCulture) : 0;

    private static string ToText(long amount) => amount.ToString(CultureInfo.InvariantCulture);

    private sealed record Account(string Name, Durability Durability);
}
