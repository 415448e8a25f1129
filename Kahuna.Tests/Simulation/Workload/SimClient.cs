using System.Globalization;
using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Server.Cluster;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Nodes;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// A process with the shipped client and some callers, each of which does one operation after the other and notes what
/// came back. Owned by one run.
/// </summary>
internal sealed class SimClient
{
    /// <summary>The longest time to live that a caller asks for.</summary>
    public const int TtlMsMax = 10_000;

    private const long TogetherNs = 100_000_000;

    /// <summary>So many short leases are used once more by their caller, at about the time they end.</summary>
    private const double Aimed = 0.3;
    private const long AimedTtlMsMax = 500;

    /// <summary>Numbers of the callers that ask for locks begin here.</summary>
    private const int FirstLockProcess = 50_000;
    private const int FirstScanProcess = 90_000;
    private const int FirstBatchProcess = 95_000;
    private const int FirstWatchProcess = 97_000;
    private const int FirstBankProcess = 98_000;
    private const int FirstListProcess = 99_000;
    private const int FirstWideProcess = 99_500;
    private const int FirstRangeProcess = 98_500;
    private const int FirstScriptProcess = 98_700;
    private const int FirstFenceProcess = 98_800;

    /// <summary>They want the same locks, from different clients.</summary>
    private const int FenceClientsMax = 3;

    /// <summary>How late a call may end: the client's timer, and the unary client's patience.</summary>
    private const long LateNsMax = 500_000_000;

    /// <summary>Callers that hurry ask any node more often: some of them know another leader than others do.</summary>
    private const double HurriedUnary = 0.6;
    private const double HurriedTo = 0.8;

    /// <summary>Callers without the client that number their calls, and repeat them.</summary>
    private const double NumberedUnary = 0.5;

    /// <summary>And write more: what a leader that is cut off writes in vain then fills segments of its log.</summary>
    private const double HurriedLarge = 0.5;

    private readonly SimCluster _cluster;
    private readonly SimConfig _config;
    private readonly int _number;
    private readonly SimContext _context;
    private readonly SimClock _clock;
    private readonly KahunaClient _client;
    private readonly UnaryClient _unary;
    private readonly SequenceCalls _sequences;

    // Its own draws, so that what else a seed draws is as it was.
    private readonly SimRandom _rare;

    public SimClient(SimCluster cluster, int number)
    {
        _cluster = cluster;
        _config = cluster.Config;
        _number = number;
        _rare = new SimRandom(_config.Seed).Fork(50_000 + (ulong)number);
        _context = new SimContext(cluster.Scheduler.After);
        _clock = new SimClock(cluster.Scheduler, number * 1_000_000_007L);
        KahunaClientOptions options = new()
        {
            RequestTimeout = TimeSpan.FromMilliseconds(_config.RequestTimeoutMs),
            ConnectTimeout = TimeSpan.FromSeconds(1),
            TimeProvider = _clock,
        };
        for (int i = 0; i < _config.Nodes; i++)
        {
            options.Endpoints.Add(new Uri($"https://n{((i + number) % _config.Nodes) + 1}:1"));
        }

        ConnectionPorts ports = new(cluster.Clients.Channel(number), _clock, _context, number * 7919)
        {
            NewSessionId = cluster.Clients.NewSessionId,
        };
        _client = new KahunaClient(options, ports, NullLoggerFactory.Instance);
        cluster.Mover?.Watch(_client);
        _sequences = new SequenceCalls(cluster, _client);
        _unary = new UnaryClient(cluster.Clients, number, _clock, options.RequestTimeout, _config.Nodes);
    }

    /// <summary>Callers that have not ended.</summary>
    public int Running { get; private set; }

    private bool IsHurried => _cluster.Scheduler.NowNs < _cluster.HurryUntilNs;

