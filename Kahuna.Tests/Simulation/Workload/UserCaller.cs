using System.Globalization;
using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Client.Transactions;
using Kahuna.Client.Watches;
using Kahuna.Tests.Simulation.Engine;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// A user that does one thing after the other on its own keys, and tries another one's: with the shipped client, or by
/// unary calls at nodes that it chooses. What it may do changes meanwhile. Owned by one run.
/// </summary>
internal sealed class UserCaller
{
    private const int FirstProcess = 99_800;

    private readonly SimCluster _cluster;
    private readonly SimUser _user;
    private readonly SimContext _context;
    private readonly SimRandom _random;
    private readonly SimRandom _follow;
    private readonly Dictionary<string, long> _sets = [];
    private readonly KahunaClient _client;
    private readonly UnaryClient _unary;
    private readonly TimeSpan _timeout;

    public UserCaller(SimCluster cluster, SimUser user)
    {
        _cluster = cluster;
        _user = user;
        _random = new SimRandom(cluster.Config.Seed).Fork(171_000 + (ulong)user.Id);
        _follow = new SimRandom(cluster.Config.Seed).Fork(172_000 + (ulong)user.Id);
        _context = new SimContext(cluster.Scheduler.After);
        SimClock clock = new(cluster.Scheduler, user.Client * 1_000_000_007L);
        _timeout = TimeSpan.FromMilliseconds(cluster.Config.RequestTimeoutMs);
        KahunaClientOptions options = new()
        {
            RequestTimeout = _timeout,
            ConnectTimeout = TimeSpan.FromSeconds(1),
            TimeProvider = clock,
        };
        foreach (int node in Enumerable.Range(1, cluster.Config.Nodes))
        {
            options.Endpoints.Add(new Uri($"https://n{node}:1"));
        }

        ConnectionPorts ports = new(cluster.Clients.Channel(user.Client), clock, _context, user.Client * 7919)
        {
            NewSessionId = cluster.Clients.NewSessionId,
        };
        _client = new KahunaClient(options, ports, NullLoggerFactory.Instance);
        _unary = new UnaryClient(cluster.Clients, user.Client, clock, _timeout, cluster.Config.Nodes);
    }

    /// <summary>It has not ended.</summary>
    public bool IsRunning { get; private set; }

    public void Start()
    {
        IsRunning = true;
        _context.Post(_ => _ = RunAsync(), null);
        if (!_user.IsUnary)
        {
            _context.Post(_ => _ = FollowAsync(), null);
        }
    }

    /// <summary>It watches its own keys, over and over.</summary>
    private async Task FollowAsync()
    {
        WatchOptions options = new() { Durability = Durability.Persistent, Scope = WatchScope.Prefix };
        try
        {
            while (!_cluster.LoadEnds)
            {
                await _cluster.PauseAsync(_follow.Exponential(500));
                CancellationTokenSource end = new();
                long lastsNs = (long)(_follow.Exponential(10_000) * 1_000_000);
                _cluster.Scheduler.After(lastsNs, () => _context.Post(_ => end.Cancel(), null));
                await FollowAsync(options, end.Token);
            }
        }
        catch (Exception error)
        {
            _cluster.Rules.Break("the client answers as it says", error.ToString());
        }
    }

    private async Task FollowAsync(WatchOptions options, CancellationToken end)
    {
        try
        {
            await foreach (WatchEvent told in _client.KeyValues.WatchAsync($"{_user.Name}/", options, end))
            {
                if (told.Value is { IsNull: false } value && _sets.TryGetValue(value.ToString(), out long askedNs))
                {
                    _cluster.Rights.JudgeTold(_user, told.Key, askedNs);
                }
            }
        }
        catch (KahunaCanceledException)
        {
            // It was long enough.
        }
        catch (KahunaException error) when (error.Code is not KahunaErrorCode.InvalidArgument)
        {
            // It may not watch, or no node has begun the watch in time.
        }
    }

    private async Task RunAsync()
    {
        try
        {
            while (!_cluster.LoadEnds)
            {
                await _cluster.PauseAsync(_random.Exponential(100));
                await (!_user.IsUnary && _random.Chance(0.2) ? TransactAsync() : CallAsync());
            }
        }
        catch (Exception error)
        {
            _cluster.Rules.Break("the client answers as it says", error.ToString());
        }

        IsRunning = false;
    }

