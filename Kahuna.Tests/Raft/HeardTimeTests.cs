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

    /// <summary>
    /// A leader that was paused says for a moment that it leads. What it knows is as old as its majority's last answer.
    /// </summary>
    [Fact]
    public void A_heartbeat_is_as_old_as_the_last_answer_of_a_majority_to_its_sender()
    {
        RaftCore core = ReadLeaseTests.Follower();
        core.Now = new NodeTime(20_000);
        core.Step(ReadLeaseTests.HeartbeatOf(s_leader) with { AgeMs = 12_000 }, []);
        Assert.Equal(new NodeTime(8_000), core.HeardLeaderAt);
        core.Step(ReadLeaseTests.HeartbeatOf(s_leader) with { AgeMs = 13_000 }, []);
        Assert.Equal(new NodeTime(8_000), core.HeardLeaderAt);
        core.Step(ReadLeaseTests.HeartbeatOf(s_leader) with { AgeMs = long.MaxValue }, []);
        Assert.Equal(new NodeTime(8_000), core.HeardLeaderAt);
    }

    /// <summary>It does not say how old it is.</summary>
    [Fact]
    public void An_append_does_not_make_a_state_new()
    {
        RaftCore core = ReadLeaseTests.Follower();
        core.Now = new NodeTime(1_000);
        core.Step(ReadLeaseTests.HeartbeatOf(s_leader), []);
        core.Now = new NodeTime(9_000);
        core.Step(ReadLeaseTests.HeartbeatOf(s_leader) with { Kind = RaftMessageKind.Append }, []);
        Assert.Equal(s_leader, core.Leader);
        Assert.Equal(new NodeTime(1_000), core.HeardLeaderAt);
    }

    [Fact]
    public void A_heartbeat_says_when_a_majority_last_answered()
    {
        RaftCore core = ReadLeaseTests.Leader();
        core.Now = new NodeTime(2_000);
        ReadLeaseTests.Answer(core, 0, 0);
        core.Now = new NodeTime(2_150);
        core.Tick();
        RaftMessage[] sent = [.. ReadLeaseTests.Drain(core).Where(static m => m.Kind == RaftMessageKind.Heartbeat)];
        Assert.NotEmpty(sent);
        Assert.All(sent, static message => Assert.Equal(150, message.AgeMs));
    }

    /// <summary>What arrives after a pause may have waited as long as the pause lasted.</summary>
    [Fact]
    public void What_a_member_hears_shortly_after_a_pause_does_not_count()
    {
        RaftCore core = ReadLeaseTests.Follower();
        core.Now = new NodeTime(1_000);
        core.Step(ReadLeaseTests.HeartbeatOf(s_leader), []);
        core.Now = new NodeTime(30_000);
        core.IsReluctant = true;
        core.Step(ReadLeaseTests.HeartbeatOf(s_leader), []);
        Assert.Equal(new NodeTime(1_000), core.HeardLeaderAt);
        core.IsReluctant = false;
        core.Step(ReadLeaseTests.HeartbeatOf(s_leader), []);
        Assert.Equal(new NodeTime(30_000), core.HeardLeaderAt);
    }

    [Fact]
    public void What_a_leader_hears_shortly_after_a_pause_does_not_count()
    {
        RaftCore core = ReadLeaseTests.Leader();
        core.Now = new NodeTime(2_000);
        ReadLeaseTests.Answer(core, 0, 0);
        core.Now = new NodeTime(30_000);
        core.IsReluctant = true;
        ReadLeaseTests.Answer(core, 0, 0);
        Assert.Equal(new NodeTime(2_000), core.HeardMajorityAt);
        core.IsReluctant = false;
        ReadLeaseTests.Answer(core, 0, 0);
        Assert.Equal(new NodeTime(30_000), core.HeardMajorityAt);
    }

    [Fact]
    public void A_leader_that_is_alone_always_hears_the_majority()
    {
        RaftConfig config = new() { Self = new NodeId(1), Group = new GroupId(1), Voters = [new NodeId(1)], Seed = 1 };
        RaftCore core = new(config, new RaftStart(default, [], default, default)) { Now = new NodeTime(7_000) };
        Assert.Equal(new NodeTime(7_000), core.HeardMajorityAt);
    }
}
