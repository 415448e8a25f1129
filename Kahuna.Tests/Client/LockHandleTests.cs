using Kahuna.Client;
using Kahuna.Client.Locks;
using Kahuna.Tests.Transport;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Client;

/// <summary>What a holder knows of its lease, by a clock that the test moves.</summary>
public sealed class LockHandleTests : IAsyncDisposable
{
    private static readonly TimeSpan s_lease = TimeSpan.FromSeconds(3);
    private static readonly TimeSpan s_requestTimeout = TimeSpan.FromSeconds(10);

    private readonly ManualTime _time = new();
    private readonly FakeCluster _cluster = new();
    private KahunaClient _client = null!;

    private FakeNode Node => _cluster[1];

    public async ValueTask DisposeAsync()
    {
        Task disposing = _client.DisposeAsync().AsTask();
        await Wait.UntilAsync(_time, () => disposing.IsCompleted, stepMs: 100);
    }

    [Fact]
    public async Task A_lease_is_renewed_whenever_a_third_of_it_is_over()
    {
        LockHandle handle = await AcquireAsync(null);
        CancellationToken lost = handle.LostToken;
        for (int i = 1; i <= 10; i++)
        {
            await RenewedAsync(handle, i);
        }

        Assert.False(lost.IsCancellationRequested);
        Assert.All(Node.Received.Where(request => request.Kind == CommandKind.LockExtend), request =>
            Assert.Equal(
                (3000, 7, handle.Owner),
                (request.LeaseMs, request.Token, System.Text.Encoding.UTF8.GetString(request.Value))));
        Assert.True(await Wait.ForAsync(handle.ReleaseAsync()));
        Assert.True(lost.IsCancellationRequested);
        Step(s_lease);
        Assert.Equal(10, Count(CommandKind.LockExtend));
        await handle.DisposeAsync();
        Assert.Equal(1, Count(CommandKind.LockRelease));
    }

    [Fact]
    public async Task A_holder_that_is_cut_off_is_told_before_its_lease_can_be_over()
    {
        LockHandle handle = await AcquireAsync(null);
        Node.Answer = static _ => null;
        CancellationToken lost = handle.LostToken;
        for (int i = 0; i < 269; i++)
        {
            Step(TimeSpan.FromMilliseconds(10));

            // The clock waits for the first attempt, and goes slowly while the second one is due.
            if (i == 105)
            {
                await Wait.UntilAsync(() => Count(CommandKind.LockExtend) == 1);
            }

            await Task.Delay(i > 200 && Count(CommandKind.LockExtend) < 2 ? 50 : 1);
        }

        Assert.False(lost.IsCancellationRequested);
        Assert.InRange(handle.Remaining, TimeSpan.FromMilliseconds(1), TimeSpan.FromMilliseconds(10));
        Step(TimeSpan.FromMilliseconds(20));
        Assert.True(lost.IsCancellationRequested);
        Assert.Equal(TimeSpan.Zero, handle.Remaining);
        Assert.False(await handle.ExtendAsync());

        // Each attempt ends early enough for another one.
        Assert.Equal(2, Count(CommandKind.LockExtend));
    }

    [Fact]
    public async Task A_lost_connection_is_no_lost_lock()
    {
        LockHandle handle = await AcquireAsync(null);
        Node.Break();
        Node.IsDown = true;
        Step(TimeSpan.FromSeconds(2));
        Node.IsDown = false;
        await AdvanceUntilAsync(() => handle.Remaining > TimeSpan.FromMilliseconds(1500));
        Assert.False(handle.LostToken.IsCancellationRequested);
        Node.Break();
        Task disposing = handle.DisposeAsync().AsTask();
        await AdvanceUntilAsync(() => disposing.IsCompleted);
        Assert.Equal(1, Count(CommandKind.LockRelease));
    }

    [Fact]
    public async Task A_holder_whom_the_cluster_refuses_is_told_at_once()
    {
        LockHandle handle = await AcquireAsync(null);
        Node.Answer = static _ => new FakeReply(OutcomeStatus.ConditionFailed, 9);
        CancellationToken lost = handle.LostToken;
        int told = 0;
        lost.Register(() => Interlocked.Increment(ref told));
        await AdvanceUntilAsync(() => told == 1);
        Assert.InRange(_time.GetTimestamp(), 0, 1_000_000 + 2000);
        Step(s_lease);
        Assert.Equal(1, Count(CommandKind.LockExtend));
        Assert.False(await Wait.ForAsync(handle.ReleaseAsync()));
    }

