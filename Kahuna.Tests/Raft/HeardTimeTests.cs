using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Tests.Raft;

/// <summary>
/// When a member last heard its leader, and a leader a majority: what a node says of the age of its state rests on it.
/// It is told by the clock. Ticks can be late, and a group that stands still counts none.
/// </summary>
public sealed class HeardTimeTests
{
    private static readonly NodeId s_leader = new(2);

    [Theory]
    [InlineData(0)]
    [InlineData(3)]
    public void A_member_heard_its_leader_when_the_message_came_however_few_ticks_have_passed(int ticks)
    {
        RaftCore core = ReadLeaseTests.Follower();
        core.Now = new NodeTime(1_000);
        core.Step(ReadLeaseTests.HeartbeatOf(s_leader), []);
        core.Now = new NodeTime(9_000);
        for (int i = 0; i < ticks; i++)
        {
            core.Tick();
        }

        Assert.Equal(new NodeTime(1_000), core.HeardLeaderAt);
        core.Step(ReadLeaseTests.HeartbeatOf(s_leader), []);
        Assert.Equal(new NodeTime(9_000), core.HeardLeaderAt);
    }

    [Fact]
    public void A_leader_heard_a_majority_when_the_last_of_it_answered()
    {
        RaftCore core = ReadLeaseTests.Leader();
        core.Now = new NodeTime(2_000);
        ReadLeaseTests.Answer(core, 0, 0);
        core.Now = new NodeTime(9_000);
        Assert.Equal(new NodeTime(2_000), core.HeardMajorityAt);
        ReadLeaseTests.Answer(core, 0, 0);
        Assert.Equal(new NodeTime(9_000), core.HeardMajorityAt);
    }

    [Fact]
    public void A_leader_that_is_alone_always_hears_the_majority()
    {
        RaftConfig config = new() { Self = new NodeId(1), Group = new GroupId(1), Voters = [new NodeId(1)], Seed = 1 };
        RaftCore core = new(config, new RaftStart(default, [], default, default)) { Now = new NodeTime(7_000) };
        Assert.Equal(new NodeTime(7_000), core.HeardMajorityAt);
    }
}
