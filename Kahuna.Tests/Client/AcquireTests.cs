using System.Buffers.Binary;
using Kahuna.Client;
using Kahuna.Client.Locks;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Client;

/// <summary>The way to a grant, request by request.</summary>
public sealed class AcquireTests : IAsyncDisposable
{
    private static readonly TimeSpan s_lease = TimeSpan.FromSeconds(3);

    /// <summary>Long enough that a question may be held back for as long as any.</summary>
    private static readonly TimeSpan s_longLease = TimeSpan.FromSeconds(30);

    private static readonly TimeSpan s_wait = TimeSpan.FromSeconds(60);

    private readonly ManualTime _time = new();
    private FakeCluster _cluster = new();
    private KahunaClient _client = null!;

    private FakeNode Node => _cluster[1];

    public async ValueTask DisposeAsync()
    {
        Task disposing = _client.DisposeAsync().AsTask();
        await Wait.UntilAsync(_time, () => disposing.IsCompleted, stepMs: 100);
    }

    [Fact]
    public async Task A_waiter_asks_until_it_is_granted_and_counts_the_lease_from_what_it_has_heard()
    {
        await ConnectAsync();
        Task<LockHandle> acquiring = _client.Locks.AcquireAsync("a", s_longLease, s_wait).AsTask();
        FakeRequest acquire = Node.Next();
        Assert.Equal((CommandKind.LockAcquire, 30_000, 60_000), (acquire.Kind, acquire.LeaseMs, acquire.WaitingMs));

        // The request took 100 ms, and the cluster's clock showed 5,000 then.
        _time.Advance(TimeSpan.FromMilliseconds(100));
        Reply(acquire, new FakeReply(OutcomeStatus.Queued, 12, 5_000));
        FakeRequest first = Node.Next();
        Assert.Equal((CommandKind.LockAwait, 12, 10_000), (first.Kind, first.Token, first.WaitingMs));
        _time.Advance(TimeSpan.FromMilliseconds(10_000));
        Reply(first, Waiting(15_010));
        FakeRequest second = Node.Next();
        long now = _time.GetTimestamp();
        _time.Advance(TimeSpan.FromMilliseconds(400));
        Reply(second, Granted(endMs: 45_400, nowMs: 15_400));
        LockHandle handle = await acquiring.WaitAsync(Wait.Longest);

        // 5,000 was not before the acquire was sent, 10,100 ms ago; 15,010 not before the first question, 10,000 ms
        // before the second one; 15,400 not before the second one. Of the grant, at 15,400, the first says most, less
        // what clocks may differ by.
        Assert.Equal(12, handle.Token.Value);
        Assert.Equal(
            now - 10_100 + ((15_400 - 5_000) * 0.99) + 30_000 - 800 - _time.GetTimestamp(),
            handle.Remaining.TotalMilliseconds);
    }

    [Fact]
    public async Task A_question_is_held_back_for_a_third_of_the_lease_at_most()
    {
        await ConnectAsync();
        _ = _client.Locks.AcquireAsync("a", s_lease, s_wait).AsTask();
        Reply(Node.Next(), new FakeReply(OutcomeStatus.Queued, 12, 0));
        Assert.Equal((long)s_lease.TotalMilliseconds / 3, Node.Next().WaitingMs);
    }

    [Fact]
    public async Task A_wait_is_never_held_longer_than_it_lasts()
    {
        await ConnectAsync();
        Task<LockHandle> acquiring = _client.Locks.AcquireAsync("a", s_longLease, TimeSpan.FromSeconds(12)).AsTask();
        Reply(Node.Next(), new FakeReply(OutcomeStatus.Queued, 12, 0));
        FakeRequest first = Node.Next();
        _time.Advance(TimeSpan.FromSeconds(10));
        Reply(first, Waiting(10_000));
        FakeRequest second = Node.Next();
        Assert.Equal(2_000, second.WaitingMs);
        _time.Advance(TimeSpan.FromSeconds(2));
        Reply(second, Waiting(12_000));
        await FailsAsync(acquiring, KahunaErrorCode.LockBusy, OperationOutcome.DidNotHappen);
        FakeRequest release = Node.Next();
        Assert.Equal((CommandKind.LockRelease, 12), (release.Kind, release.Token));
    }

