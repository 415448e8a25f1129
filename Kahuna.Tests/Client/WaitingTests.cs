using Kahuna.Client;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Client;

/// <summary>What waits for a node, how many, for how long, and what fails at once.</summary>
public sealed class WaitingTests
{
    private readonly ManualTime _time = new();
    private readonly FakeCluster _cluster = new(nodes: 2);

    [Fact]
    public async Task As_many_wait_for_a_node_as_may_and_further_ones_fail_at_once()
    {
        _cluster[1].IsDown = true;
        KahunaClient client = _cluster.Client(options =>
        {
            options.TimeProvider = _time;
            options.MaxWaiting = 2;
        });
        Task<SetResult> first = SetAsync(client);
        Task<SetResult> second = SetAsync(client);
        KahunaException failure = await FailsAsync(SetAsync(client), KahunaErrorCode.Unavailable);
        Assert.StartsWith(
            "2 operations are waiting already, and MaxWaiting allows no more; no node of the "
                + "cluster can be reached: node1:8082",
            failure.Message,
            StringComparison.Ordinal);
        _cluster[1].Answer = static _ => FakeReply.Applied();
        _cluster[1].IsDown = false;
        await Wait.UntilAsync(_time, () => first.IsCompletedSuccessfully && second.IsCompletedSuccessfully);
        await DisposeAsync(client);
    }