    public void Start()
    {
        for (int i = 0; i < _config.CallersPerClient; i++)
        {
            int process = (_number * _config.CallersPerClient) + i;
            Running++;
            _context.Post(_ => _ = RunAsync(process), null);
        }

        for (int i = 0; i < _config.LockCallers; i++)
        {
            int process = FirstLockProcess + (_number * _config.LockCallers) + i;
            ILockUser caller = (new SimRandom(_config.Seed).Fork(30_000 + (ulong)process).Next(6)) switch
            {
                0 => new UnaryLockCaller(_cluster, _client, _unary, _clock, process),
                1 => new Candidate(_cluster, _client, _clock, process),
                _ => new LockCaller(
                    _cluster,
                    _client,
                    new FencedTransactions(
                        _cluster, _client, _clock, () => Coordinator(160_000 + process), process),
                    process),
            };
            Running++;
            _context.Post(_ => _ = RunAsync(caller), null);
        }

        for (int i = 0; i < (_number <= FenceClientsMax ? _config.FenceCallers : 0); i++)
        {
            int process = FirstFenceProcess + (_number * _config.FenceCallers) + i;
            FenceCaller caller = new(
                _cluster,
                _client,
                new FencedTransactions(_cluster, _client, _clock, () => Coordinator(160_000 + process), process),
                process);
            Running++;
            _context.Post(_ => _ = RunAsync(caller), null);
        }

        if (_number <= _config.Scanners)
        {
            Running++;
            ScanCaller caller = new(_cluster, _client, FirstScanProcess + _number);
            _context.Post(_ => _ = RunAsync(caller.RunAsync), null);
        }

        if (_number <= _config.WatchCallers)
        {
            Running++;
            WatchCaller caller = new(_cluster, _client, FirstWatchProcess + _number);
            _context.Post(_ => _ = RunAsync(caller.RunAsync), null);
        }

        if (_number <= _config.BatchCallers)
        {
            Running++;
            BatchCaller caller = new(_cluster, _client, FirstBatchProcess + _number);
            _context.Post(_ => _ = RunAsync(caller.RunAsync), null);
        }

        if (_number <= _config.BankCallers)
        {
            Running++;
            BankCaller caller = new(_cluster, _client, FirstBankProcess + _number);
            _context.Post(_ => _ = RunAsync(caller.RunAsync), null);
        }

        if (_number <= _config.ListCallers)
        {
            Running++;
            ListCaller caller = new(_cluster, _client, FirstListProcess + _number);
            _context.Post(_ => _ = RunAsync(caller.RunAsync), null);
        }

        if (_number <= _config.RangeCallers)
        {
            Running++;
            RangeCaller caller = new(_cluster, _client, FirstRangeProcess + _number);
            _context.Post(_ => _ = RunAsync(caller.RunAsync), null);
        }

        if (_number <= _config.WideScriptCallers)
        {
            Running++;
            WideScriptCaller caller = new(_cluster, _client, _clock, FirstScriptProcess + _number);
            _context.Post(_ => _ = RunAsync(caller.RunAsync), null);
        }

        if (_number <= _config.WideBankCallers)
        {
            Running++;
            WideBankCaller caller = new(
                _cluster, _client, Coordinator(150_000 + _number), _clock, FirstWideProcess + _number);
            _context.Post(_ => _ = RunAsync(caller.RunAsync), null);
        }
    }

    /// <summary>A coordinator with connections of its own, which are cut where the client's are.</summary>
    private LeavingCoordinator Coordinator(int purpose) => new(
        _cluster,
        new Forwarder(
            NodeParts.Addresses(_config),
            null,
            _ => new ConnectionPorts(_cluster.Clients.Channel(_number), _clock, _context, (_number * 7919) + 1)
            {
                NewSessionId = _cluster.Clients.NewSessionId,
            },
            NullLoggerFactory.Instance),
        new SimRandom(_config.Seed).Fork((ulong)purpose));

    private async Task RunAsync(Func<Task> run)
    {
        try
        {
            await run();
        }
        catch (Exception error)
        {
            _cluster.Rules.Break("the client answers as it says", error.ToString());
        }

        Running--;
    }

    private async Task RunAsync(ILockUser caller)
    {
        try
        {
            await caller.RunAsync();
        }
        catch (Exception error)
        {
            _cluster.Rules.Break("the client answers as it says", error.ToString());
        }

        Running--;
    }