    [Fact]
    public async Task A_claim_that_was_given_up_is_made_again()
    {
        await ConnectAsync();
        Task<LockHandle> acquiring = _client.Locks.AcquireAsync("a", s_lease, s_wait).AsTask();
        FakeRequest acquire = Node.Next();
        Reply(acquire, new FakeReply(OutcomeStatus.Queued, 12, 0));
        _time.Advance(TimeSpan.FromSeconds(5));
        Reply(Node.Next(), new FakeReply(OutcomeStatus.NotFound));
        FakeRequest again = Node.Next();
        Assert.Equal((CommandKind.LockAcquire, 55_000), (again.Kind, again.WaitingMs));
        Assert.Equal(acquire.Value, again.Value);
        Reply(again, new FakeReply(OutcomeStatus.Applied, 13, 60_000));
        Assert.Equal(13, (await acquiring.WaitAsync(Wait.Longest)).Token.Value);
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task A_grant_that_comes_late_is_renewed_or_dropped(bool isStillHeld)
    {
        await ConnectAsync();
        Task<LockHandle> acquiring = _client.Locks.AcquireAsync("a", s_lease, s_wait).AsTask();
        FakeRequest acquire = Node.Next();
        _time.Advance(TimeSpan.FromSeconds(4));
        Reply(acquire, new FakeReply(OutcomeStatus.Applied, 12, 3_000));
        FakeRequest extend = Node.Next();
        Assert.Equal((CommandKind.LockExtend, 12), (extend.Kind, extend.Token));
        Assert.False(acquiring.IsCompleted);
        if (isStillHeld)
        {
            _time.Advance(TimeSpan.FromMilliseconds(100));
            Reply(extend, new FakeReply(OutcomeStatus.Applied, 12, 9_000));
            LockHandle handle = await acquiring.WaitAsync(Wait.Longest);
            Assert.Equal(2_600, handle.Remaining.TotalMilliseconds);
            return;
        }

        Reply(extend, new FakeReply(OutcomeStatus.ConditionFailed, 20));
        FakeRequest again = Node.Next();
        Assert.Equal((CommandKind.LockAcquire, 56_000), (again.Kind, again.WaitingMs));
        Reply(again, new FakeReply(OutcomeStatus.Applied, 21, 9_000));
        Assert.Equal(21, (await acquiring.WaitAsync(Wait.Longest)).Token.Value);
    }

    [Fact]
    public async Task A_lease_that_is_shorter_than_the_way_is_refused_in_the_end()
    {
        await ConnectAsync();
        Task<LockHandle?> trying = _client.Locks.TryAcquireAsync("a", TimeSpan.FromMilliseconds(50)).AsTask();
        for (int i = 0; i < 6; i++)
        {
            FakeRequest request = Node.Next();
            Assert.Equal(i % 2 == 0 ? CommandKind.LockAcquire : CommandKind.LockExtend, request.Kind);
            _time.Advance(TimeSpan.FromMilliseconds(100));
            Reply(request, new FakeReply(OutcomeStatus.Applied, 12, 50));
        }

        await FailsAsync(trying, KahunaErrorCode.LockLost, OperationOutcome.DidNotHappen);
        FakeRequest release = Node.Next();
        Assert.Equal((CommandKind.LockRelease, 12), (release.Kind, release.Token));
    }

    [Theory]
    [InlineData(OutcomeStatus.Applied, false, true)]
    [InlineData(OutcomeStatus.Queued, false, true)]
    [InlineData(OutcomeStatus.Queued, true, true)]

    // Other handles of this owner may rely on it.
    [InlineData(OutcomeStatus.Applied, true, false)]
    public async Task What_a_cancelled_call_gets_is_given_back(object status, bool isNamed, bool isReleased)
    {
        await ConnectAsync();
        using CancellationTokenSource cancel = new();
        LockOptions options = new() { ReentrantOwner = isNamed ? "o" : null };
        Task<LockHandle> acquiring = _client.Locks.AcquireAsync("a", s_lease, s_wait, options, cancel.Token).AsTask();
        FakeRequest acquire = Node.Next();
        await cancel.CancelAsync();
        KahunaCanceledException canceled = await Assert.ThrowsAsync<KahunaCanceledException>(
            () => acquiring.WaitAsync(Wait.Longest));
        Assert.Equal((OperationOutcome.Unknown, cancel.Token), (canceled.Outcome, canceled.CancellationToken));

        // The same owner comes behind that.
        Task<LockHandle> next = _client.Locks.AcquireAsync("a", s_lease, s_wait, options).AsTask();
        FakeRequest? other = isNamed ? null : Node.Next();
        Assert.Empty(Node.Held);
        Reply(acquire, new FakeReply((OutcomeStatus)status, 12, 3_000));
        if (isReleased)
        {
            FakeRequest release = Node.Next();
            Assert.Equal((CommandKind.LockRelease, 12), (release.Kind, release.Token));
            Assert.Empty(Node.Held);
            Reply(release, FakeReply.Applied(12));
        }

        other ??= Node.Next();
        Assert.Equal(CommandKind.LockAcquire, other.Kind);
        Reply(other, new FakeReply(OutcomeStatus.Applied, 14, 3_000));
        Assert.Equal(14, (await next.WaitAsync(Wait.Longest)).Token.Value);
    }

    [Fact]
    public async Task What_is_not_answered_is_looked_for_and_given_back()
    {
        await ConnectAsync();
        Task<LockHandle?> trying = _client.Locks.TryAcquireAsync("a", s_lease).AsTask();
        FakeRequest lost = Node.Next();
        await Wait.UntilAsync(_time, () => trying.IsCompleted);
        await FailsAsync(trying, KahunaErrorCode.DeadlineExceeded, OperationOutcome.Unknown);
        FakeRequest again = Node.Next();
        Assert.Equal((CommandKind.LockAcquire, 1, 1), (again.Kind, again.LeaseMs, again.WaitingMs));
        Assert.Equal(lost.Value, again.Value);
        Reply(again, new FakeReply(OutcomeStatus.Applied, 12, 3_000));
        FakeRequest release = Node.Next();
        Assert.Equal((CommandKind.LockRelease, 12), (release.Kind, release.Token));
    }

    [Fact]
    public async Task A_question_may_take_as_long_as_it_is_held_back_and_as_other_operations()
    {
        await ConnectAsync();
        Task<LockHandle> acquiring = _client.Locks.AcquireAsync("a", s_longLease, s_wait).AsTask();
        Reply(Node.Next(), new FakeReply(OutcomeStatus.Queued, 12, 0));
        FakeRequest question = Node.Next();
        Assert.Equal(20_000u, question.WaitMs);
        _time.Advance(TimeSpan.FromMilliseconds(19_900));
        Assert.Empty(Node.Held);

        // Nobody has answered: it is asked again while the caller waits, and the claim is given back when that is over.
        await Wait.UntilAsync(_time, () => Node.Held.Count == 1);
        FakeRequest again = Node.Next();
        Assert.Equal((CommandKind.LockAwait, 12, 10_000), (again.Kind, again.Token, again.WaitingMs));
        await Wait.UntilAsync(_time, () => acquiring.IsCompleted, stepMs: 100);
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => acquiring);
        Assert.Equal((KahunaErrorCode.DeadlineExceeded, OperationOutcome.Unknown), (failure.Code, failure.Outcome));
        Assert.Contains("The claim for the lock exists", failure.Message, StringComparison.Ordinal);
        await Wait.UntilAsync(() => Node.Received.Last().Kind == CommandKind.LockRelease);
        Assert.Equal(12, Node.Received.Last().Token);
    }