    [Fact]
    public async Task As_many_wait_for_a_place_as_may()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync(static options =>
        {
            options.MaxInFlight = 1;
            options.MaxWaiting = 1;
        });
        Task<SetResult> first = SetAsync(client);
        Task<SetResult> second = SetAsync(client);
        await FailsAsync(SetAsync(client), KahunaErrorCode.Overloaded);
        foreach (Task<SetResult> waiting in new[] { first, second })
        {
            FakeRequest request = _cluster[1].Next();
            request.Connection.Reply(request, FakeReply.Applied());
            await waiting.WaitAsync(Wait.Longest);
        }
    }

    [Fact]
    public async Task With_nothing_that_may_wait_a_lost_node_fails_calls_at_once()
    {
        _cluster[1].Answer = static _ => new FakeReply(OutcomeStatus.NotFound);
        await using KahunaClient client = await _cluster.ConnectedAsync(static options => options.MaxWaiting = 0);
        await Wait.ForAsync(client.KeyValues.GetAsync("k"));
        _cluster[1].IsDown = _cluster[2].IsDown = true;
        _cluster[1].Break();
        _cluster[2].Break();
        await Wait.UntilAsync(async () =>
        {
            try
            {
                await Wait.ForAsync(client.KeyValues.GetAsync("k"));
                return false;
            }
            catch (KahunaException failure) when (failure.Code == KahunaErrorCode.Unavailable)
            {
                return failure.Outcome == OperationOutcome.DidNotHappen;
            }
        });
    }

    [Fact]
    public async Task Calls_fail_at_once_when_no_server_is_trusted_and_work_when_one_is()
    {
        // The clock stands still: nothing here waits for a timeout.
        _cluster[1].IsUntrusted = _cluster[2].IsUntrusted = true;
        KahunaClient client = _cluster.Client(options => options.TimeProvider = _time, 1, 2);
        KahunaException failure = await FailsAsync(SetAsync(client), KahunaErrorCode.Untrusted);
        Assert.Contains("TrustedCaFile \"ca.pem\"", failure.Message, StringComparison.Ordinal);
        Assert.Equal(
            KahunaErrorCode.Untrusted,
            (await Assert.ThrowsAsync<KahunaException>(() => Wait.ForAsync(client.DescribeAsync()))).Code);
        await FailsAsync(SetAsync(client), KahunaErrorCode.Untrusted);

        _cluster[1].Answer = static _ => FakeReply.Applied();
        _cluster[1].IsUntrusted = false;
        await Wait.UntilAsync(_time, () => _cluster[1].Connects > 0);
        await Wait.UntilAsync(async () =>
        {
            try
            {
                return (await SetAsync(client).WaitAsync(Wait.Longest)).Applied;
            }
            catch (KahunaException untrusted) when (untrusted.Code == KahunaErrorCode.Untrusted)
            {
                return false;
            }
        });
        await DisposeAsync(client);
    }

    [Fact]
    public async Task A_node_that_comes_between_the_look_for_a_way_and_the_wait_for_one_is_asked_at_once()
    {
        _cluster[1].IsMute = true;
        _cluster[1].Answer = static _ => FakeReply.Applied();
        await using KahunaClient client = _cluster.Client(options => options.TimeProvider = _time);
        Task<ClusterDescription> connected = client.DescribeAsync().AsTask();
        await Wait.UntilAsync(() => _cluster[1].Hellos > 0);
        int caller = Environment.CurrentManagedThreadId;
        int looks = 0;
        _time.Looked = () =>
        {
            // The first look is for the deadline, before there is a way; the second for the end of the pause.
            if (Environment.CurrentManagedThreadId == caller && ++looks == 2)
            {
                _cluster[1].IsMute = false;
                _cluster[1].OnHello(_cluster[1].Connection);
                Assert.True(connected.Wait(Wait.Longest));
                Task<SetResult> later = Task.Run(() => SetAsync(client));
                Assert.True(later.Wait(Wait.Longest));
            }
        };
        Task<SetResult> set = SetAsync(client);
        _time.Looked = null;
        Assert.True(looks >= 2);

        // The clock stands still: no pause ends.
        await set.WaitAsync(Wait.Longest);
    }

    [Fact]
    public async Task Calls_wait_while_another_node_may_still_be_trusted()
    {
        _cluster[1].IsUntrusted = true;
        _cluster[2].IsDown = true;
        KahunaClient client = _cluster.Client(options => options.TimeProvider = _time, 1, 2);
        Task<SetResult> set = SetAsync(client);
        await Wait.UntilAsync(_time, () => _cluster[1].Attempts > 3 && _cluster[2].Attempts > 3);
        Assert.False(set.IsCompleted);
        Task disposing = DisposeAsync(client);
        await FailsAsync(set, KahunaErrorCode.ClientDisposed);
        await disposing;
    }

    [Fact]
    public async Task A_lost_node_is_tried_seldom_until_a_call_waits_for_it()
    {
        _cluster.Leaders = [(1, 1UL)];
        KahunaClient client = await _cluster.ConnectedAsync(_time, TimeSpan.FromMinutes(1));
        _cluster[1].Answer = static _ => FakeReply.Applied();
        _cluster[1].IsDown = _cluster[2].IsDown = true;
        _cluster[1].Break();
        _cluster[2].Break();
        await Wait.UntilAsync(_time, () => _cluster[1].Attempts > 10, stepMs: 50);
        int before = _cluster[1].Attempts;
        for (int i = 0; i < 600; i++)
        {
            _time.Advance(TimeSpan.FromMilliseconds(100));
            await Task.Delay(1);
        }

        // A pause is 2.5 to 5 s; with that of calls there would be 120 attempts or more.
        Assert.InRange(_cluster[1].Attempts - before, 1, 30);
        _cluster[1].IsDown = false;
        long begun = _time.GetTimestamp();
        Task<SetResult> set = SetAsync(client);
        await Wait.UntilAsync(_time, () => set.IsCompleted);
        Assert.True((await set).Applied);

        // Not the rest of the long pause.
        Assert.InRange(_time.GetTimestamp() - begun, 0, 2_000);
        await DisposeAsync(client);
    }

    [Fact]
    public async Task A_check_takes_an_answer_from_each_partition()
    {
        FakeCluster cluster = new(nodes: 1, partitions: 3);
        KahunaClient client = await cluster.ConnectedAsync(_time, TimeSpan.FromSeconds(5));
        cluster[1].Answer = static _ => HealthCheckTests.NoNames;
        await client.CheckAsync().AsTask().WaitAsync(Wait.Longest);
        Assert.Equal([0, 1, 2], cluster[1].Received.Select(static request => request.WaitingMs!.Value).Order());
        Assert.All(cluster[1].Received, static request => Assert.Equal(CommandKind.KeyRange, request.Kind));

        cluster[1].Answer = static request => request.WaitingMs == 1 ? null : HealthCheckTests.NoNames;
        Task check = client.CheckAsync().AsTask();
        await Wait.UntilAsync(_time, () => check.IsCompleted, stepMs: 50);
        Assert.Equal(KahunaErrorCode.DeadlineExceeded, (await Assert.ThrowsAsync<KahunaException>(() => check)).Code);
        await DisposeAsync(client);
    }

    private static Task<SetResult> SetAsync(KahunaClient client) => client.KeyValues.SetAsync("k", "v").AsTask();

    private static async Task<KahunaException> FailsAsync(Task task, KahunaErrorCode code)
    {
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => task.WaitAsync(Wait.Longest));
        Assert.Equal((code, OperationOutcome.DidNotHappen), (failure.Code, failure.Outcome));
        return failure;
    }

    private Task DisposeAsync(KahunaClient client)
    {
        Task disposing = client.DisposeAsync().AsTask();
        return Wait.UntilAsync(_time, () => disposing.IsCompleted, stepMs: 100);
    }
}
