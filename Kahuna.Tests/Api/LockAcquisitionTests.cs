using Grpc.Core;
using Kahuna.Server.Api;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Client;
using Kahuna.Tests.State.Locks;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Protos = Kahuna.Server.Api.Protos;

namespace Kahuna.Tests.Api;

/// <summary>
/// How a unary call reckons leases and what becomes of its claim, against the shipped state of locks, on a clock that
/// the test moves, with answers that are held up on their way.
/// </summary>
public sealed class LockAcquisitionTests
{
    private readonly ManualTime _time = new();
    private readonly LockDriver _state = new();
    private readonly CancellationTokenSource _caller = new();
    private readonly CancellationTokenSource _stopping = new();
    private readonly List<CommandKind> _asked = [];

    // What happens between a command's being carried out and the arrival of its answer, once.
    private Action<CommandKind>? _onTheWay;
    private bool _isClusterStill;
    private (long AtMs, (string Owner, long Token, long LeftMs)? Held) _atEnd;
    private Func<CommandKind, RpcException?> _fails = _ => null;

    [Fact]
    public async Task A_grant_counts_from_the_moment_at_which_it_was_asked_for()
    {
        _onTheWay = Once(CommandKind.LockAcquire, () => Pass(2_000));
        AcquireLockResponse granted = await Start("ann", leaseMs: 10_000);
        Assert.True(granted.Granted);
        Assert.Equal((7_999L, 9_999L), (granted.RemainingLeaseMs, granted.LeaseMsFromCall));
    }

    [Fact]
    public async Task A_grant_that_was_held_up_is_renewed_before_it_is_passed_on()
    {
        _onTheWay = Once(CommandKind.LockAcquire, () => Pass(9_000));
        AcquireLockResponse granted = await Start("ann", leaseMs: 10_000);
        Assert.Equal([CommandKind.LockAcquire, CommandKind.LockExtend], _asked);
        Assert.Equal((9_999L, 18_999L), (granted.RemainingLeaseMs, granted.LeaseMsFromCall));
        Assert.Equal(10_000, _state.Get("l")!.Value.Holders.Single().LeftMs);
    }

    [Fact]
    public async Task A_grant_whose_lease_was_over_on_its_way_is_none()
    {
        _onTheWay = Once(CommandKind.LockAcquire, () =>
        {
            Pass(10_000);
            Assert.True(Acquire("bob"));
        });
        AcquireLockResponse late = await Start("ann", leaseMs: 10_000);
        Assert.False(late.Granted);
        Assert.Equal((0L, _state.Get("l")!.Value.Holders.Single().Token), (late.Token, late.HolderToken));
        Assert.Equal("bob", _state.Get("l")!.Value.Holders.Single().Owner);
    }

    [Fact]
    public async Task A_grant_that_was_waited_for_and_lost_on_its_way_is_waited_for_again()
    {
        long first = Token("first");
        Task<AcquireLockResponse> waiting = Start("ann", leaseMs: 10_000, waitMs: 60_000);
        Run(() => _asked.Contains(CommandKind.LockAwait));
        _onTheWay = Once(CommandKind.LockAwait, () =>
        {
            Pass(10_000);
            Assert.True(Acquire("bob", leaseMs: 5_000));
        });
        _state.Release("l", "first", first);
        Run(() => waiting.IsCompleted);
        AcquireLockResponse granted = await waiting;
        Assert.True(granted.Granted);
        Assert.Equal(granted.Token, _state.Get("l")!.Value.Holders.Single().Token);
        Assert.True(granted.RemainingLeaseMs <= _state.Get("l")!.Value.Holders.Single().LeftMs);
        Assert.Contains(CommandKind.LockExtend, _asked);
        Assert.Equal(2, _asked.Count(kind => kind == CommandKind.LockAcquire));
    }

    [Fact]
    public async Task What_is_left_is_never_more_than_the_state_says_however_answers_are_held_up()
    {
        for (int seed = 1; seed <= 200; seed++)
        {
            LockAcquisitionTests run = new();
            await run.HeldUpAsync(new Random(seed), $"seed {seed}");
        }
    }

