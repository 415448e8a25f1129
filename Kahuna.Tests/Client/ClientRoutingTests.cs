using Kahuna.Client;
using Kahuna.Client.Locks;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Sequences;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Client;

public sealed class ClientRoutingTests
{
    [Fact]
    public async Task Every_key_goes_to_the_leader_of_its_partition()
    {
        FakeCluster cluster = new(nodes: 3, partitions: 3) { Leaders = [(1, 4), (2, 4), (3, 4)] };
        await using KahunaClient client = await cluster.ConnectedAsync();
        foreach (FakeNode node in cluster.Nodes)
        {
            node.Answer = static _ => FakeReply.Applied();
        }

        string[] keys = [.. Enumerable.Range(0, 60).Select(i => $"bucket{i}/key")];
        await Task.WhenAll(keys.Select(key => Wait.ForAsync(client.KeyValues.SetAsync(key, "v"))));
        Assert.Equal(60, cluster.Nodes.Sum(node => node.Received.Count));
        foreach (FakeNode node in cluster.Nodes)
        {
            Assert.NotEmpty(node.Received);
            Assert.All(node.Received, request =>
                Assert.Equal(node.Id - 1, InitialPartition.Of(System.Text.Encoding.UTF8.GetBytes(request.Key), 3)));
        }
    }

