using Kahuna.Server.Partitions.Loops;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Partitions;

/// <summary>
/// What lay at a node while it stood still may be repeated elsewhere, done and forgotten: it must not begin its session
/// once more.
/// </summary>
public sealed class PauseTests
{
    private const int PauseMs = 10_000;
    private readonly ModelCluster _cluster = new(
        3, configure: options => options with { PlacementTicks = 1 << 20, PauseMs = PauseMs });
    private readonly NodeId _leader;
    private readonly NodeId _follower;

    public PauseTests()
    {
        _leader = _cluster.Elect();
        _follower = _cluster.Ids.First(id => id != _leader);
    }

    [Fact]
    public void A_node_that_stood_still_does_not_pass_on_what_opens_a_session()
    {
        Assert.Equal(OutcomeStatus.NotLeader, Do(_follower, Numbered(CommandFlags.Opening)));
        StandStill();
        Assert.Equal(OutcomeStatus.Unavailable, Do(_follower, Numbered(CommandFlags.Opening)));
        Assert.Equal(OutcomeStatus.NotLeader, Do(_follower, Numbered(CommandFlags.None)));
        _cluster.Tick((PauseMs / 50) + 1);
        Assert.Equal(OutcomeStatus.NotLeader, Do(_follower, Numbered(CommandFlags.Opening)));
    }

    /// <summary>
    /// A node can take in messages after a pause before its clock has ticked. They may have waited as long as the
    /// pause lasted: they do not say that its state is new.
    /// </summary>
    [Fact]
    public void What_lay_at_a_node_while_it_stood_still_does_not_make_its_state_new()
    {
        RaftCore core = _cluster[_follower.Value].Loops!.Group(0)!.Core;
        _cluster.Tick(20);
        NodeTime before = core.HeardLeaderAt;
        _cluster.Cut.Add(_follower);
        for (int i = 0; i < 3; i++)
        {
            TickOthers(PauseMs / 2);
        }

        _cluster.Cut.Clear();
        for (int i = 0; i < 5; i++)
        {
            TickOthers(50);
        }

        Assert.Equal(_leader, core.Leader);
        Assert.True(core.HeardLeaderAt - before < PauseMs);
        _cluster.Tick((PauseMs / 50) + 20);
        Assert.True(core.HeardLeaderAt - before > PauseMs);
    }

    [Fact]
    public void Who_led_all_the_time_takes_it_once_the_others_have_said_so()
    {
        StandStill();
        Assert.Equal(OutcomeStatus.Unavailable, Do(_leader, Numbered(CommandFlags.Opening)));
        Assert.Equal(OutcomeStatus.Applied, Do(_leader, Numbered(CommandFlags.Opening)));
    }

    [Fact]
    public void Who_leads_since_it_stood_still_refuses_it_for_a_while()
    {
        StandStill();
        _cluster.Cut.Add(_leader);
        NodeId next = _cluster.Elect();
        Assert.Equal(OutcomeStatus.Unavailable, Do(next, Numbered(CommandFlags.Opening)));
        Assert.Equal(OutcomeStatus.SessionUnknown, Do(next, Numbered(CommandFlags.None)));
        _cluster.Tick((PauseMs / 50) + 1);
        Assert.Equal(OutcomeStatus.Applied, Do(next, Numbered(CommandFlags.Opening)));
    }

    /// <summary>Half of the elections went to the one that refuses new sessions for a while.</summary>
    [Theory]
    [MemberData(nameof(Seeds))]
    public void Who_stood_still_is_not_elected_while_another_can_be(ulong seed)
    {
        ModelCluster cluster = new(3, configure: options => options with
        {
            PlacementTicks = 1 << 20,
            PauseMs = PauseMs,
            Seed = options.Seed + (seed * 0x9E3779B97F4A7C15),
        });
        NodeId leader = cluster.Elect();
        NodeId still = cluster.Ids.First(id => id != leader);
        cluster.Cut.Add(still);
        for (int i = 0; i < 3; i++)
        {
            cluster.Pass(PauseMs / 2);
            foreach (PartitionLoop loop in cluster.Ids.Where(id => id != still)
                .SelectMany(id => cluster[id.Value].Loops!.Loops.ToArray()))
            {
                loop.PostTick();
            }

            cluster.Settle();
        }

        cluster.Cut.Clear();
        cluster.Tick(2);
        Assert.Equal(leader, cluster.LeaderOf());
        cluster.Cut.Add(leader);
        NodeId next = cluster.Elect();
        Assert.NotEqual(still, next);
        Assert.NotEqual(leader, next);
    }

    public static TheoryData<ulong> Seeds => [.. Enumerable.Range(1, 12).Select(static seed => (ulong)seed)];

    private static byte[] Numbered(CommandFlags flags)
    {
        Command command = new()
        {
            Kind = CommandKind.Set,
            Durability = Durability.Persistent,
            Flags = CommandFlags.Session | flags,
            SessionId = 7,
            Sequence = 1,
            Key = "k"u8,
            Value = "v"u8,
        };
        ByteBuffer buffer = ByteBuffer.Rent();
        command.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    private void TickOthers(int ms)
    {
        _cluster.Pass(ms);
        foreach (PartitionLoop loop in _cluster.Ids.Where(id => id != _follower)
            .SelectMany(id => _cluster[id.Value].Loops!.Loops.ToArray()))
        {
            loop.PostTick();
        }

        _cluster.Settle();
    }

    private void StandStill()
    {
        _cluster.Pass(PauseMs + 1);
        _cluster.Tick();
    }

    private OutcomeStatus Do(NodeId node, byte[] command)
    {
        ModelSink sink = _cluster.Send(node, command);
        _cluster.Settle();
        return sink.Replies[0].Status;
    }
}