    [Fact]
    public async Task A_question_that_is_sent_again_is_held_back_for_what_is_left()
    {
        await ConnectAsync();
        Task<LockHandle> acquiring = _client.Locks.AcquireAsync("a", s_longLease, s_wait).AsTask();
        Reply(Node.Next(), new FakeReply(OutcomeStatus.Queued, 12, 0));
        Assert.Equal(10_000, Node.Next().WaitingMs);
        _time.Advance(TimeSpan.FromSeconds(7));
        Node.Break();
        await Wait.UntilAsync(_time, () => Node.Held.Count == 1);
        FakeRequest again = Node.Next();
        Assert.Equal(CommandKind.LockAwait, again.Kind);
        Assert.InRange(again.WaitingMs!.Value, 1, 3_000);
        _time.Advance(TimeSpan.FromMilliseconds(again.WaitingMs.Value));
        Reply(again, Waiting(10_000));
        Assert.Equal(10_000, Node.Next().WaitingMs);
        Assert.False(acquiring.IsCompleted);
    }

    [Fact]
    public async Task Calls_of_one_owner_give_their_place_back_when_the_last_of_them_goes()
    {
        await ConnectAsync();
        LockOptions owner = new() { ReentrantOwner = "o" };
        using CancellationTokenSource cancel = new();
        using CancellationTokenSource cancelLast = new();
        Task<LockHandle> first = _client.Locks.AcquireAsync("a", s_lease, s_wait, owner, cancel.Token).AsTask();
        Reply(Node.Next(), new FakeReply(OutcomeStatus.Queued, 12, 0));
        Node.Next();
        Task<LockHandle> last = _client.Locks.AcquireAsync("a", s_lease, s_wait, owner, cancelLast.Token).AsTask();
        Reply(Node.Next(), new FakeReply(OutcomeStatus.Queued, 12, 0));
        Node.Next();
        await cancel.CancelAsync();
        await Assert.ThrowsAsync<KahunaCanceledException>(() => first.WaitAsync(Wait.Longest));
        Task<SetResult> setting = _client.KeyValues.SetAsync("k", "v").AsTask();
        FakeRequest set = Node.Next();
        Assert.Equal(CommandKind.Set, set.Kind);
        Reply(set, FakeReply.Applied());
        await setting.WaitAsync(Wait.Longest);

        // Somebody else may have been granted the lock under this owner's name by then.
        await cancelLast.CancelAsync();
        await Assert.ThrowsAsync<KahunaCanceledException>(() => last.WaitAsync(Wait.Longest));
        FakeRequest release = Node.Next();
        Assert.Equal(
            (CommandKind.LockRelease, 12, CommandFlags.IfAbsent),
            (release.Kind, release.Token, release.Options & CommandFlags.IfAbsent));
        Reply(release, FakeReply.Applied(12));
    }