    [Fact]
    public async Task Who_stood_still_knows_it_at_the_first_look()
    {
        LockHandle handle = await AcquireAsync(null);
        LockHandle other = await Wait.ForAsync(_client.Locks.AcquireAsync("b", s_lease, s_lease));
        CancellationToken lost = handle.LostToken;
        _time.Jump(TimeSpan.FromMilliseconds(2695));
        Assert.True(handle.Remaining > TimeSpan.Zero);
        _time.Jump(TimeSpan.FromMilliseconds(10));
        Assert.Equal(TimeSpan.Zero, handle.Remaining);
        Assert.True(lost.IsCancellationRequested);
        Assert.True(other.LostToken.IsCancellationRequested);
        Step(s_lease);
        Assert.Equal(0, Count(CommandKind.LockExtend));
    }

    [Fact]
    public async Task Renewal_ends_where_it_was_asked_to()
    {
        LockHandle handle = await AcquireAsync(new LockOptions { RenewFor = TimeSpan.FromSeconds(5) });
        CancellationToken lost = handle.LostToken;
        long begun = _time.GetTimestamp();
        long ended = 0;
        await AdvanceUntilAsync(() => (ended = lost.IsCancellationRequested ? _time.GetTimestamp() : 0) != 0);
        Assert.InRange(ended - begun, 4600, 5000);
        Assert.InRange(Count(CommandKind.LockExtend), 2, 6);
        Assert.InRange(Node.Received.Last(request => request.Kind == CommandKind.LockExtend).LeaseMs, 1, 2999);
        GC.KeepAlive(handle);
    }

    [Fact]
    public async Task Renewal_goes_on_after_a_longer_extension_that_overlaps_a_lost_renewal()
    {
        LockHandle handle = await AcquireAsync(null);
        CancellationToken lost = handle.LostToken;
        int renewals = 0;
        Node.Answer = request => request.LeaseMs == 3_000 && ++renewals == 1
            ? null
            : new FakeReply(OutcomeStatus.Applied, 7, 50_000 + request.LeaseMs);
        await Wait.UntilAsync(_time, () => renewals == 1, stepMs: 50);
        Assert.True(await Wait.ForAsync(handle.ExtendAsync(TimeSpan.FromSeconds(10))));
        await Wait.UntilAsync(_time, () => renewals >= 3, stepMs: 50);
        Assert.False(lost.IsCancellationRequested);
        Assert.True(handle.Remaining > TimeSpan.FromSeconds(2));
    }

    [Fact]
    public async Task Renewing_for_as_long_as_there_are_numbers_is_renewing_always()
    {
        LockHandle handle = await AcquireAsync(new LockOptions { RenewFor = TimeSpan.MaxValue });
        await AdvanceUntilAsync(() => Count(CommandKind.LockExtend) == 3);
        Assert.False(handle.LostToken.IsCancellationRequested);
    }

    [Fact]
    public async Task Without_renewal_nothing_is_sent()
    {
        LockHandle handle = await AcquireAsync(new LockOptions { AutoRenew = false });
        CancellationToken lost = handle.LostToken;
        Step(TimeSpan.FromMilliseconds(1500));
        Assert.True(await Wait.ForAsync(handle.ExtendAsync(TimeSpan.FromSeconds(20))));
        Assert.InRange(handle.Remaining, TimeSpan.FromSeconds(19), TimeSpan.FromSeconds(20));
        Step(TimeSpan.FromSeconds(19));
        Assert.False(lost.IsCancellationRequested);
        Step(TimeSpan.FromSeconds(1));
        Assert.True(lost.IsCancellationRequested);
        Assert.Equal(1, Count(CommandKind.LockExtend));
    }

    [Fact]
    public async Task A_disposed_client_tells_its_holders()
    {
        LockHandle handle = await AcquireAsync(null);
        CancellationToken lost = handle.LostToken;
        await _client.DisposeAsync();
        Assert.True(lost.IsCancellationRequested);
        await handle.DisposeAsync();
        await Assert.ThrowsAsync<ObjectDisposedException>(() => _client.Locks.TryAcquireAsync("a", s_lease).AsTask());
    }

