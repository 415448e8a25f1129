using Kahuna.Client;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Client;

public sealed class ConnectionFailureTests
{
    [Fact]
    public async Task What_was_under_way_on_a_lost_stream_is_sent_again_under_the_same_number()
    {
        FakeCluster cluster = new(nodes: 2);
        await using KahunaClient client = await cluster.ConnectedAsync();
        Task<SetResult> set = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        Task<IncrementResult> increment = Wait.ForAsync(client.KeyValues.IncrementAsync("n"));
        Task<GetResult> get = Wait.ForAsync(client.KeyValues.GetAsync("k"));
        for (int i = 0; i < 3; i++)
        {
            cluster[1].Next();
        }

        cluster[1].IsDown = true;
        cluster[2].Answer = static request => request.Kind == CommandKind.Get
            ? FakeReply.Found("v")
            : new FakeReply(OutcomeStatus.Applied, 3, 7);
        cluster.Leaders = [(2, 2)];
        cluster[2].SendMap();
        cluster[1].Break();
        Assert.Equal(3, (await set).Revision.Value);
        Assert.Equal(7, (await increment).Value);
        Assert.Equal("v", (await get).Value.AsString());
        foreach (CommandKind kind in new[] { CommandKind.Set, CommandKind.Increment })
        {
            Assert.Equal(
                cluster[1].Received.Single(request => request.Kind == kind).CallNumber,
                cluster[2].Received.Single(request => request.Kind == kind).CallNumber);
        }
    }