    [Fact]
    public async Task A_grant_that_was_over_is_given_back_when_the_next_attempt_fails()
    {
        await ConnectAsync();
        Task<LockHandle> acquiring = _client.Locks.AcquireAsync("a", s_lease, s_wait).AsTask();
        FakeRequest acquire = Node.Next();
        _time.Advance(TimeSpan.FromSeconds(4));
        Reply(acquire, new FakeReply(OutcomeStatus.Applied, 12, 3_000));
        FakeRequest extend = Node.Next();
        _time.Advance(TimeSpan.FromSeconds(4));
        Reply(extend, new FakeReply(OutcomeStatus.Applied, 12, 7_000));
        Reply(Node.Next(), new FakeReply(OutcomeStatus.SessionsFull));
        await FailsAsync(acquiring, KahunaErrorCode.SessionsFull, OperationOutcome.DidNotHappen);
        FakeRequest release = Node.Next();
        Assert.Equal((CommandKind.LockRelease, 12), (release.Kind, release.Token));
    }

    [Fact]
    public async Task A_client_that_is_disposed_gives_places_back_first()
    {
        await ConnectAsync();
        using CancellationTokenSource cancel = new();
        Task<LockHandle> acquiring = _client.Locks.AcquireAsync("a", s_lease, s_wait, null, cancel.Token).AsTask();
        Reply(Node.Next(), new FakeReply(OutcomeStatus.Queued, 12, 0));
        Node.Next();
        Task<LockHandle> other = _client.Locks.AcquireAsync("b", s_lease, s_wait).AsTask();
        Reply(Node.Next(), new FakeReply(OutcomeStatus.Queued, 14, 0));
        FakeRequest question = Node.Next();
        await cancel.CancelAsync();
        Task disposing = _client.DisposeAsync().AsTask();
        FakeRequest[] releases = [Node.Next(), Node.Next()];
        Assert.All(releases, static release => Assert.Equal(CommandKind.LockRelease, release.Kind));
        Assert.Equal([12, 14], releases.Select(static release => release.Token).Order());
        Reply(question, new FakeReply(OutcomeStatus.NotFound));
        Assert.All(releases, static release => Reply(release, FakeReply.Applied(release.Token)));
        await disposing.WaitAsync(Wait.Longest);
        await Assert.ThrowsAsync<KahunaCanceledException>(() => acquiring);
        await FailsAsync(other, KahunaErrorCode.ClientDisposed, OperationOutcome.DidNotHappen);
        await Assert.ThrowsAsync<ObjectDisposedException>(() => _client.Locks.TryAcquireAsync("a", s_lease).AsTask());
    }

