using System.Globalization;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Transactions;
using Kahuna.Tests.Linearizability;
using Kahuna.Tests.Serializability;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// A caller whose transactions read lists and append to them, so that cycles between transactions show. The whole run
/// must be strictly serializable. Owned by one client of a run.
/// </summary>
internal sealed class ListCaller(SimCluster cluster, KahunaClient client, int process)
{
    /// <summary>Lists that are in use at a time.</summary>
    public const int Lists = 3;

    /// <summary>More than a caller appends in a run, so that no value comes twice.</summary>
    public const long ValuesMax = 1_000_000;

    private const int StepsMax = 4;

    /// <summary>For so long the same lists are used, so that they stay short.</summary>
    private const long ListsNs = 5_000_000_000;

    private readonly SimRandom _random = new SimRandom(cluster.Config.Seed).Fork(130_000 + (ulong)process);

    private long _values;

    public async Task RunAsync()
    {
        while (!cluster.LoadEnds)
        {
            await cluster.PauseAsync(_random.Exponential(4 * cluster.Config.ThinkMs));
            ListCall call = new(process, cluster.Scheduler.NowNs);
            cluster.Lists.Add(call);
            try
            {
                await (_random.Chance(0.3) ? ReadAllAsync(call.Steps) : TransactAsync(call.Steps));
                call.Outcome = HistoryOutcome.Ok;
            }
            catch (KahunaException error)
            {
                call.Outcome = error.Outcome == OperationOutcome.DidNotHappen
                    ? HistoryOutcome.Fail
                    : HistoryOutcome.Unknown;
            }

            call.ReturnNs = cluster.Scheduler.NowNs;
        }
    }

    private async Task TransactAsync(List<AppendStep> steps)
    {
        await using Transaction transaction = await client.Transactions.BeginAsync(
            new TransactionOptions { Durability = Durability.Persistent });
        string[] keys = KeysOf(cluster);
        for (int left = 1 + _random.Next(StepsMax); left > 0; left--)
        {
            string key = keys[_random.Next(Lists)];
            long[] list = ListOf(await transaction.GetAsync(key));
            if (_random.Chance(0.5))
            {
                steps.Add(new AppendStep(key, null, list));
                continue;
            }

            long value = (process * ValuesMax) + ++_values;
            steps.Add(new AppendStep(key, value, null));
            await transaction.SetAsync(key, string.Join(' ', list.Append(value)));
        }

        await transaction.CommitAsync();
    }

    private async Task ReadAllAsync(List<AppendStep> steps)
    {
        string[] keys = KeysOf(cluster);
        BatchResult<GetResult> read = await client.KeyValues.GetManyAsync(
            keys,
            new BatchOptions { Atomic = true, Durability = Durability.Persistent });
        for (int i = 0; i < Lists; i++)
        {
            steps.Add(new AppendStep(keys[i], null, ListOf(read[i].Result)));
        }
    }

    /// <summary>The lists of this time: of one bucket, and every other time of several partitions.</summary>
    public static string[] KeysOf(SimCluster cluster)
    {
        long age = cluster.Scheduler.NowNs / ListsNs;
        bool isWide = cluster.Config.Groups > 1 && age % 2 == 1;
        return
        [
            .. Enumerable.Range(0, Lists).Select(i => string.Create(
                CultureInfo.InvariantCulture, $"lists{age}{(isWide ? "." : "/")}{i}{(isWide ? "/list" : "")}")),
        ];
    }

    private static long[] ListOf(GetResult read) => ListOf(read.Value.AsString());

    /// <summary>The values of a list, in their order; none when it is absent.</summary>
    public static long[] ListOf(string? value) => value is { Length: > 0 } text
        ? [.. text.Split(' ').Select(static each => long.Parse(each, CultureInfo.InvariantCulture))]
        : [];
}

/// <summary>A transaction of a <see cref="ListCaller"/>, which may be under way. Owned by the run.</summary>
internal sealed class ListCall(int process, long callNs)
{
    public List<AppendStep> Steps { get; } = [];

    public HistoryOutcome Outcome { get; set; } = HistoryOutcome.Unknown;

    public long? ReturnNs { get; set; }

    public AppendTransaction ToTransaction() => new()
    {
        Process = process,
        CallNs = callNs,
        ReturnNs = ReturnNs,
        Outcome = Outcome,
        Steps = [.. Steps],
    };
}
