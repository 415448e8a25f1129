using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Tests.Raft;

/// <summary>
/// A leader whose majority answers heartbeats and commits nothing (docs/adr/0020-failover.md). Node 1 leads, node 2
/// answers and stores, node 3 answers and its disk is stalled, the others are not heard.
/// </summary>
public sealed class StuckLeaderTests
{
    private const int ElectionTicks = 10;

    [Fact]
    public void It_steps_down_after_two_election_timeouts_when_a_majority_may_be_left()
    {
        RaftCore core = Leader(voters: 5);
        Assert.True(core.TryPropose(EntryKind.Commands, 1, out _, out _));
        Assert.Equal(2 * ElectionTicks, TicksUntilItStepsDown(core, isStalled: true));
    }

    [Theory]
    [InlineData(5, false)]
    [InlineData(4, true)]
    [InlineData(3, true)]
    public void It_stays_when_the_disk_works_or_no_majority_is_left_without_it(int voters, bool isStalled)
    {
        RaftCore core = Leader(voters);
        Assert.True(core.TryPropose(EntryKind.Commands, 1, out _, out _));
        Assert.Null(TicksUntilItStepsDown(core, isStalled));
    }

    [Fact]
    public void It_steps_down_when_the_third_one_waits_for_a_snapshot()
    {
        RaftCore core = Leader(voters: 5);
        core.CutThrough(core.CommitIndex);
        while (core.Role == RaftRole.Leader)
        {
            core.Tick();
        }

        core.Campaign();
        Elect(core);
        RaftMessage refusal = Message(3, RaftMessageKind.AppendReply, core.Term);
        core.Step(refusal with { Reject = true, Index = core.LastIndex.Previous() }, []);
        Drain(core);
        Assert.True(core.AwaitsSnapshot(new NodeId(3)));
        Assert.Equal(2 * ElectionTicks, TicksUntilItStepsDown(core, isStalled: false));
    }

    [Fact]
    public void It_waits_twice_as_long_each_time_until_it_has_committed_something_and_lets_others_go_first()
    {
        RaftCore core = Leader(voters: 5);
        for (int patience = 1; patience <= 8; patience *= 2)
        {
            core.TryPropose(EntryKind.Commands, 1, out _, out _);
            Assert.Equal(2 * patience * ElectionTicks, TicksUntilItStepsDown(core, isStalled: true));
            int ticks = 0;
            for (; core.Role == RaftRole.Follower; ticks++)
            {
                core.Tick();
            }

            Assert.InRange(ticks, 3 * ElectionTicks, 4 * ElectionTicks);
            Elect(core);
        }

        core.Persisted(core.LastIndex, core.Term);
        Send(core, 2, RaftMessageKind.AppendReply, core.LastIndex);
        Send(core, 3, RaftMessageKind.AppendReply, core.LastIndex);
        Assert.Equal(core.LastIndex, core.CommitIndex);
        Assert.True(core.TryPropose(EntryKind.Commands, 1, out _, out _));
        Assert.Equal(2 * ElectionTicks, TicksUntilItStepsDown(core, isStalled: true));
    }

    [Fact]
    public void It_stays_while_nothing_waits_to_be_committed()
    {
        RaftCore core = Leader(voters: 5);
        Assert.Null(TicksUntilItStepsDown(core, isStalled: true));
    }

    private static int? TicksUntilItStepsDown(RaftCore core, bool isStalled)
    {
        for (int tick = 0; tick < 40 * ElectionTicks; tick++)
        {
            core.Tick();
            if (core.Role != RaftRole.Leader)
            {
                return tick + 1;
            }

            Send(core, 2, RaftMessageKind.HeartbeatReply, core.LastIndex);
            Send(core, 3, RaftMessageKind.HeartbeatReply, core.CommitIndex, isStalled);
            Drain(core);
        }

        return null;
    }

    /// <summary>The leader of the next term, with its first entry committed.</summary>
    private static RaftCore Leader(int voters)
    {
        RaftConfig config = new()
        {
            Self = new NodeId(1),
            Group = new GroupId(1),
            Voters = [.. Enumerable.Range(1, voters).Select(static id => new NodeId((byte)id))],
            ElectionTicks = ElectionTicks,
            Seed = 1,
        };
        RaftCore core = new(
            config, new RaftStart(new HardState(new Term(1), new NodeId(2), default), [], default, default));
        core.Campaign();
        Elect(core);
        Assert.Equal(new Term(2), core.Term);
        core.Persisted(core.LastIndex, core.Term);
        Send(core, 2, RaftMessageKind.AppendReply, core.LastIndex);
        Send(core, 3, RaftMessageKind.AppendReply, core.LastIndex);
        Drain(core);
        Assert.Equal(core.LastIndex, core.CommitIndex);
        return core;
    }

    /// <summary>Nodes 2 and 3 vote for it.</summary>
    private static void Elect(RaftCore core)
    {
        Term next = core.Term.Next();
        for (int id = 2; id <= 3; id++)
        {
            core.Step(Message(id, RaftMessageKind.PreVoteReply, next), []);
        }

        for (int id = 1; id <= 3; id++)
        {
            core.Step(Message(id, RaftMessageKind.VoteReply, next), []);
        }

        Assert.Equal(RaftRole.Leader, core.Role);
        Drain(core);
    }

    private static RaftMessage Message(int from, RaftMessageKind kind, Term term) =>
        new() { Kind = kind, From = new NodeId((byte)from), To = new NodeId(1), Term = term };

    private static void Send(
        RaftCore core, int from, RaftMessageKind kind, LogIndex index, bool isStalled = false) => core.Step(
            Message(from, kind, core.Term) with { Index = index, Hint = index, Stalled = isStalled }, []);

    private static void Drain(RaftCore core)
    {
        while (core.PrepareReady())
        {
            core.TakeReady();
            core.Advance();
        }
    }
}