    [Fact]
    public async Task A_client_with_one_request_at_a_time_waits_for_locks_without_stopping_everything_else()
    {
        await ConnectAsync(maxInFlight: 1);
        _ = _client.Locks.AcquireAsync("a", s_lease, s_wait).AsTask();
        Reply(Node.Next(), new FakeReply(OutcomeStatus.Queued, 12, 0));
        FakeRequest question = Node.Next();
        Assert.Equal(200, question.WaitingMs);
        Task<SetResult> set = _client.KeyValues.SetAsync("k", "v").AsTask();
        Reply(question, Waiting(200));
        FakeRequest next = Node.Next();
        if (next.Kind != CommandKind.Set)
        {
            Reply(next, Waiting(400));
            next = Node.Next();
        }

        Reply(next, FakeReply.Applied());
        await set.WaitAsync(Wait.Longest);
    }

    [Fact]
    public async Task A_leader_that_holds_an_answer_back_is_not_suspected()
    {
        _cluster = new FakeCluster(nodes: 2);
        await ConnectAsync();
        _ = _client.Locks.AcquireAsync("a", s_longLease, s_wait).AsTask();
        Reply(Node.Next(), new FakeReply(OutcomeStatus.Queued, 12, 0));
        Node.Next();
        _time.Advance(TimeSpan.FromSeconds(9));
        Task<SetResult> set = _client.KeyValues.SetAsync("k", "v").AsTask();
        Reply(Node.Next(), FakeReply.Applied());
        await set.WaitAsync(Wait.Longest);
        Assert.Empty(_cluster[2].Received);
    }

    [Fact]
    public async Task So_many_questions_wait_at_a_time_and_the_others_behind_them()
    {
        await ConnectAsync(maxInFlight: 8);
        Node.Answer = static request => request.Kind == CommandKind.LockAcquire
            ? new FakeReply(OutcomeStatus.Queued, request.Key[1] - '0' + 1, 0)
            : null;
        Task<LockHandle>[] acquiring = new Task<LockHandle>[10];
        for (int i = 0; i < acquiring.Length; i++)
        {
            acquiring[i] = _client.Locks.AcquireAsync($"l{i}", s_longLease, s_wait).AsTask();
            await Wait.UntilAsync(() =>
                Node.Received.Count(request => request.Kind == CommandKind.LockAcquire) == i + 1
                    && Node.Held.Count == Math.Min(i + 1, 4));
        }

        List<FakeRequest> asked = [.. Enumerable.Range(0, 4).Select(_ => Node.Next())];
        Assert.Equal(["l0", "l1", "l2", "l3"], asked.Select(request => request.Key));
        Assert.Empty(Node.Held);

        // Who came later is asked for a shorter while, so that everybody's turn comes.
        Reply(asked[2], Granted(30_000, 0));
        Assert.Equal(3, (await acquiring[2].WaitAsync(Wait.Longest)).Token.Value);
        FakeRequest fifth = Node.Next();
        Assert.InRange(fifth.WaitingMs!.Value, 4_000, 8_000);
        Reply(fifth, Waiting(0));
        Assert.NotEqual(fifth.Key, Node.Next().Key);
    }

    private async Task ConnectAsync(int maxInFlight = 1000) => _client = await _cluster.ConnectedAsync(options =>
    {
        options.TimeProvider = _time;
        options.RequestTimeout = TimeSpan.FromSeconds(10);
        options.MaxInFlight = maxInFlight;
    });

    internal static FakeReply Waiting(long nowMs) => new(OutcomeStatus.Queued, 12, nowMs);

    internal static FakeReply Granted(long endMs, long nowMs)
    {
        byte[] now = new byte[sizeof(long)];
        BinaryPrimitives.WriteInt64LittleEndian(now, nowMs);
        return new FakeReply(OutcomeStatus.Found, 12, endMs, now);
    }

    internal static void Reply(FakeRequest request, FakeReply reply) => request.Connection.Reply(request, reply);

    private static async Task FailsAsync<T>(Task<T> call, KahunaErrorCode code, OperationOutcome outcome)
    {
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => call.WaitAsync(Wait.Longest));
        Assert.Equal((code, outcome), (failure.Code, failure.Outcome));
    }
}
