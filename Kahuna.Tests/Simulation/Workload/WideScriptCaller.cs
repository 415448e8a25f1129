using System.Globalization;
using Kahuna.Client;
using Kahuna.Client.Scripts;
using Kahuna.Tests.Linearizability;
using Kahuna.Tests.Serializability;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// A caller of scripts whose keys lie in several partitions or are of both durabilities, so that the client runs them
/// as transactions: transfers between the accounts of <see cref="WideBank"/>, reads of all of them, and appends to the
/// lists of <see cref="ListCaller"/>. The rules of those judge them. Owned by one client of a run.
/// </summary>
internal sealed class WideScriptCaller(SimCluster cluster, KahunaClient client, TimeProvider clock, int process)
{
    /// <summary>What is written depends on what is read, also which account gives.</summary>
    private const string Transfer =
        """
        let giver = get @from
        let taker = get @to
        if giver = null || taker = null then return null end
        let source = @from
        let target = @to
        let had = to_int(giver)
        let has = to_int(taker)
        if @evens && had < has then
          let source = @to
          let target = @from
          let had = to_int(taker)
          let has = to_int(giver)
        end
        set (source) (had - @amount)
        set (target) (has + @amount)
        let count = get @tally
        let next = 1
        if count != null then let next = to_int(count) + 1 end
        set @tally next
        if @fails then throw 'as it should' end
        return next
        """;

    private const string Open =
        """
        let first = get @a0
        if first = null then
          set @a0 @each
          set @a1 @each
          set @a2 @each
          set @a3 @each
        end
        """;

    private const string ReadAll =
        """
        let first = get @a0
        let second = get @a1
        let third = get @a2
        let fourth = get @a3
        return [first, second, third, fourth]
        """;

    private const string Append =
        """
        let other = get @read
        let list = get @write
        if list = null then set @write @value else set @write concat(to_str(list), ' ', @value) end
        return [other, list]
        """;

    private const string ReadLists =
        """
        let first = get @l0
        let second = get @l1
        let third = get @l2
        return [first, second, third]
        """;

    private const string Pair =
        """
        let stays = get @pair
        let goes = eget @pair
        if @writes then
          let next = 1
          if stays != null then let next = to_int(stays) + 1 end
          set @pair next
          eset @pair next
        end
        return [stays, goes]
        """;

    /// <summary>Mean pause of a caller, where the others of a seed do not hurry more.</summary>
    private const double PauseMsMax = 400;

    private readonly SimRandom _random = new SimRandom(cluster.Config.Seed).Fork(180_000 + (ulong)process);

    private CommitOutcomes? _outcomes;
    private long _values;

    private WideBank Bank => cluster.WideBank;

    private CommitOutcomes Outcomes => _outcomes ??= new CommitOutcomes(client, clock, _random);

    public async Task RunAsync()
    {
        while (!cluster.LoadEnds)
        {
            await cluster.PauseAsync(_random.Exponential(Math.Min(cluster.Config.ThinkMs, PauseMsMax)));
            try
            {
                await (_random.Next(10) switch
                {
                    0 or 1 => ReadAllAsync(),
                    2 when cluster.Config is { HasEphemeral: true, Evicts: false } => PairAsync(),
                    3 => ReadListsAsync(),
                    < 6 => AppendAsync(),
                    _ => TransferAsync(),
                });
            }
            catch (KahunaException)
            {
                // A read that failed, or a write that is counted where it is made.
            }
        }
    }

    private async Task TransferAsync()
    {
        int from = _random.Next(Bank.Accounts.Length);
        int to = (from + 1 + _random.Next(Bank.Accounts.Length - 1)) % Bank.Accounts.Length;
        bool fails = _random.Chance(0.1);
        ScriptParameters parameters = new()
        {
            ["from"] = Bank.Accounts[from],
            ["to"] = Bank.Accounts[to],
            ["amount"] = 1 + _random.Next(9),
            ["evens"] = _random.Chance(0.5),
            ["tally"] = Bank.Tallies[from],
            ["fails"] = fails,
        };
        bool isOpen = true;
        bool? happened = await Outcomes.FindAsync(async ct =>
        {
            ScriptResult count = await RunAsync(Transfer, parameters, ct);
            isOpen = !count.IsNull;
            if (fails && isOpen)
            {
                WideBank.Break(cluster, $"a script at {process} has thrown an error and returned {count}");
            }

            return isOpen;
        });
        if (fails && happened == true)
        {
            WideBank.Break(cluster, $"a script at {process} has thrown an error and is said to be committed");
        }

        Bank.Counted(from, happened);
        Bank.Transfers += happened == true ? 1 : 0;
        if (!isOpen)
        {
            await OpenAsync();
        }
    }