    private async Task CallAsync()
    {
        Call call = _cluster.History.Begin(Draw(), _cluster.Scheduler);
        string? words = null;
        int? node = _user.IsUnary ? _random.Between(1, _cluster.Config.Nodes) : null;
        try
        {
            if (node is { } at)
            {
                await _unary.RunAsync(call, at, isNumbered: false, CancellationToken.None);
            }
            else
            {
                await SdkCall.RunAsync(_client.KeyValues, call, CancellationToken.None);
                call.Outcome = CallOutcome.Ok;
            }
        }
        catch (KahunaException error)
        {
            (call.Error, words) = (error.Code.ToString(), error.Message);
            call.Outcome = error.Outcome == OperationOutcome.DidNotHappen ? CallOutcome.Fail : CallOutcome.Unknown;
        }

        _cluster.History.End(call, _cluster.Scheduler);
        Permissions needed = call.Kind switch
        {
            CallKind.Get or CallKind.Exists => Permissions.Read,
            CallKind.Increment => Permissions.Read | Permissions.Write,
            _ => call.OnlyIfAbsent ? Permissions.Read | Permissions.Write : Permissions.Write,
        };
        bool isNumber = call.Error is nameof(KahunaErrorCode.NotAnInteger) or nameof(KahunaErrorCode.Overflow);
        _cluster.Rights.Judge(
            _user, needed, call.Key, call.CallNs, node, EndOf(call.Outcome, call.Error, isNumber), words);
    }

    private static RightsEnd EndOf(CallOutcome outcome, string? error, bool isAnswer) => error switch
    {
        nameof(KahunaErrorCode.PermissionDenied) => RightsEnd.PermissionDenied,
        nameof(KahunaErrorCode.Unauthenticated) => RightsEnd.Unauthenticated,
        _ => outcome == CallOutcome.Ok || isAnswer ? RightsEnd.Done : RightsEnd.Other,
    };

    /// <summary>Rights may change between what it reads and its commit, which is checked once more.</summary>
    private async Task TransactAsync()
    {
        string key = $"{_user.Name}/k{_random.Next(2)}t";
        long sentNs = _cluster.Scheduler.NowNs;
        RightsEnd end = RightsEnd.Other;
        string? words = null;
        try
        {
            await using Transaction transaction = await _client.Transactions.BeginAsync(
                new TransactionOptions { Durability = Durability.Persistent });
            await transaction.GetAsync(key);
            await _cluster.PauseAsync(_random.Exponential(_random.Pick([1, 500, 3_000])));
            await transaction.SetAsync(key, "1");
            sentNs = _cluster.Scheduler.NowNs;
            await transaction.CommitAsync();
            end = RightsEnd.Done;
        }
        catch (KahunaException error)
        {
            end = EndOf(CallOutcome.Fail, error.Code.ToString(), isAnswer: false);
            words = error.Message;
        }

        const Permissions Needed = Permissions.Read | Permissions.Write | Permissions.Transaction;
        _cluster.Rights.Judge(_user, Needed, key, sentNs, null, end, words);
    }

    private Call Draw()
    {
        SimUser whose = _random.Chance(0.15) ? SimUser.All.First(other => other != _user) : _user;
        CallKind kind = _random.Pick(
            [CallKind.Set, CallKind.Set, CallKind.Get, CallKind.Get, CallKind.Exists, CallKind.Delete]);
        string value = string.Create(CultureInfo.InvariantCulture, $"v{_cluster.History.NextValue()}");
        _sets[value] = _cluster.Scheduler.NowNs;
        return new Call
        {
            Process = FirstProcess + (int)_user.Id,
            Key = $"{whose.Name}/{_random.Pick(["k0", "k1", "k1", "j"])}",
            Kind = kind,
            CallNs = _cluster.Scheduler.NowNs,
            Value = kind == CallKind.Set ? value : null,
            OnlyIfAbsent = kind == CallKind.Set && _random.Chance(0.2),
        };
    }
}