    [Fact]
    public async Task Disposing_never_throws_and_ends_in_time()
    {
        LockHandle handle = await AcquireAsync(null);
        Node.Answer = static _ => null;
        Task disposing = handle.DisposeAsync().AsTask();
        Step(TimeSpan.FromSeconds(9));
        Assert.False(disposing.IsCompleted);
        await AdvanceUntilAsync(() => disposing.IsCompleted);
        await disposing;
    }

    [Fact]
    public async Task A_holder_whose_clock_is_one_percent_slow_is_told_in_time_at_every_lease()
    {
        await ConnectAsync();
        for (int leaseMs = 20; leaseMs <= 3_600_000; leaseMs += 1 + (leaseMs / 7))
        {
            LockHandle handle = await Wait.ForAsync(_client.Locks.AcquireAsync(
                "a", TimeSpan.FromMilliseconds(leaseMs), s_lease, new LockOptions { AutoRenew = false }));

            // The cluster's clock shows 1.01 s for each second of the holder's.
            Assert.InRange(handle.Remaining.TotalMilliseconds * 1.01, 0, leaseMs);
            Assert.True(handle.Remaining.TotalMilliseconds >= leaseMs * 0.9 - 1);
            await handle.DisposeAsync();
        }
    }

    [Fact]
    public async Task Handles_of_one_owner_lose_a_grant_together_before_it_is_given_back()
    {
        LockOptions owner = new() { ReentrantOwner = "o" };
        LockHandle first = await AcquireAsync(owner);
        LockHandle second = await Wait.ForAsync(_client.Locks.AcquireAsync("a", s_lease, s_lease, owner));
        LockHandle stranger = await Wait.ForAsync(
            _client.Locks.AcquireAsync("a", s_lease, s_lease, new LockOptions { ReentrantOwner = "p" }));
        CancellationToken lost = second.LostToken;
        int told = 0;
        Node.Answer = request =>
        {
            told = request.Kind == CommandKind.LockRelease && lost.IsCancellationRequested ? 1 : 2;
            return FakeReply.Applied(7);
        };
        Assert.True(await Wait.ForAsync(first.ReleaseAsync()));
        Assert.Equal((1, TimeSpan.Zero, false), (told, second.Remaining, stranger.LostToken.IsCancellationRequested));

        Assert.True(await Wait.ForAsync(_client.Locks.ReleaseAsync("a", "p", new FencingToken(7))));
        Assert.True(stranger.LostToken.IsCancellationRequested);
    }

    [Fact]
    public async Task Handles_of_one_owner_hear_together_that_the_cluster_has_given_their_grant_to_others()
    {
        LockOptions owner = new() { ReentrantOwner = "o" };
        LockHandle first = await AcquireAsync(owner);
        LockHandle second = await Wait.ForAsync(_client.Locks.AcquireAsync("a", s_lease, s_lease, owner));
        CancellationToken lost = second.LostToken;
        Node.Answer = static _ => new FakeReply(OutcomeStatus.ConditionFailed, 9);
        Assert.False(await Wait.ForAsync(first.ExtendAsync()));
        Assert.True(lost.IsCancellationRequested);
    }

