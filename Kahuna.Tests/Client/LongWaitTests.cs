using Kahuna.Client;
using Kahuna.Client.Locks;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Client;

/// <summary>How long a grant is relied on that came after a long wait.</summary>
public sealed class LongWaitTests : IAsyncDisposable
{
    private static readonly TimeSpan s_longLease = TimeSpan.FromSeconds(30);
    private static readonly TimeSpan s_wait = TimeSpan.FromSeconds(60);

    private readonly ManualTime _time = new();
    private readonly FakeCluster _cluster = new();
    private KahunaClient _client = null!;

    private FakeNode Node => _cluster[1];

    public async ValueTask DisposeAsync()
    {
        Task disposing = _client.DisposeAsync().AsTask();
        await Wait.UntilAsync(_time, () => disposing.IsCompleted, stepMs: 100);
    }

    [Theory]
    [InlineData(101)]
    [InlineData(100)]
    [InlineData(99)]
    public async Task A_grant_after_an_hour_in_the_queue_is_never_relied_on_for_too_long_whatever_the_clocks(int rate)
    {
        // For 100 ms of the holder's clock the cluster's counts this many.
        await ConnectAsync();
        long begun = _time.GetTimestamp();
        Task<LockHandle> acquiring = _client.Locks.AcquireAsync("a", s_longLease, TimeSpan.FromHours(2)).AsTask();
        AcquireTests.Reply(Node.Next(), new FakeReply(OutcomeStatus.Queued, 12, Cluster()));
        FakeRequest question = Node.Next();
        for (int i = 0; i < 360; i++)
        {
            _time.Advance(TimeSpan.FromMilliseconds(question.WaitingMs!.Value));
            AcquireTests.Reply(question, AcquireTests.Waiting(Cluster()));
            question = Node.Next();
        }

        long granted = Cluster();
        AcquireTests.Reply(question, AcquireTests.Granted(granted + 30_000, granted));
        LockHandle handle = await acquiring.WaitAsync(Wait.Longest);
        Assert.InRange(_time.GetTimestamp() - begun, 3_590_000, 3_610_000);
        Assert.InRange(handle.Remaining.TotalMilliseconds * rate / 100, 30_000 * 0.94, 30_000);

        long Cluster() => (_time.GetTimestamp() - begun) * rate / 100;
    }

    [Fact]
    public async Task A_grant_that_by_the_clocks_is_still_to_come_began_before_it_was_told_of()
    {
        await ConnectAsync();
        Task<LockHandle> acquiring = _client.Locks.AcquireAsync("a", s_longLease, s_wait).AsTask();
        AcquireTests.Reply(Node.Next(), new FakeReply(OutcomeStatus.Queued, 12, 5_000));

        // Clocks that differ by more than anything that is promised.
        AcquireTests.Reply(Node.Next(), AcquireTests.Granted(endMs: 65_000, nowMs: 35_000));
        Assert.Equal(s_longLease - TimeSpan.FromMilliseconds(800), (await acquiring.WaitAsync(Wait.Longest)).Remaining);
    }

    private async Task ConnectAsync() => _client = await _cluster.ConnectedAsync(options =>
    {
        options.TimeProvider = _time;
        options.RequestTimeout = TimeSpan.FromSeconds(10);
    });
}