    [Fact]
    public async Task A_lost_mutation_that_is_not_answered_until_the_deadline_has_an_unknown_end()
    {
        ManualTime time = new();
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync(time, TimeSpan.FromSeconds(2));
        Task<SetResult> set = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        cluster[1].Next();
        cluster[1].IsDown = true;
        cluster[1].Break();
        await Wait.UntilAsync(time, () => set.IsCompleted);
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => set);
        Assert.Equal(KahunaErrorCode.ConnectionLost, failure.Code);
        Assert.Equal(OperationOutcome.Unknown, failure.Outcome);
        Assert.False(failure.IsSafeToRetry);
        Assert.Contains("node1:8082", failure.Message, StringComparison.Ordinal);
        Assert.Contains("connection reset", failure.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task What_was_not_yet_written_when_the_stream_broke_is_sent_again()
    {
        FakeCluster cluster = new(nodes: 2);
        await using KahunaClient client = await cluster.ConnectedAsync();
        cluster[1].Connection.StopTaking();
        Task<SetResult> written = Wait.ForAsync(client.KeyValues.SetAsync("k", "is in the write that hangs"));
        Task<SetResult>[] unsent =
            [.. Enumerable.Range(0, 5).Select(i => Wait.ForAsync(client.KeyValues.SetAsync("k", $"{i}")))];
        cluster[2].Answer = static _ => FakeReply.Applied(3);
        cluster.Leaders = [(2, 2)];
        cluster[2].SendMap();
        await Wait.UntilAsync(async () => (await client.DescribeAsync()).Partitions[0].LeaderNodeId == 2);
        cluster[1].Break();
        Assert.All(await Task.WhenAll([.. unsent, written]), result => Assert.Equal(3, result.Revision.Value));
        Assert.Equal(
            ["0", "1", "2", "3", "4", "is in the write that hangs"],
            cluster[2].Received.Select(request => System.Text.Encoding.UTF8.GetString(request.Value)).Order());
    }

    [Fact]
    public async Task A_lost_stream_is_opened_again()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync();
        cluster[1].Answer = static _ => FakeReply.Applied();
        for (int i = 2; i < 6; i++)
        {
            cluster[1].Break();
            await Wait.UntilAsync(() => cluster[1].Connects == i);
            Assert.True((await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"))).Applied);
        }
    }

    [Fact]
    public async Task The_deadline_says_whether_a_write_may_have_happened()
    {
        ManualTime time = new();
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync(time, TimeSpan.FromSeconds(1));
        Task<SetResult> set = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        Task<GetResult> get = Wait.ForAsync(client.KeyValues.GetAsync("k"));
        FakeRequest first = cluster[1].Next();
        cluster[1].Next();
        Assert.Equal(1000u, first.WaitMs);
        time.Advance(TimeSpan.FromMilliseconds(990));
        Assert.False(set.IsCompleted || get.IsCompleted);
        time.Advance(TimeSpan.FromMilliseconds(50));
        await FailedAsync(set, KahunaErrorCode.DeadlineExceeded, OperationOutcome.Unknown);
        await FailedAsync(get, KahunaErrorCode.DeadlineExceeded, OperationOutcome.DidNotHappen);

        // Never written: taken back, and nothing of it reaches the wire.
        cluster[1].Connection.StopTaking();
        int begun = cluster[1].Connection.WritesBegun;
        Task<SetResult> hanging = Wait.ForAsync(client.KeyValues.SetAsync("k", "1"));
        await Wait.UntilAsync(() => cluster[1].Connection.WritesBegun > begun);
        Task<SetResult> unsent = Wait.ForAsync(client.KeyValues.SetAsync("k", "2"));
        time.Advance(TimeSpan.FromMilliseconds(500));
        Task<SetResult> later = Wait.ForAsync(client.KeyValues.SetAsync("k", "3"));
        time.Advance(TimeSpan.FromMilliseconds(550));
        await FailedAsync(hanging, KahunaErrorCode.DeadlineExceeded, OperationOutcome.Unknown);
        await FailedAsync(unsent, KahunaErrorCode.DeadlineExceeded, OperationOutcome.DidNotHappen);
        cluster[1].Answer = static _ => FakeReply.Applied();
        cluster[1].Connection.TakeAgain();
        Assert.True((await later).Applied);
        Assert.Equal(
            ["v", "", "1", "3"],
            cluster[1].Received.Select(request => System.Text.Encoding.UTF8.GetString(request.Value)));
    }

    [Fact]
    public async Task The_deadline_also_ends_what_was_sent_again_and_is_not_answered()
    {
        ManualTime time = new();
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync(time, TimeSpan.FromSeconds(5));
        cluster[1].Answer = static request => request.Connection.Node.Received.Count < 2
            ? new FakeReply(OutcomeStatus.Busy)
            : null;
        Task<SetResult> set = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        await Wait.UntilAsync(time, () => cluster[1].Held.Count == 1, stepMs: 20);
        time.Advance(TimeSpan.FromSeconds(6));
        await FailedAsync(set, KahunaErrorCode.DeadlineExceeded, OperationOutcome.Unknown);
    }

    [Fact]
    public async Task Without_any_node_an_operation_fails_at_its_deadline_and_says_why()
    {
        ManualTime time = new();
        FakeCluster cluster = new();
        cluster[1].IsDown = true;
        await using KahunaClient client = cluster.Client(options => options.TimeProvider = time);
        Task<SetResult> set = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        await Wait.UntilAsync(time, () => set.IsCompleted, stepMs: 100);
        KahunaException failure = await FailedAsync(set, KahunaErrorCode.Unavailable, OperationOutcome.DidNotHappen);
        Assert.Contains("node1:8082 (Connection refused)", failure.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_token_ends_the_wait_at_once_wherever_the_operation_is()
    {
        FakeCluster cluster = new();
        cluster[1].IsMute = true;
        await using KahunaClient client = cluster.Client();
        using CancellationTokenSource before = new();
        before.Cancel();
        await CanceledAsync(
            Wait.ForAsync(client.KeyValues.SetAsync("k", "v", null, before.Token)), OperationOutcome.DidNotHappen);

        // Without a node.
        using CancellationTokenSource parked = new();
        Task<SetResult> waiting = Wait.ForAsync(client.KeyValues.SetAsync("k", "v", null, parked.Token));
        parked.Cancel();
        await CanceledAsync(waiting, OperationOutcome.DidNotHappen);

        // Sent.
        await Wait.UntilAsync(() => cluster[1].Connects == 1);
        cluster[1].IsMute = false;
        cluster[1].OnHello(cluster[1].Connection);
        using CancellationTokenSource sent = new();
        Task<SetResult> set = Wait.ForAsync(client.KeyValues.SetAsync("k", "v", null, sent.Token));
        Task<GetResult> get = Wait.ForAsync(client.KeyValues.GetAsync("k", null, sent.Token));
        cluster[1].Next();
        cluster[1].Next();
        sent.Cancel();
        await CanceledAsync(set, OperationOutcome.Unknown);
        await CanceledAsync(get, OperationOutcome.DidNotHappen);

        // In the frame that waits behind a write that hangs: taken back.
        cluster[1].Connection.StopTaking();
        int begun = cluster[1].Connection.WritesBegun;
        Task<SetResult> hanging = Wait.ForAsync(client.KeyValues.SetAsync("k", "1"));
        await Wait.UntilAsync(() => cluster[1].Connection.WritesBegun > begun);
        using CancellationTokenSource unsent = new();
        Task<SetResult> second = Wait.ForAsync(client.KeyValues.SetAsync("k", "2", null, unsent.Token));
        Task<SetResult> third = Wait.ForAsync(client.KeyValues.SetAsync("k", "3"));
        unsent.Cancel();
        await CanceledAsync(second, OperationOutcome.DidNotHappen);
        cluster[1].Answer = static _ => FakeReply.Applied();
        cluster[1].Connection.TakeAgain();
        Assert.True((await hanging).Applied && (await third).Applied);
        Assert.Equal(
            ["v", "", "1", "3"],
            cluster[1].Received.Select(request => System.Text.Encoding.UTF8.GetString(request.Value)));
    }

    [Fact]
    public async Task A_late_reply_never_answers_another_operation()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync(options => options.MaxInFlight = 1);
        using CancellationTokenSource cancel = new();
        Task<GetResult> given = Wait.ForAsync(client.KeyValues.GetAsync("a", null, cancel.Token));
        FakeRequest first = cluster[1].Next();
        cancel.Cancel();
        await CanceledAsync(given, OperationOutcome.DidNotHappen);

        // The place is free only with the reply, which is nobody's any more.
        Task<GetResult> next = Wait.ForAsync(client.KeyValues.GetAsync("b"));
        first.Connection.Reply(first, FakeReply.Found("late"));
        FakeRequest second = cluster[1].Next();
        Assert.NotEqual(first.Number, second.Number);

        // The same reply once more, while the place serves the second request.
        first.Connection.Reply(first, FakeReply.Found("twice"));
        second.Connection.Reply(second, FakeReply.Found("own"));
        Assert.Equal("own", (await next).Value.AsString());
    }

    [Fact]
    public async Task At_most_so_many_operations_are_in_flight_and_the_others_wait_in_order()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync(options => options.MaxInFlight = 3);
        Task<SetResult>[] sets =
            [.. Enumerable.Range(0, 20).Select(i => Wait.ForAsync(client.KeyValues.SetAsync($"{i}", "v")))];
        for (int i = 0; i < 20; i++)
        {
            FakeRequest request = cluster[1].Next();
            Assert.Equal($"{i}", request.Key);
            Assert.True(cluster[1].Received.Count <= i + 3);
            request.Connection.Reply(request, FakeReply.Applied(i + 1));
        }

        SetResult[] results = await Task.WhenAll(sets);
        Assert.Equal(Enumerable.Range(1, 20).Select(i => (long)i), results.Select(result => result.Revision.Value));
    }

    [Fact]
    public async Task Large_values_wait_instead_of_filling_the_memory()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync();
        cluster[1].Connection.StopTaking();
        byte[] value = new byte[200_000];
        Task<SetResult>[] sets =
            [.. Enumerable.Range(0, 40).Select(_ => Wait.ForAsync(client.KeyValues.SetAsync("k", value)))];
        cluster[1].Answer = static _ => FakeReply.Applied();
        cluster[1].Connection.TakeAgain();
        await Task.WhenAll(sets);
        Assert.All(cluster[1].Received, request => Assert.InRange(request.FrameCount, 1, 2));
    }

    [Theory]
    [InlineData(new byte[] { 1, 0, 0, 0, 0 })]
    [InlineData(new byte[] { 0, 0x7F, 0, 0, 0 })]
    [InlineData(new byte[] { 0, 0, 0, 0, 2, 0x12, 0 })]
    [InlineData(new byte[] { 0, 0, 0, 0, 10, 0x0A, 8, 77, 0, 0, 0, 0, 0, 0, 0 })]
    [InlineData(new byte[] { 0, 0, 0, 0, 10, 0x0A, 8, 3, 0, 0, 0, 9, 0, 0, 0 })]
    public async Task A_node_that_breaks_the_protocol_loses_its_stream_and_nothing_else(byte[] nonsense)
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync();
        Task<SetResult> set = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        cluster[1].Next();
        cluster[1].Answer = static _ => FakeReply.Applied();
        cluster[1].Connection.SendRaw(nonsense);
        Assert.True((await set).Applied);
        Assert.Equal(2, cluster[1].Connects);
        Assert.Equal(2, cluster[1].Received.Count);
    }