    [Fact]
    public async Task A_handle_that_is_forgotten_is_renewed_no_more_and_who_watches_its_token_is_told()
    {
        LogRecorder log = new();
        await ConnectAsync(log);
        long begun = _time.GetTimestamp();
        (CancellationToken lost, WeakReference handle) = await ForgetAsync();

        // Frames of the call may still be on the stack of this thread or another one, and the handle with them.
        await Wait.UntilAsync(() =>
        {
            Collect();
            return !handle.IsAlive;
        });
        await AdvanceUntilAsync(() => lost.IsCancellationRequested);
        Assert.Equal(0, Count(CommandKind.LockExtend));
        Assert.InRange(_time.GetTimestamp() - begun, 2_700, 2_999);
        Assert.Contains(
            "\"a\" (token 7) was neither disposed nor kept",
            Assert.Single(log.Lines, static line => line.Contains("disposed", StringComparison.Ordinal)),
            StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_handle_that_is_kept_is_renewed_whatever_the_collector_does()
    {
        LockHandle handle = await AcquireAsync(null);
        for (int i = 1; i <= 3; i++)
        {
            Collect();
            await RenewedAsync(handle, i);
        }

        GC.KeepAlive(handle);
    }

    [Fact]
    public async Task Each_of_many_leases_ends_at_its_time()
    {
        await ConnectAsync();
        Random random = new(5);
        List<(LockHandle Handle, CancellationToken Lost, long EndMs)> held = [];
        for (int i = 0; i < 500; i++)
        {
            int leaseMs = random.Next(1_000, 60_000);
            long now = _time.GetTimestamp();
            LockHandle handle = await Wait.ForAsync(_client.Locks.AcquireAsync(
                $"l{i}", TimeSpan.FromMilliseconds(leaseMs), s_lease, new LockOptions { AutoRenew = false }));
            held.Add((handle, handle.LostToken, now + leaseMs - Math.Min(leaseMs / 10, 500 + (leaseMs / 100))));
            if (random.Next(3) == 0)
            {
                int given = random.Next(held.Count);
                await held[given].Handle.DisposeAsync();
                held.RemoveAt(given);
            }
        }

        for (int i = 0; i < 650; i++)
        {
            Step(TimeSpan.FromMilliseconds(100));
            long now = _time.GetTimestamp();
            Assert.All(held, item =>
                Assert.True(item.Lost.IsCancellationRequested ? now >= item.EndMs : now < item.EndMs + 20));
        }

        Assert.All(held, item => Assert.True(item.Lost.IsCancellationRequested));
    }

    [System.Runtime.CompilerServices.MethodImpl(System.Runtime.CompilerServices.MethodImplOptions.NoInlining)]
    private async Task<(CancellationToken Lost, WeakReference Handle)> ForgetAsync()
    {
        LockHandle handle = await Wait.ForAsync(_client.Locks.AcquireAsync("a", s_lease, s_lease));
        return (handle.LostToken, new WeakReference(handle));
    }

    private static void Collect()
    {
        GC.Collect();
        GC.WaitForPendingFinalizers();
        GC.Collect();
    }

    private async Task ConnectAsync(ILoggerFactory? loggers = null)
    {
        Node.Answer = request => new FakeReply(OutcomeStatus.Applied, 7, 50_000 + request.LeaseMs);
        _cluster.Loggers = loggers ?? NullLoggerFactory.Instance;
        _client = await _cluster.ConnectedAsync(_time, s_requestTimeout);
    }

    private async Task<LockHandle> AcquireAsync(LockOptions? options)
    {
        await ConnectAsync();
        LockHandle handle = await Wait.ForAsync(_client.Locks.AcquireAsync("a", s_lease, s_lease, options));
        Assert.Equal(
            ("a", 7, new Fence("a", new FencingToken(7))), (handle.Resource, handle.Token.Value, handle.Fence));
        Assert.Equal(TimeSpan.FromMilliseconds(2700), handle.Remaining);
        return handle;
    }

    private int Count(CommandKind kind) => Node.Received.Count(request => request.Kind == kind);

    /// <summary>
    /// Moves the clock past the moment at which a third of the lease is over, and there waits for the renewal, the
    /// <paramref name="number"/>th, and its answer.
    /// </summary>
    private async Task RenewedAsync(LockHandle handle, int number)
    {
        TimeSpan third = handle.Remaining - (TimeSpan.FromMilliseconds(2700) - (s_lease / 3));
        TimeSpan around = TimeSpan.FromMilliseconds(10);

        // The answer of the renewal before counts a moment earlier than the alarm for the next one is set.
        await Wait.UntilAsync(() => _time.HasTimer(third - around, third + around));
        Step(third - around);
        Assert.Equal(number - 1, Count(CommandKind.LockExtend));
        Step(2 * around);
        await Wait.UntilAsync(
            () => Count(CommandKind.LockExtend) == number && handle.Remaining > TimeSpan.FromMilliseconds(2600));
    }

    private void Step(TimeSpan span) => _time.Advance(span);

    private Task AdvanceUntilAsync(Func<bool> condition) => Wait.UntilAsync(_time, condition);
}
