using System.Collections.Concurrent;
using System.Globalization;
using Kahuna.Client;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Transactions;
using Kahuna.Tests.Linearizability;
using Kahuna.Tests.Serializability;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>
/// Transactions that read lists of several partitions and append to them, while processes are killed: the history must
/// be strictly serializable. Lists are used for some seconds, so that they stay short. Owned by one run.
/// </summary>
internal sealed class SoakLists : IAsyncDisposable
{
    private const int Lists = 5;
    private const int StepsMax = 4;
    private const int Callers = 4;
    private const int WindowSeconds = 5;
    private const long ValuesMax = 1_000_000_000;
    private const double ThinkMs = 40;

    private readonly KahunaClient _client;
    private readonly SoakOptions _options;
    private readonly SoakClock _clock = new();
    private readonly ConcurrentDictionary<long, ConcurrentBag<AppendTransaction>> _windows = [];
    private readonly CancellationTokenSource _stop = new();
    private Task[] _running = [];

    public SoakLists(ProcessCluster cluster, SoakOptions options)
    {
        _client = cluster.Connect(TimeSpan.FromSeconds(10));
        _options = options;
    }

    /// <summary>Ends as soon as a caller does, which only happens when something is wrong.</summary>
    public Task Broken => Task.WhenAny(_running).Unwrap();

    /// <summary>Begins.</summary>
    public void Start() => _running =
        [.. Enumerable.Range(0, Callers).Select(number => Task.Run(() => RunAsync(number)))];

    /// <summary>Nobody begins anything more; what was done.</summary>
    /// <exception cref="SoakException">The history is not strictly serializable, or there is none.</exception>
    public async Task<string> StopAsync(TimeSpan within)
    {
        await _stop.CancelAsync();
        await Task.WhenAll(_running).WaitAsync(within);
        int committed = 0;
        int all = 0;
        foreach ((long window, ConcurrentBag<AppendTransaction> bag) in _windows)
        {
            AppendTransaction[] transactions = [.. bag.OrderBy(static each => each.CallNs)];
            List<SerializabilityFinding> findings = SerializabilityChecker.Check(transactions);
            if (findings.Count > 0)
            {
                throw new SoakException($"lists of window {window}: {string.Join("; ", findings)}");
            }

            all += transactions.Length;
            committed += transactions.Count(static each => each.Outcome == HistoryOutcome.Ok);
        }

        return committed > 0
            ? string.Create(CultureInfo.InvariantCulture, $"{all:N0} list transactions, {committed:N0} committed")
            : throw new SoakException("lists: no transaction was committed");
    }

    public async ValueTask DisposeAsync()
    {
        await _stop.CancelAsync();
        await _client.DisposeAsync();
        _stop.Dispose();
    }

    private async Task RunAsync(int number)
    {
        SimRandom random = new SimRandom(_options.Seed).Fork(60_000 + (ulong)number);
        for (long calls = 1; !_stop.IsCancellationRequested; calls++)
        {
            await Task.Delay(TimeSpan.FromMilliseconds(random.Exponential(ThinkMs)), CancellationToken.None);
            long window = (long)_clock.Elapsed.TotalSeconds / WindowSeconds;
            long began = _clock.NowNs;
            List<AppendStep> steps = [];
            HistoryOutcome outcome = HistoryOutcome.Ok;
            try
            {
                await TransactAsync(window, (number * ValuesMax) + (calls * StepsMax), random, steps);
            }
            catch (KahunaException error)
            {
                outcome = error.Outcome == OperationOutcome.DidNotHappen ? HistoryOutcome.Fail : HistoryOutcome.Unknown;
            }

            _windows.GetOrAdd(window, static _ => []).Add(new AppendTransaction
            {
                Process = number,
                CallNs = began,
                ReturnNs = _clock.NowNs,
                Outcome = outcome,
                Steps = [.. steps],
            });
        }
    }

    private async Task TransactAsync(long window, long firstValue, SimRandom random, List<AppendStep> steps)
    {
        await using Transaction transaction = await _client.Transactions.BeginAsync();
        for (int i = 1 + random.Next(StepsMax); i > 0; i--)
        {
            string key = string.Create(
                CultureInfo.InvariantCulture, $"soak/lists{window}/{random.Next(Lists)}/list");
            long[] list = ListOf(await transaction.GetAsync(key));
            if (random.Chance(0.5))
            {
                steps.Add(new AppendStep(key, null, list));
                continue;
            }

            long value = firstValue + i - 1;
            steps.Add(new AppendStep(key, value, null));
            await transaction.SetAsync(key, string.Join(' ', list.Append(value)));
        }

        await transaction.CommitAsync();
    }

    private static long[] ListOf(GetResult read) => read.Value.AsString() is { Length: > 0 } text
        ? [.. text.Split(' ').Select(static each => long.Parse(each, CultureInfo.InvariantCulture))]
        : [];
}