    [Fact]
    public async Task A_refusal_that_names_the_leader_is_followed_at_once()
    {
        FakeCluster cluster = new(nodes: 3);
        await using KahunaClient client = await cluster.ConnectedAsync();
        cluster[1].Answer = static _ => FakeReply.NotLeader(3);
        cluster[3].Answer = static _ => FakeReply.Applied(9);
        Assert.Equal(9, (await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"))).Revision.Value);
        Assert.Single(cluster[1].Received);
        Assert.Empty(cluster[2].Received);

        // The next one knows.
        await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        Assert.Single(cluster[1].Received);
        Assert.Equal(2, cluster[3].Received.Count);
    }

    [Theory]
    [InlineData(0)]
    [InlineData(5)]
    public async Task A_refusal_that_names_nobody_is_followed_at_once_when_the_map_names_the_leader_by_then(
        int refusals)
    {
        ManualTime time = new();
        FakeCluster cluster = new(nodes: 3) { Leaders = [(refusals == 0 ? 1 : 0, 5)] };
        await using KahunaClient client = await cluster.ConnectedAsync(options => options.TimeProvider = time);
        int refused = 0;
        foreach (FakeNode node in cluster.Nodes)
        {
            node.Answer = _ => Interlocked.Increment(ref refused) <= refusals ? FakeReply.NotLeader(0) : null;
        }

        Task<SetResult> set = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        await Wait.UntilAsync(
            time, () => cluster.Nodes.Any(static node => node.Held.Count > 0), stepMs: refusals == 0 ? 0 : 5);
        FakeNode asked = cluster.Nodes.Single(static node => node.Held.Count > 0);
        FakeRequest held = asked.Next();
        FakeNode leader = cluster[(asked.Id % 3) + 1];
        leader.Answer = static _ => FakeReply.Applied(8);
        leader.View = [(leader.Id, 6)];
        leader.SendMap();
        await Wait.UntilAsync(async () => (await client.DescribeAsync()).Partitions[0].LeaderNodeId == leader.Id);

        // Without a moment of pause: the clock stands still.
        held.Connection.Reply(held, FakeReply.NotLeader(0));
        Assert.Equal(8, (await set).Revision.Value);
    }

    [Fact]
    public async Task Without_a_known_leader_any_node_is_asked_until_one_leads()
    {
        ManualTime time = new();
        FakeCluster cluster = new(nodes: 3) { Leaders = [(0, 1)] };
        await using KahunaClient client = await cluster.ConnectedAsync(options => options.TimeProvider = time);
        foreach (FakeNode node in cluster.Nodes)
        {
            node.Answer = static _ => FakeReply.NotLeader(0);
        }

        Task<SetResult> set = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        await Wait.UntilAsync(time, () => cluster.Nodes.Sum(node => node.Received.Count) >= 4);
        Assert.False(set.IsCompleted);
        cluster[2].Answer = static _ => FakeReply.Applied(5);
        cluster.Leaders = [(2, 2)];
        cluster[3].SendMap();
        Assert.Equal(5, (await set).Revision.Value);
    }

    [Fact]
    public async Task A_newer_term_from_any_node_moves_new_operations_and_an_older_one_does_not()
    {
        FakeCluster cluster = new(nodes: 3) { Leaders = [(1, 5)] };
        await using KahunaClient client = await cluster.ConnectedAsync();
        cluster[2].Answer = static _ => FakeReply.Applied(2);
        Task<SetResult> stuck = Wait.ForAsync(client.KeyValues.SetAsync("k", "on the silent leader"));
        FakeRequest held = cluster[1].Next();

        cluster[3].View = [(2, 6)];
        cluster[3].SendMap();
        await Wait.UntilAsync(async () => (await client.DescribeAsync()).Partitions[0].LeaderNodeId == 2);
        Assert.Equal(2, (await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"))).Revision.Value);

        // A node that has not heard of term 6 yet.
        cluster[1].SendMap();
        await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        Assert.Equal(new PartitionDescription(0, 2, 6), (await client.DescribeAsync()).Partitions[0]);
        // What the silent leader took goes to the new one as well, under the number that it has; an answer that comes
        // too late finds nobody.
        Assert.Equal(2, (await stuck).Revision.Value);
        held.Connection.Reply(held, FakeReply.Applied(1));
        await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        Assert.Single(cluster[2].Received, request =>
            (request.CallNumber.Session, request.CallNumber.Sequence)
                == (held.CallNumber.Session, held.CallNumber.Sequence));
        Assert.DoesNotContain(cluster[2].Received, static request => (request.WaitMs & Frame.ForwardFlag) != 0);
    }

    [Fact]
    public async Task A_silent_leader_is_asked_about_at_another_node()
    {
        ManualTime time = new();
        FakeCluster cluster = new(nodes: 2) { Leaders = [(1, 5)] };
        await using KahunaClient client = await cluster.ConnectedAsync(options => options.TimeProvider = time);
        cluster[2].Answer = static request => (request.WaitMs & Frame.ForwardFlag) != 0
            ? FakeReply.Found("new")
            : FakeReply.NotLeader(1);
        Task<GetResult> stuck = Wait.ForAsync(client.KeyValues.GetAsync("k"));
        cluster[1].Next();
        await Wait.UntilAsync(time, () => stuck.IsCompleted);
        Assert.Equal("new", (await stuck).Value.AsString());
        Assert.Equal("new", (await Wait.ForAsync(client.KeyValues.GetAsync("k"))).Value.AsString());
        Assert.Single(cluster[1].Received);
        Assert.Equal(2, cluster[2].Received.Count);
    }

    [Fact]
    public async Task A_leader_that_cannot_be_connected_to_is_asked_through_another_node()
    {
        ManualTime time = new();
        FakeCluster cluster = new(nodes: 2) { Leaders = [(1, 5)] };
        cluster[1].IsDown = true;
        cluster[2].Answer = static request => (request.WaitMs & Frame.ForwardFlag) != 0
            ? FakeReply.Applied(7)
            : FakeReply.NotLeader(1);
        await using KahunaClient client = cluster.Client(options => options.TimeProvider = time, 2);
        Task<SetResult> set = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        await Wait.UntilAsync(time, () => set.IsCompleted);
        Assert.Equal(7, (await set).Revision.Value);

        // From then on at once.
        int received = cluster[2].Received.Count;
        Assert.Equal(7, (await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"))).Revision.Value);
        Assert.Equal(received + 1, cluster[2].Received.Count);
    }

    [Fact]
    public async Task A_forwarded_call_is_sent_again_when_the_node_that_forwarded_it_leads()
    {
        ManualTime time = new();
        FakeCluster cluster = new(nodes: 2) { Leaders = [(1, 5)] };
        cluster[1].IsDown = true;
        cluster[2].Answer = static request => (request.WaitMs & Frame.ForwardFlag) != 0 ? null : FakeReply.NotLeader(1);
        await using KahunaClient client = cluster.Client(options => options.TimeProvider = time, 2);
        Task<SetResult> set = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        await Wait.UntilAsync(
            time, () => cluster[2].Received.Any(static request => (request.WaitMs & Frame.ForwardFlag) != 0));
        FakeRequest forwarded = cluster[2].Received.Last();
        cluster[2].Answer = static request => (request.WaitMs & Frame.ForwardFlag) != 0 ? null : FakeReply.Applied(7);
        cluster.Leaders = [(2, 6)];
        cluster[2].SendMap();
        await Wait.UntilAsync(time, () => set.IsCompleted);
        Assert.Equal(7, (await set).Revision.Value);
        FakeRequest again = cluster[2].Received.Last();
        Assert.NotSame(forwarded, again);
        Assert.Equal(
            (forwarded.CallNumber.Session, forwarded.CallNumber.Sequence),
            (again.CallNumber.Session, again.CallNumber.Sequence));
    }

    [Fact]
    public async Task A_question_that_waits_at_a_silent_leader_is_asked_again_at_the_new_one()
    {
        ManualTime time = new();
        FakeCluster cluster = new(nodes: 3) { Leaders = [(1, 5)] };
        await using KahunaClient client = await cluster.ConnectedAsync(options => options.TimeProvider = time);
        cluster[1].Answer = static request => request.Kind == CommandKind.LockAcquire
            ? new FakeReply(OutcomeStatus.Queued, 40, 1_000)
            : null;
        Task<LockHandle> acquire = Wait.ForAsync(
            client.Locks.AcquireAsync("a", TimeSpan.FromSeconds(30), TimeSpan.FromMinutes(1)));
        FakeRequest waits = cluster[1].Next();
        Assert.Equal(CommandKind.LockAwait, waits.Kind);
        Assert.InRange(waits.WaitingMs!.Value, 1, 10_000);
        cluster[2].Answer = static request => request.Kind == CommandKind.LockAwait
            ? new FakeReply(OutcomeStatus.Found, 40, 60_000)
            : FakeReply.Applied();
        cluster.Leaders = [(2, 6)];
        cluster[3].SendMap();
        await Wait.UntilAsync(
            time, () => cluster[2].Received.Any(static request => request.Kind == CommandKind.LockAwait));
        Assert.Equal(40, (await acquire).Token.Value);
    }

    [Fact]
    public async Task An_idempotency_key_stays_where_it_is_and_nothing_is_not_certain_after_a_lost_attempt()
    {
        ManualTime time = new();
        FakeCluster cluster = new(nodes: 2) { Leaders = [(1, 5)] };
        await using KahunaClient client = await cluster.ConnectedAsync(options => options.TimeProvider = time);
        cluster[2].Answer = static _ => new FakeReply(OutcomeStatus.NotFound);
        Task<SequenceRange> reserve = Wait.ForAsync(
            client.Sequences.ReserveAsync("s", 1, new SequenceOptions { IdempotencyKey = "key" }));
        cluster[1].Next();
        cluster.Leaders = [(2, 6)];
        cluster[2].SendMap();
        int steps = 0;
        await Wait.UntilAsync(time, () => ++steps > 100, stepMs: 50);
        Assert.Empty(cluster[2].Received);

        // A key that got nothing stays free, so the lost attempt may still be carried out.
        cluster[1].Break();
        await Wait.UntilAsync(time, () => reserve.IsCompleted);
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => reserve);
        Assert.Equal((KahunaErrorCode.SequenceNotFound, OperationOutcome.Unknown), (failure.Code, failure.Outcome));
    }

    [Fact]
    public async Task A_deposed_leader_that_answers_is_not_asked_twice()
    {
        ManualTime time = new();
        FakeCluster cluster = new(nodes: 2) { Leaders = [(1, 5)] };
        await using KahunaClient client = await cluster.ConnectedAsync(options => options.TimeProvider = time);
        cluster[2].Answer = static _ => FakeReply.Applied(8);
        Task<SetResult> set = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        FakeRequest held = cluster[1].Next();
        cluster.Leaders = [(2, 6)];
        cluster[2].SendMap();
        await Wait.UntilAsync(async () => (await client.DescribeAsync()).Partitions[0].LeaderNodeId == 2);
        held.Connection.Reply(held, new FakeReply(OutcomeStatus.Unknown));
        Assert.Equal(8, (await set).Revision.Value);
        time.Advance(TimeSpan.FromSeconds(2));
        Assert.Equal(8, (await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"))).Revision.Value);
        Assert.Equal(2, cluster[2].Received.Count);
        Assert.Equal(held.CallNumber, cluster[2].Received.First().CallNumber);
    }

    [Fact]
    public async Task Operations_wait_for_the_first_map()
    {
        FakeCluster cluster = new();
        cluster[1].IsMute = true;
        await using KahunaClient client = cluster.Client();
        Task<SetResult> set = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        await Wait.UntilAsync(() => cluster[1].Connects == 1);
        Assert.False(set.IsCompleted);
        cluster[1].Answer = static _ => FakeReply.Applied();
        cluster[1].Connection.SendEmpty(FrameKind.Hello, Kahuna.Wire.Limits.WireVersion);
        cluster[1].Connection.SendMap();
        Assert.True((await set).Applied);
    }

    [Fact]
    public async Task One_seed_is_enough_to_find_all_nodes_and_a_dead_seed_does_no_harm()
    {
        FakeCluster cluster = new(nodes: 3) { Leaders = [(3, 1)] };
        cluster[1].IsDown = true;
        cluster[2].Answer = static _ => FakeReply.NotLeader(3);
        cluster[3].Answer = static _ => FakeReply.Applied();
        await using KahunaClient client = cluster.Client(configure: null, 1, 2);
        Assert.True((await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"))).Applied);
        ClusterDescription description = await client.DescribeAsync();
        Assert.Equal("fake", description.ClusterId);
        Assert.Equal("1.2.3", description.ServerVersion);
        Assert.Equal([1, 2, 3], description.Nodes.Select(node => node.Id));
        Assert.Equal([false, true, true], description.Nodes.Select(node => node.IsConnected));
    }

    [Fact]
    public async Task A_node_of_another_cluster_is_refused()
    {
        FakeCluster cluster = new(nodes: 2) { Leaders = [(1, 1)] };
        cluster[1].Answer = static _ => FakeReply.Applied();
        cluster[2].ClusterId = "other";
        await using KahunaClient client = cluster.Client();
        await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        await Wait.UntilAsync(() => cluster[2].Connects >= 2);
        ClusterDescription description = await client.DescribeAsync();
        Assert.Equal("fake", description.ClusterId);
        Assert.True((await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"))).Applied);
    }

    [Fact]
    public async Task A_stopping_node_gets_nothing_new_and_answers_what_it_has()
    {
        FakeCluster cluster = new(nodes: 2) { Leaders = [(1, 1)] };
        await using KahunaClient client = await cluster.ConnectedAsync();
        Task<SetResult> first = Wait.ForAsync(client.KeyValues.SetAsync("k", "1"));
        FakeRequest held = cluster[1].Next();
        FakeConnection old = cluster[1].Connection;
        old.SendEmpty(FrameKind.GoAway);
        await Wait.UntilAsync(async () => !(await client.DescribeAsync()).Nodes[0].IsConnected);
        cluster[2].Answer = static _ => FakeReply.Applied(7);
        Assert.Equal(7, (await Wait.ForAsync(client.KeyValues.SetAsync("k", "2"))).Revision.Value);
        Assert.False(first.IsCompleted);
        cluster[1].IsDown = true;
        old.Reply(held, FakeReply.Applied(6));
        Assert.Equal(6, (await first).Revision.Value);
        await Wait.UntilAsync(() => old.IsEnded);
    }

    [Fact]
    public async Task Describe_says_why_no_node_can_be_reached()
    {
        ManualTime time = new();
        FakeCluster cluster = new(nodes: 2);
        cluster[1].IsDown = true;
        cluster[2].IsMute = true;
        await using KahunaClient client = cluster.Client(options => options.TimeProvider = time, 1, 2);
        Task<ClusterDescription> describe = Wait.ForAsync(client.DescribeAsync());
        await Wait.UntilAsync(time, () => describe.IsCompleted);
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => describe);
        Assert.Equal(KahunaErrorCode.Unavailable, failure.Code);
        Assert.Contains("within 5 s", failure.Message, StringComparison.Ordinal);
        Assert.Contains("node1:8082 (Connection refused)", failure.Message, StringComparison.Ordinal);
        Assert.Contains("node2:8082 (", failure.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_node_of_another_wire_version_is_named_in_the_failure()
    {
        ManualTime time = new();
        FakeCluster cluster = new();
        cluster[1].Version = 9;
        await using KahunaClient client = cluster.Client(options => options.TimeProvider = time);
        Task<ClusterDescription> describe = Wait.ForAsync(client.DescribeAsync());
        await Wait.UntilAsync(time, () => describe.IsCompleted);
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => describe);
        Assert.Contains("the node speaks wire version 9, this client 3", failure.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Busy_is_repeated_with_pauses_and_reported_at_the_deadline()
    {
        ManualTime time = new();
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync(time, TimeSpan.FromSeconds(2));
        cluster[1].Answer = request => new FakeReply(
            request.Connection.Node.Received.Count < 3 ? OutcomeStatus.Busy : OutcomeStatus.Applied, 1);
        Task<SetResult> set = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        await Wait.UntilAsync(time, () => set.IsCompleted);
        Assert.True((await set).Applied);
        Assert.Equal(3, cluster[1].Received.Count);

        cluster[1].Answer = static _ => new FakeReply(OutcomeStatus.Busy);
        Task<SetResult> refused = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        await Wait.UntilAsync(time, () => refused.IsCompleted);
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => refused);
        Assert.Equal(KahunaErrorCode.Overloaded, failure.Code);
        Assert.True(failure.IsSafeToRetry);
    }
}