    private async Task RunAsync(int process)
    {
        SimRandom random = new SimRandom(_config.Seed).Fork(10_000 + (ulong)process);
        Call? leased = null;
        try
        {
            while (!_cluster.LoadEnds)
            {
                await PauseAsync(random, leased);
                Call call = await CallAsync(process, random, leased);
                leased = leased is null && call.TtlMs <= AimedTtlMsMax && random.Chance(Aimed) ? call : null;
            }
        }
        catch (Exception error)
        {
            _cluster.Rules.Break("the client answers as it says", error.ToString());
        }

        Running--;
    }

    /// <summary>A while; after a lease, until it is about to end.</summary>
    private Task PauseAsync(SimRandom random, Call? leased)
    {
        SimScheduler scheduler = _cluster.Scheduler;
        double pauseMs = random.Exponential(_config.ThinkMs) / (IsHurried ? 10 : 1);
        long atNs = scheduler.NowNs + 1_000_000 + (long)(pauseMs * 1_000_000);
        if (leased is not null)
        {
            atNs = Math.Max(scheduler.NowNs, leased.CallNs + (leased.TtlMs!.Value * 1_000_000))
                + random.Between(0, 2_000_000L * _config.TickMs);
        }

        if (_config.Together)
        {
            atNs += TogetherNs - (atNs % TogetherNs);
        }

        TaskCompletionSource over = new(TaskCreationOptions.RunContinuationsAsynchronously);
        scheduler.At(atNs, over.SetResult);
        return over.Task;
    }

    private async Task<Call> CallAsync(int process, SimRandom random, Call? leased)
    {
        Call call = _cluster.History.Begin(Draw(process, random, leased), _cluster.Scheduler);
        using CancellationTokenSource? abandoned = random.Chance(_config.Abandoned)
            ? new CancellationTokenSource(
                TimeSpan.FromMilliseconds(random.Exponential(_config.RequestTimeoutMs / 4.0)), _clock)
            : null;
        try
        {
            if (call.Kind == CallKind.Next)
            {
                await _sequences.TakeAsync(call, abandoned?.Token ?? default);
                call.Outcome = CallOutcome.Ok;
            }
            else if (!call.ReturnsPrevious
                && random.Chance(IsHurried ? Math.Max(HurriedUnary, _config.Unary) : _config.Unary))
            {
                await _unary.RunAsync(
                    call,
                    random.Between(1, _config.Nodes) is var node
                        && IsHurried
                        && _cluster.HurryTo is { } cutOff
                        && random.Chance(HurriedTo)
                        ? cutOff
                        : node,
                    random.Chance(NumberedUnary),
                    abandoned?.Token ?? default);
            }
            else
            {
                await SdkCall.RunAsync(_client.KeyValues, call, abandoned?.Token ?? default);
                call.Outcome = CallOutcome.Ok;
            }
        }
        catch (KahunaException refused) when (
            refused.Code is KahunaErrorCode.NotAnInteger or KahunaErrorCode.Overflow
                && refused.Outcome == OperationOutcome.DidNotHappen)
        {
            // An answer like any other: the key held no number that this could be added to.
            call.Outcome = CallOutcome.Ok;
        }
        catch (KahunaException error)
        {
            call.Error = error.Code.ToString();
            call.Outcome = error.Outcome == OperationOutcome.DidNotHappen ? CallOutcome.Fail : CallOutcome.Unknown;
        }
        catch (KahunaCanceledException error)
        {
            call.Error = "Canceled";
            call.Outcome = error.Outcome == OperationOutcome.DidNotHappen ? CallOutcome.Fail : CallOutcome.Unknown;
        }

        long lateNs = _cluster.Scheduler.NowNs - call.CallNs - (_config.RequestTimeoutMs * 1_000_000L);
        if (lateNs > LateNsMax)
        {
            _cluster.Rules.Break("a call ends at its deadline", $"process {process}: {lateNs / 1_000_000} ms later");
        }

        if (abandoned is null && _cluster.Mover?.Concerns(call.Key) != true)
        {
            _cluster.Prompt.Ended(call, _cluster.Scheduler.NowNs);
        }

        _cluster.History.End(call, _cluster.Scheduler);
        return call;
    }

