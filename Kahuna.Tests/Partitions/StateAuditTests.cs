using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Partitions;

/// <summary>
/// Members compare their states while they run: a member that applied something differently stops, and the others go
/// on.
/// </summary>
public sealed class StateAuditTests
{
    private const int MinuteTicks = 1_200;

    [Fact]
    public void Follower_whose_state_differs_stops_and_the_others_go_on()
    {
        ModelCluster cluster = Running(3);
        Spoil(cluster, 3);
        cluster.Tick(MinuteTicks + 40);
        Assert.Contains("--rebuild", Assert.Single(cluster[3].Failures).Message, StringComparison.Ordinal);
        Assert.True(Partition(cluster, 3).Failed);
        Assert.Empty(cluster[1].Failures);
        Assert.Empty(cluster[2].Failures);
        Assert.Equal(OutcomeStatus.Applied, Write(cluster));
    }

    [Fact]
    public void Leader_whose_state_differs_stops_and_another_one_leads()
    {
        ModelCluster cluster = Running(3);
        Assert.Equal(new NodeId(1), cluster.LeaderOf());
        Spoil(cluster, 1);
        cluster.Tick(MinuteTicks + 40);
        Assert.Single(cluster[1].Failures);
        cluster.Cut.Add(new NodeId(1));
        cluster.Elect();
        Assert.Empty(cluster[2].Failures);
        Assert.Empty(cluster[3].Failures);
        Assert.Equal(OutcomeStatus.Applied, Write(cluster));
    }

    [Fact]
    public void Without_a_majority_for_any_state_all_stop_once_all_have_answered()
    {
        ModelCluster cluster = Running(3);
        Spoil(cluster, 1);
        Spoil(cluster, 2);
        cluster.Cut.Add(new NodeId(3));
        cluster.Tick(MinuteTicks + 40);

        // Who is right cannot be told without the third.
        Assert.Empty(cluster[1].Failures);
        Assert.Contains(cluster[1].Lines, line => line.Contains("differ at entry", StringComparison.Ordinal));
        cluster.Cut.Clear();
        cluster.Tick((2 * MinuteTicks) + 40);

        // One after the other, as they lead; the last ones are no majority.
        string[] reasons =
            [.. cluster.Ids.SelectMany(id => cluster[id.Value].Failures).Select(static failure => failure.Message)];
        Assert.InRange(reasons.Length, 2, 3);
        Assert.All(
            reasons, static reason => Assert.Contains("no digest has a majority", reason, StringComparison.Ordinal));

        // The verdict is in the logs, and no log says yet that it is committed: the next leader commits it. Nobody
        // stops at it again.
        foreach (NodeId id in cluster.Ids)
        {
            cluster.Crash(id);
        }

        foreach (NodeId id in cluster.Ids)
        {
            cluster.Start(id);
        }

        cluster.Elect();
        cluster.Tick(100);
        Assert.Equal(OutcomeStatus.Applied, Write(cluster));
        Assert.All(cluster.Ids, id => Assert.Empty(cluster[id.Value].Failures));
    }

    [Fact]
    public void Equal_states_stop_nobody_and_a_quiet_partition_is_left_alone()
    {
        ModelCluster cluster = Running(3);
        cluster.Tick(3 * MinuteTicks);
        ulong last = Partition(cluster, 1).Applied.Value;
        cluster.Tick(10 * MinuteTicks);
        Assert.Equal(last, Partition(cluster, 1).Applied.Value);
        Assert.All(cluster.Ids, id => Assert.Empty(cluster[id.Value].Failures));
    }

    [Fact]
    public void Restart_that_replays_a_verdict_against_it_does_not_serve()
    {
        ModelCluster cluster = Running(3);
        cluster.Tick(MinuteTicks + 40);

        // So that its log says that the verdict is committed.
        Write(cluster);
        Write(cluster);
        cluster.Crash(new NodeId(3));
        cluster[3].Log.Changes = static payload => payload.Length > 40
            ? [.. payload[..^1], (byte)(payload[^1] + 1)]
            : payload;
        cluster.Start(new NodeId(3));
        Assert.True(Partition(cluster, 3).Failed);
        Assert.Contains("--rebuild", Assert.Single(cluster[3].Failures).Message, StringComparison.Ordinal);
    }

    private static ModelCluster Running(int nodes)
    {
        ModelCluster cluster = new(nodes);
        cluster.Elect();
        cluster.Tick(100);
        Assert.Equal(OutcomeStatus.Applied, Write(cluster));
        return cluster;
    }

    /// <summary>What an apply that is not deterministic would do: this node alone has another value.</summary>
    private static void Spoil(ModelCluster cluster, int node)
    {
        Command command = new()
        {
            Kind = CommandKind.Set,
            Durability = Durability.Persistent,
            Key = "spoiled"u8,
            Value = [(byte)node],
        };
        Partition(cluster, node).State.Apply(command, null);
    }

    private static OutcomeStatus Write(ModelCluster cluster)
    {
        ModelSink sink = cluster.Send(
            cluster.LeaderOf(), (CommandKind.Set, "k", "a value of some length, so that it is known in the log"));
        cluster.Settle();
        return sink.Replies[0].Status;
    }

    private static Group Partition(ModelCluster cluster, int node) => cluster[node].Loops!.Group(0);
}