    [Fact]
    public async Task A_wait_that_is_over_leaves_nothing_behind()
    {
        long first = Token("first");
        AcquireLockResponse over = await Finish(Start("ann", leaseMs: 10_000, waitMs: 3_000));
        Assert.Equal(new AcquireLockResponse { HolderToken = first }, over);
        Assert.Equal(0, _state.Get("l")!.Value.Waiters);
    }

    [Fact]
    public async Task A_wait_is_ended_from_here_when_cluster_time_stands_still()
    {
        long first = Token("first");
        _isClusterStill = true;
        Assert.Equal(
            new AcquireLockResponse { HolderToken = first },
            await Finish(Start("ann", leaseMs: 10_000, waitMs: 3_000)));
        Assert.Equal(0, _state.Get("l")!.Value.Waiters);
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task A_caller_who_goes_away_leaves_the_queue(bool isAsked)
    {
        Token("first");
        if (!isAsked)
        {
            _onTheWay = Once(CommandKind.LockAcquire, _caller.Cancel);
        }

        Task<AcquireLockResponse> waiting = Start("ann", leaseMs: 10_000, waitMs: 60_000);
        if (isAsked)
        {
            Run(() => _asked.Contains(CommandKind.LockAwait));
            _caller.Cancel();
        }

        RpcException error = await Assert.ThrowsAsync<RpcException>(() => waiting);
        Assert.Equal(
            (StatusCode.DeadlineExceeded, "unknown"), (error.StatusCode, error.Trailers.GetValue("kahuna-outcome")));
        Assert.Equal(0, _state.Get("l")!.Value.Waiters);
    }

    [Fact]
    public async Task A_caller_who_goes_away_takes_nothing_from_an_owner_that_has_asked_again()
    {
        long first = Token("first");
        Task<AcquireLockResponse> waiting = Start("ann", leaseMs: 10_000, waitMs: 60_000);
        Run(() => _asked.Contains(CommandKind.LockAwait));
        _state.Release("l", "first", first);
        Assert.True(Acquire("ann"));
        _caller.Cancel();
        await Assert.ThrowsAsync<RpcException>(() => waiting);
        Assert.Equal("ann", _state.Get("l")!.Value.Holders.Single().Owner);
    }

    [Fact]
    public async Task When_the_node_stops_the_claim_stays()
    {
        Token("first");
        Task<AcquireLockResponse> waiting = Start("ann", leaseMs: 10_000, waitMs: 60_000);
        Run(() => _asked.Contains(CommandKind.LockAwait));
        _stopping.Cancel();
        RpcException error = await Assert.ThrowsAsync<RpcException>(() => waiting);
        Assert.Equal(
            (StatusCode.Unavailable, "unknown"), (error.StatusCode, error.Trailers.GetValue("kahuna-outcome")));
        Assert.Equal(1, _state.Get("l")!.Value.Waiters);
        Assert.DoesNotContain(CommandKind.LockRelease, _asked);
    }

    [Fact]
    public async Task Waiting_goes_on_while_nobody_can_be_asked()
    {
        long first = Token("first");
        int failures = 5;
        _fails = kind => kind == CommandKind.LockAwait && failures-- > 0
            ? OutcomeErrors.ToException(OutcomeStatus.Unavailable, "No leader.")
            : null;
        Task<AcquireLockResponse> waiting = Start("ann", leaseMs: 10_000, waitMs: 60_000);
        Run(() => failures <= 0);
        _state.Release("l", "first", first);
        Assert.True((await Finish(waiting)).Granted);
    }

    /// <summary>Draws a lease, a wait, a release, and how long each answer is on its way.</summary>
    private async Task HeldUpAsync(Random random, string seed)
    {
        long first = Token("first");
        long leaseMs = random.Next(200, 20_000);
        _onTheWay = _ => Pass(random.Next(3) == 0 ? random.Next(12_000) : random.Next(20));
        long beganMs = _time.GetTimestamp();
        Task<AcquireLockResponse> waiting = Start("ann", leaseMs, waitMs: random.Next(1_000, 80_000));
        int until = random.Next(40_000);
        Run(() => waiting.IsCompleted || _time.GetTimestamp() - beganMs > until);
        _state.Release("l", "first", first);
        AcquireLockResponse granted = await Finish(waiting);
        if (granted.Granted)
        {
            (string owner, long token, long leftMs) = _atEnd.Held!.Value;
            Assert.True((owner, token) == ("ann", granted.Token), seed);
            Assert.True(granted.RemainingLeaseMs >= 1 && granted.RemainingLeaseMs <= leftMs, seed);
            Assert.True(beganMs + granted.LeaseMsFromCall <= _atEnd.AtMs + leftMs, seed);
        }
    }

    private Task<AcquireLockResponse> Start(string owner, long leaseMs, long? waitMs = null)
    {
        // Without a context everything goes on where the clock is moved or a token cancelled: on the thread of the
        // test.
        SynchronizationContext.SetSynchronizationContext(null);
        return RunAsync(
            LockCommandBuilder.Of(UnaryLocks.Request("l", Protos.Durability.Persistent, owner, leaseMs, waitMs)));
    }

    private async Task<AcquireLockResponse> RunAsync(LockCommandBuilder commands)
    {
        LockAcquisition acquisition = new(
            new LockExecutor(ExecuteAsync, _time), commands, isNumbered: false, null, _caller.Token, _stopping.Token);
        AcquireLockResponse answer = await acquisition.RunAsync(LockExecutor.Encode(commands.Acquire(commands.WaitMs)));
        TellCluster();
        _atEnd = (_time.GetTimestamp(), _state.Get("l")?.Holders.SingleOrDefault());
        return answer;
    }

    private async Task<AcquireLockResponse> Finish(Task<AcquireLockResponse> waiting)
    {
        Run(() => waiting.IsCompleted);
        return await waiting;
    }

    /// <summary>
    /// The leader: carries out at once, and never holds back; its answer takes as long as the test says.
    /// </summary>
    private Task<byte[]> ExecuteAsync(ByteBuffer buffer, TimeSpan? timeLeft, CancellationToken ct)
    {
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        CommandKind kind = (CommandKind)bytes[0];
        _asked.Add(kind);
        if (_fails(kind) is { } failure)
        {
            return Task.FromException<byte[]>(failure);
        }

        if (ct.IsCancellationRequested)
        {
            return Task.FromException<byte[]>(
                OutcomeErrors.Build(StatusCode.DeadlineExceeded, "Over.", OutcomeErrors.Unknown));
        }

        TellCluster();
        byte[] outcome = _state.DoRaw(bytes);
        _onTheWay?.Invoke(kind);
        return Task.FromResult(outcome);
    }

    private static Action<CommandKind> Once(CommandKind kind, Action action)
    {
        bool isDone = false;
        return asked =>
        {
            if (asked == kind && !isDone)
            {
                isDone = true;
                action();
            }
        };
    }

    /// <summary>Time passes for this node and the cluster alike, and the leader ends what is over.</summary>
    private void Pass(long ms)
    {
        _time.Advance(TimeSpan.FromMilliseconds(ms));
        TellCluster();
        _state.Sweep();
    }

    private void TellCluster() => _state.Now = _isClusterStill ? _state.Now : _time.GetTimestamp() - 900_000;

    private void Run(Func<bool> isDone)
    {
        for (int i = 0; i < 20_000 && !isDone(); i++)
        {
            Pass(10);
        }

        Assert.True(isDone());
    }

    private long Token(string owner)
    {
        TellCluster();
        return _state.Acquire("l", owner, leaseMs: 3_000_000).Revision;
    }

    private bool Acquire(string owner, long leaseMs = 30_000) =>
        _state.Acquire("l", owner, leaseMs).Status == OutcomeStatus.Applied;
}