    private Call Draw(int process, SimRandom random, Call? leased)
    {
        if (leased is null && random.Chance(_config.Sequences))
        {
            return _sequences.Draw(process, random);
        }

        string key = leased?.Key ?? _cluster.Mover?.TryTake(_rare) ?? _cluster.Keys.Take(random, IsHurried);
        bool isEphemeral = leased?.IsEphemeral ?? (_config.HasEphemeral && random.Chance(_config.Ephemeral));
        CallKind kind = leased is not null && random.Chance(0.5)
            ? CallKind.Extend
            : random.Pick(
                [
                    CallKind.Set, CallKind.Set, CallKind.Set, CallKind.Get, CallKind.Get, CallKind.Get, CallKind.Exists,
                    CallKind.Delete, CallKind.Extend, CallKind.Increment,
                ]);
        kind = _cluster.Mover?.Allowed(key, kind) ?? kind;
        bool isCounter = key[1] is '0' or '3';
        if (isCounter && kind is CallKind.Set or CallKind.Extend)
        {
            kind = CallKind.Increment;
        }

        bool isWrite = kind is CallKind.Set or CallKind.Delete;
        int condition = isWrite ? random.Next(8) : 7;
        string name = isEphemeral ? "ephemeral " + key : key;
        Call? seen = condition is 2 or 3 ? _cluster.History.LatestOf(name) : null;
        Rare rare = DrawRare(kind, name);
        bool wasNull = seen is { Done: true, Outcome: CallOutcome.Ok }
            && seen.Kind is CallKind.Set or CallKind.Get
            && (seen.Value ?? seen.FoundValue) is null;
        return new Call
        {
            Process = process,
            Key = key,
            IsEphemeral = isEphemeral,
            Kind = kind,
            CallNs = _cluster.Scheduler.NowNs,
            Value = kind == CallKind.Set && !rare.IsNull ? DrawValue(random) : null,
            OnlyIfAbsent = kind == CallKind.Set && condition == 0,
            OnlyIfPresent = kind == CallKind.Set && condition == 1,
            OnlyIfNull = condition == 2 && wasNull,
            OnlyIfValue = condition == 2 && !wasNull ? seen?.Value ?? seen?.FoundValue ?? "v0" : null,
            OnlyIfRevision = condition == 3 ? Math.Max(1, seen?.Revision ?? 1) : null,
            TtlMs = kind == CallKind.Extend || (kind == CallKind.Set && random.Chance(_config.Ttls))
                ? random.Pick([50, 500, 2_000, TtlMsMax])
                : null,
            By = kind == CallKind.Increment ? rare.Huge ?? random.Between(-3, 10) : 0,
            AtRevision = rare.AtRevision,
            WithoutHistory = isWrite && rare.WithoutHistory,
            ReturnsPrevious = isWrite && rare.ReturnsPrevious,
            IsTry = kind == CallKind.Increment && rare.IsTry,
        };
    }

    private string DrawValue(SimRandom random)
    {
        long value = _cluster.History.NextValue();
        double large = IsHurried ? Math.Max(HurriedLarge, _config.LargeValues) : _config.LargeValues;
        string rest = random.Chance(large) ? new string('x', random.Next(3_000)) : "";
        return string.Create(CultureInfo.InvariantCulture, $"v{value}{rest}");
    }

    /// <summary>What few calls ask for.</summary>
    private Rare DrawRare(CallKind kind, string name)
    {
        long revision = kind == CallKind.Get
            && _rare.Chance(0.2)
            && _cluster.History.LatestOf(name) is { Revision: > 0 } latest
            ? Math.Max(1, latest.Revision.Value - _rare.Next(4))
            : 0;
        return new Rare(
            revision == 0 ? null : revision,
            _rare.Chance(0.05),
            _rare.Chance(0.1),
            _rare.Chance(0.2),
            _rare.Chance(0.5),
            _rare.Chance(0.03) ? (_rare.Chance(0.5) ? 1 : -1) * (long.MaxValue - 5) : null);
    }

    /// <summary>What few calls ask for, of which each takes what its kind knows.</summary>
    private readonly record struct Rare(
        long? AtRevision, bool IsNull, bool WithoutHistory, bool ReturnsPrevious, bool IsTry, long? Huge);
}
