using Kahuna.Client;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Routing;

namespace Kahuna.Tests.Client;

/// <summary>Operations follow the newest map of slots, whichever node sends it.</summary>
public sealed class SlotRoutingTests
{
    private const string Key = "key";

    /// <summary>The map in which the key belongs to the second partition.</summary>
    private static readonly SlotMap s_moved = SlotMap.Initial(2).Move([Of(Key)])!;

    private readonly FakeCluster _cluster = new(nodes: 2, partitions: 2) { Leaders = [(1, 1), (2, 1)] };

    [Fact]
    public async Task A_map_that_a_node_sends_moves_new_operations_and_an_older_one_does_not()
    {
        await using KahunaClient client = await _cluster.ConnectedAsync();
        _cluster[1].Answer = static _ => FakeReply.Applied(1);
        _cluster[2].Answer = static _ => FakeReply.Applied(2);
        Assert.Equal(1, (await SetAsync(client)).Revision.Value);
        _cluster[2].Slots = s_moved;
        _cluster[2].SendMap();
        await Wait.UntilAsync(() => client.SlotMapVersion == 2);
        Assert.Equal(2, (await SetAsync(client)).Revision.Value);

        _cluster[1].Slots = SlotMap.Initial(2);
        _cluster[1].View = [(1, 3), (2, 1)];
        _cluster[1].SendMap();
        await Wait.UntilAsync(async () => (await client.DescribeAsync()).Partitions[0].Term == 3);
        Assert.Equal(2UL, client.SlotMapVersion);
        Assert.Equal(2, (await SetAsync(client)).Revision.Value);
    }

    [Fact]
    public async Task A_refusal_waits_for_the_map_that_it_speaks_of()
    {
        ManualTime time = new();
        await using KahunaClient client = await _cluster.ConnectedAsync(time, TimeSpan.FromSeconds(10));
        _cluster[1].Answer = static _ => new FakeReply(OutcomeStatus.SlotMoved, 2);
        _cluster[2].Answer = static _ => FakeReply.Applied(7);
        Task<SetResult> set = SetAsync(client);
        await Wait.UntilAsync(() => _cluster[1].Received.Count == 1);
        Assert.False(set.IsCompleted);
        _cluster[2].Slots = s_moved;
        _cluster[2].SendMap();

        // Without a moment of pause: the clock stands still.
        Assert.Equal(7, (await set).Revision.Value);
        Assert.Equal(
            _cluster[1].Received.First().CallNumber.Sequence, _cluster[2].Received.First().CallNumber.Sequence);
    }

    [Fact]
    public async Task A_refusal_goes_on_at_once_where_the_map_is_known()
    {
        ManualTime time = new();
        await using KahunaClient client = await _cluster.ConnectedAsync(time, TimeSpan.FromSeconds(10));
        _cluster[2].Answer = static _ => FakeReply.Applied(7);
        Task<SetResult> set = SetAsync(client);
        FakeRequest held = _cluster[1].Next();
        _cluster[2].Slots = s_moved;
        _cluster[2].SendMap();
        await Wait.UntilAsync(() => client.SlotMapVersion == 2);
        held.Connection.Reply(held, new FakeReply(OutcomeStatus.SlotMoved, 2));
        Assert.Equal(7, (await set).Revision.Value);
    }

    [Fact]
    public async Task A_map_that_never_comes_costs_pauses_and_ends_at_the_deadline()
    {
        ManualTime time = new();
        await using KahunaClient client = await _cluster.ConnectedAsync(time, TimeSpan.FromSeconds(2));
        foreach (FakeNode node in _cluster.Nodes)
        {
            node.Answer = static _ => new FakeReply(OutcomeStatus.SlotMoved, long.MaxValue);
        }

        Task<SetResult> set = SetAsync(client);
        await Wait.UntilAsync(time, () => set.IsCompleted);
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => set);
        Assert.Equal(OperationOutcome.DidNotHappen, failure.Outcome);
        Assert.InRange(_cluster.Nodes.Sum(static node => node.Received.Count), 2, 100);
    }

    [Fact]
    public async Task A_leader_is_believed_of_a_node_with_the_same_map_only()
    {
        ManualTime time = new();
        await using KahunaClient client = await _cluster.ConnectedAsync(time, TimeSpan.FromSeconds(10));
        _cluster[2].Answer = static _ => FakeReply.Applied(7);
        _cluster[1].Answer = static _ => new FakeReply(OutcomeStatus.NotLeader, 2, 2);
        Assert.Equal(7, (await SetAsync(client)).Revision.Value);
        Assert.Equal(1, (await client.DescribeAsync()).Partitions[0].LeaderNodeId);
        _cluster[1].Answer = static _ => new FakeReply(OutcomeStatus.NotLeader, 1, 2);
        Assert.Equal(7, (await SetAsync(client)).Revision.Value);
        Assert.Equal(2, (await client.DescribeAsync()).Partitions[0].LeaderNodeId);
    }

    private static Task<SetResult> SetAsync(KahunaClient client) => Wait.ForAsync(client.KeyValues.SetAsync(Key, "v"));

    private static SlotRange Of(string key)
    {
        ushort slot = (ushort)KeyRouting.Slot(System.Text.Encoding.UTF8.GetBytes(key));
        return new SlotRange(slot, slot, 1);
    }
}