    private async Task OpenAsync()
    {
        ScriptParameters parameters = Named("a", Bank.Accounts);
        parameters["each"] = WideBank.Each;
        await RunAsync(Open, parameters, CancellationToken.None);
    }

    private async Task ReadAllAsync()
    {
        ScriptResult read = await RunAsync(ReadAll, Named("a", Bank.Accounts), CancellationToken.None);
        Bank.Reads += read.Items[0].IsNull ? 0 : 1;
        if (WideBank.CheckSum([.. read.Items.Select(TextOf)]) is { } wrong)
        {
            WideBank.Break(cluster, $"a script at {process} has read {wrong}");
        }
    }

    /// <summary>Reads a key of both durabilities, and writes both in some.</summary>
    private async Task PairAsync()
    {
        ScriptParameters parameters = new() { ["pair"] = Bank.Pair, ["writes"] = _random.Chance(0.6) };
        ScriptResult read = await RunAsync(Pair, parameters, CancellationToken.None);
        WideBank.CheckPair(cluster, TextOf(read.Items[0]), TextOf(read.Items[1]));
    }

    private Task ReadListsAsync()
    {
        string[] lists = ListCaller.KeysOf(cluster);
        return ListAsync([], async (steps, ct) =>
        {
            ScriptResult read = await RunAsync(ReadLists, Named("l", lists), ct);
            steps.AddRange(lists.Zip(read.Items, Read));
        });
    }

    /// <summary>Appends to one list after a look at another one.</summary>
    private Task AppendAsync()
    {
        string[] lists = ListCaller.KeysOf(cluster);
        int to = _random.Next(lists.Length);
        string write = lists[to];
        string other = lists[(to + 1 + _random.Next(lists.Length - 1)) % lists.Length];
        long value = (process * ListCaller.ValuesMax) + ++_values;
        ScriptParameters parameters = new()
        {
            ["read"] = other,
            ["write"] = write,
            ["value"] = value.ToString(CultureInfo.InvariantCulture),
        };
        return ListAsync([new AppendStep(write, value, null)], async (steps, ct) =>
        {
            ScriptResult read = await RunAsync(Append, parameters, ct);
            steps.InsertRange(0, [Read(other, read.Items[0]), Read(write, read.Items[1])]);
        });
    }

    /// <summary>Notes a transaction on lists.</summary>
    /// <param name="writes">What it may have done when it fails.</param>
    /// <param name="run">Runs it, and adds what it has read.</param>
    private async Task ListAsync(AppendStep[] writes, Func<List<AppendStep>, CancellationToken, Task> run)
    {
        ListCall call = new(process, cluster.Scheduler.NowNs);
        call.Steps.AddRange(writes);
        cluster.Lists.Add(call);
        bool? happened = await Outcomes.FindAsync(async ct =>
        {
            await run(call.Steps, ct);
            return true;
        });
        call.Outcome = happened switch
        {
            true => HistoryOutcome.Ok,
            false => HistoryOutcome.Fail,
            null => HistoryOutcome.Unknown,
        };
        call.ReturnNs = cluster.Scheduler.NowNs;
    }

    private async Task<ScriptResult> RunAsync(string text, ScriptParameters parameters, CancellationToken ct)
    {
        ScriptResult result = await client.Scripts.RunAsync(text, parameters, ct: ct);
        Bank.Scripts++;
        return result;
    }

    private static ScriptParameters Named(string prefix, string[] keys)
    {
        ScriptParameters parameters = new();
        for (int i = 0; i < keys.Length; i++)
        {
            parameters[string.Create(CultureInfo.InvariantCulture, $"{prefix}{i}")] = keys[i];
        }

        return parameters;
    }

    private static AppendStep Read(string list, ScriptResult read) =>
        new(list, null, ListCaller.ListOf(TextOf(read)));

    private static string? TextOf(ScriptResult read) => read.IsNull ? null : read.AsString();
}