    [Fact]
    public async Task Disposing_ends_everything_and_says_what_may_have_happened()
    {
        FakeCluster cluster = new();
        KahunaClient client = await cluster.ConnectedAsync();
        Task<SetResult> set = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        Task<GetResult> get = Wait.ForAsync(client.KeyValues.GetAsync("k"));
        cluster[1].Next();
        cluster[1].Next();
        await client.DisposeAsync().AsTask().WaitAsync(Wait.Longest);
        await FailedAsync(set, KahunaErrorCode.ClientDisposed, OperationOutcome.Unknown);
        await FailedAsync(get, KahunaErrorCode.ClientDisposed, OperationOutcome.DidNotHappen);
        Assert.True(cluster[1].Connection.IsEnded);
        await Assert.ThrowsAsync<ObjectDisposedException>(() => Wait.ForAsync(client.KeyValues.GetAsync("k")));
        await Assert.ThrowsAsync<ObjectDisposedException>(() => Wait.ForAsync(client.DescribeAsync()));
        await client.DisposeAsync();

        KahunaClient unused = cluster.Client();
        await unused.DisposeAsync();
    }

    [Fact]
    public async Task Callers_cancellations_and_broken_streams_at_random_leave_nothing_behind()
    {
        FakeCluster cluster = new(nodes: 2);
        await using KahunaClient client = await cluster.ConnectedAsync(options =>
        {
            options.MaxInFlight = 16;
            options.RetryBackoffMin = TimeSpan.FromMilliseconds(1);
            options.RetryBackoffMax = TimeSpan.FromMilliseconds(10);
        });
        foreach (FakeNode node in cluster.Nodes)
        {
            node.Answer = request => node.Id != cluster.Leaders[0].Leader
                ? FakeReply.NotLeader(cluster.Leaders[0].Leader)
                : request.Number % 13 == 0 ? new FakeReply(OutcomeStatus.Busy)
                : request.Kind == CommandKind.Get ? FakeReply.Found(request.Key)
                : FakeReply.Applied();
        }

        int answered = 0;
        int ended = 0;
        async Task WorkAsync(int worker)
        {
            Random random = new(worker);
            for (int i = 0; i < 150; i++, Interlocked.Increment(ref ended))
            {
                using CancellationTokenSource cancel = new();
                try
                {
                    string key = $"{worker}-{i}";
                    ValueTask<GetResult> get = client.KeyValues.GetAsync(
                        key, null, random.Next(2) == 0 ? cancel.Token : default);
                    if (random.Next(3) == 0)
                    {
                        cancel.Cancel();
                    }

                    GetResult result = await get;
                    Assert.Equal(key, result.Value.AsString());
                    await client.KeyValues.SetAsync(key, key);
                    Interlocked.Increment(ref answered);
                }
                catch (KahunaCanceledException)
                {
                    // As asked for.
                }
                catch (KahunaException failure)
                {
                    Assert.Equal(KahunaErrorCode.ConnectionLost, failure.Code);
                }
            }
        }

        Task work = Task.WhenAll(Enumerable.Range(0, 24).Select(worker => Task.Run(() => WorkAsync(worker))));
        Random breaks = new(5);
        while (!work.IsCompleted)
        {
            // A machine of any speed gets as far between two of them.
            int before = Volatile.Read(ref ended);
            await Wait.UntilAsync(() => work.IsCompleted || Volatile.Read(ref ended) >= before + 100);
            cluster.Leaders = [(breaks.Next(1, 3), cluster.Leaders[0].Term + 1)];
            cluster[breaks.Next(1, 3)].Break();
        }

        await work.WaitAsync(Wait.Longest);
        Assert.True(answered > 1000, $"only {answered} operations were answered");
    }

    private static async Task<KahunaException> FailedAsync(Task task, KahunaErrorCode code, OperationOutcome outcome)
    {
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => task);
        Assert.Equal((code, outcome), (failure.Code, failure.Outcome));
        return failure;
    }

    private static async Task CanceledAsync(Task task, OperationOutcome outcome)
    {
        KahunaCanceledException failure = await Assert.ThrowsAsync<KahunaCanceledException>(() => task);
        Assert.Equal(outcome, failure.Outcome);
    }
}
