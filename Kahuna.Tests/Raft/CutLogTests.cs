using System.Text;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Wire.Buffers;

namespace Kahuna.Tests.Raft;

/// <summary>The edges of the core's interface where logs are cut, states installed and votes withheld.</summary>
public sealed class CutLogTests
{
    private static readonly NodeId s_self = new(1);
    private static readonly NodeId s_leader = new(2);
    private static readonly NodeId s_other = new(3);

    [Fact]
    public void Restart_behind_a_cut()
    {
        RaftCore core = Core(new RaftStart(
            new HardState(new Term(3), default, new LogIndex(6)),
            [new TermRun(new LogIndex(6), new Term(3))],
            new LogIndex(7),
            new LogIndex(6),
            new LogIndex(5),
            new Term(3)));
        core.Restore(new LogIndex(7), Entries((3, "g")));
        Assert.Equal((5UL, 7UL, 6UL), (core.LogStart.Value, core.LastIndex.Value, core.CommitIndex.Value));
        core.CutThrough(new LogIndex(6));
        core.CutThrough(new LogIndex(4));
        core.CutThrough(new LogIndex(6));
        Assert.Equal(6UL, core.LogStart.Value);
        Assert.Throws<InvariantException>(() => core.CutThrough(new LogIndex(7)));
    }

    [Fact]
    public void Start_must_make_sense()
    {
        var five = new LogIndex(5);
        Assert.Throws<InvariantException>(() => Core(new RaftStart(State(3), [], five, five, five)));
        Assert.Throws<InvariantException>(() => Core(new RaftStart(State(3), [], five, five, default, new Term(1))));
        Assert.Throws<InvariantException>(
            () => Core(new RaftStart(State(3), [], new LogIndex(6), five, five, new Term(1))));
        Assert.Throws<InvariantException>(
            () => Core(new RaftStart(State(3), [], five, new LogIndex(4), five, new Term(1))));
        Assert.Throws<InvariantException>(() =>
            Core(new RaftStart(State(3), [new TermRun(five, new Term(1))], new LogIndex(6), five, five, new Term(1))));
        Assert.Throws<InvariantException>(() =>
            Core(new RaftStart(
                State(3),
                [new TermRun(new LogIndex(6), new Term(1))],
                new LogIndex(6),
                new LogIndex(6),
                five,
                new Term(2))));
        Assert.Throws<InvariantException>(() => Core(new RaftStart(State(3), [], five, five, five, new Term(4))));
        Assert.Equal(5UL, Core(new RaftStart(State(3), [], five, five, five, new Term(3))).LastIndex.Value);
    }

    [Fact]
    public void Append_that_begins_below_the_start_matches()
    {
        RaftCore core = Core(
            new RaftStart(State(2), [], new LogIndex(5), new LogIndex(5), new LogIndex(5), new Term(1)));
        var append = new RaftMessage
        {
            Kind = RaftMessageKind.Append,
            From = s_leader,
            To = s_self,
            Term = new Term(2),
            Index = new LogIndex(3),
            LogTerm = new Term(1),
        };
        core.Step(append with { EntryCount = 4 }, Entries((1, "d"), (1, "e"), (2, "f"), (2, "g")));
        Assert.Equal((new LogIndex(6), new LogIndex(7)), core.TakeReady().Unpersisted);
        RaftMessage reply = Assert.Single(core.TakeReady().Messages.ToArray()).Message;
        Assert.Equal((RaftMessageKind.AppendReply, 7UL, false), (reply.Kind, reply.Index.Value, reply.Reject));
        core.Advance();

        // Wholly below: everything that is committed here is acknowledged.
        core = Core(new RaftStart(State(2), [], new LogIndex(5), new LogIndex(5), new LogIndex(5), new Term(1)));
        core.Step(append with { EntryCount = 1 }, Entries((1, "d")));
        Assert.Equal(5UL, Assert.Single(core.TakeReady().Messages.ToArray()).Message.Index.Value);

        // Another entry where the log begins: a broken rule.
        Assert.Throws<InvariantException>(
            () => core.Step(append with { EntryCount = 2 }, Entries((1, "d"), (2, "not e"))));
    }

    [Fact]
    public void Refusal_never_names_an_index_below_the_commit_index()
    {
        RaftCore core = Core(
            new RaftStart(State(2), [], new LogIndex(5), new LogIndex(5), new LogIndex(5), new Term(2)));
        core.Step(
            new RaftMessage
            {
                Kind = RaftMessageKind.Append,
                From = s_leader,
                To = s_self,
                Term = new Term(2),
                Index = new LogIndex(9),
                LogTerm = new Term(1),
            },
            []);
        RaftMessage reply = Assert.Single(core.TakeReady().Messages.ToArray()).Message;
        Assert.Equal((true, 5UL, 2UL), (reply.Reject, reply.Hint.Value, reply.LogTerm.Value));
    }

    [Fact]
    public void Installed_state_replaces_the_log()
    {
        RaftCore core = Core(new RaftStart(State(1), [], default, default));
        core.Step(
            new RaftMessage
            {
                Kind = RaftMessageKind.Append,
                From = s_leader,
                To = s_self,
                Term = new Term(1),
                EntryCount = 2,
                Commit = new LogIndex(1),
            },
            Entries((1, "a"), (1, "b")));
        Drain(core);
        Assert.Equal(1UL, core.CommitIndex.Value);

        // Not below the commit index, and not where the log has the same entry.
        Assert.False(core.InstallSnapshot(new LogIndex(1), new Term(1)));
        Assert.False(core.InstallSnapshot(new LogIndex(2), new Term(1)));
        Assert.Equal((0UL, 2UL, 1UL), (core.LogStart.Value, core.LastIndex.Value, core.CommitIndex.Value));

        Assert.True(core.InstallSnapshot(new LogIndex(9), new Term(1)));
        var nine = new LogIndex(9);
        Assert.Equal((nine, nine, nine, nine), (core.LogStart, core.LastIndex, core.CommitIndex, core.DurableIndex));
        Assert.True(core.TakeReady().HardStateChanged);
        Assert.Equal(9UL, core.TakeReady().HardState.Commit.Value);
        Assert.True(core.TakeReady().Unpersisted.First > core.TakeReady().Unpersisted.Last);
        Assert.True(core.TakeReady().Committed.First > core.TakeReady().Committed.Last);
        OutgoingMessage reply = Assert.Single(core.TakeReady().Messages.ToArray());
        Assert.Equal((s_leader, 9UL, true), (reply.Message.To, reply.Message.Index.Value, reply.AfterDurable));
        Assert.Throws<InvariantException>(() => core.InstallSnapshot(new LogIndex(20), new Term(1)));
        Drain(core);
        Assert.False(core.InstallSnapshot(nine, new Term(1)));
        core.Step(
            new RaftMessage
            {
                Kind = RaftMessageKind.Append,
                From = s_leader,
                To = s_self,
                Term = new Term(1),
                Index = nine,
                LogTerm = new Term(1),
                EntryCount = 1,
            },
            Entries((1, "j")));
        Assert.Equal((new LogIndex(10), new LogIndex(10)), core.TakeReady().Unpersisted);
    }

    [Fact]
    public void Installed_state_of_a_later_term_brings_its_term()
    {
        RaftCore core = Core(new RaftStart(State(1), [], default, default));
        Assert.True(core.InstallSnapshot(new LogIndex(9), new Term(4)));
        Assert.Equal(new HardState(new Term(4), default, new LogIndex(9)), core.TakeReady().HardState);
        Assert.Empty(core.TakeReady().Messages.ToArray());
    }

    [Fact]
    public void Leader_installs_nothing()
    {
        RaftCore core = Leader();
        Assert.False(core.InstallSnapshot(new LogIndex(100), new Term(1)));
        core.SnapshotEnded(s_leader, new LogIndex(100), installed: true);
        core.SnapshotEnded(new NodeId(9), new LogIndex(1), installed: false);
        core.ForgetFollower(new NodeId(9));
        Assert.False(core.AwaitsSnapshot(s_leader));
        Assert.Equal(1UL, core.LastIndex.Value);
    }

    [Fact]
    public void Anybody_answers_a_question_for_its_term()
    {
        var query = new RaftMessage { Kind = RaftMessageKind.TermQuery, From = s_other, To = s_self, Round = 77 };
        RaftCore follower = Core(new RaftStart(default, [], default, default));
        follower.Step(query with { From = new NodeId(9) }, []);
        Assert.False(follower.PrepareReady());
        follower.Step(query with { Term = new Term(50) }, []);
        OutgoingMessage reply = Assert.Single(follower.TakeReady().Messages.ToArray());
        Assert.Equal(
            (RaftMessageKind.TermReply, s_other, 0UL, 77UL, 0UL, false),
            (
                reply.Message.Kind,
                reply.Message.To,
                reply.Message.Term.Value,
                reply.Message.Round,
                reply.Message.Index.Value,
                reply.AfterDurable));
        Assert.Equal(0UL, follower.Term.Value);
        follower.Advance();

        // A term is not reported before it is on the disk.
        follower.Step(
            new RaftMessage { Kind = RaftMessageKind.Heartbeat, From = s_leader, To = s_self, Term = new Term(6) }, []);
        follower.Step(query, []);
        OutgoingMessage late = Assert.Single(
            follower.TakeReady().Messages.ToArray(), outgoing => outgoing.Message.Kind == RaftMessageKind.TermReply);
        Assert.Equal((6UL, true), (late.Message.Term.Value, late.AfterDurable));

        RaftCore leader = Leader();
        leader.Step(query, []);
        Assert.Equal(1UL, Assert.Single(leader.TakeReady().Messages.ToArray()).Message.Index.Value);
        leader.Advance();
        leader.Step(query with { Kind = RaftMessageKind.TermReply, Term = new Term(50), Index = new LogIndex(9) }, []);
        Assert.Equal((RaftRole.Leader, 1UL), (leader.Role, leader.Term.Value));
    }

    [Fact]
    public void Rejoining_waits_for_answers_to_its_own_questions()
    {
        RaftCore core = Core(new RaftStart(default, [], default, default) { Voting = VotingRight.Rejoining });
        core.Tick();
        Assert.Equal([s_leader, s_other], core.TakeReady().Messages.ToArray().Select(outgoing => outgoing.Message.To));
        ulong round = core.TakeReady().Messages[0].Message.Round;
        core.Advance();

        var reply = new RaftMessage
        {
            Kind = RaftMessageKind.TermReply,
            From = s_leader,
            To = s_self,
            Term = new Term(4),
            Index = new LogIndex(1),
            Round = round,
        };
        core.Step(reply, []);
        core.Step(reply, []);
        core.Step(reply with { From = s_other, Index = default, Round = round + 1, Term = new Term(9) }, []);
        Assert.Equal(0UL, core.Term.Value);
        core.Step(reply with { From = s_other, Index = default, Term = new Term(3) }, []);
        Assert.Equal(new HardState(new Term(4), s_self, default), core.TakeReady().HardState);
        core.Advance();
        Assert.False(core.CanRejoin);
        Assert.Throws<InvariantException>(core.AllowVoting);

        // Restored by the leader of term 4, and durable.
        core.Step(
            new RaftMessage
            {
                Kind = RaftMessageKind.Append,
                From = s_leader,
                To = s_self,
                Term = new Term(4),
                EntryCount = 1,
            },
            Entries((4, "a")));
        Drain(core);
        Assert.False(core.CanRejoin);
        core.Persisted(new LogIndex(1), new Term(4));
        Assert.True(core.CanRejoin);
        Assert.False(core.IsVoting);
        core.AllowVoting();
        Assert.True(core.IsVoting);
        Assert.False(core.CanRejoin);
    }

    [Fact]
    public void Heartbeat_does_not_commit_what_a_lost_log_acknowledged()
    {
        RaftCore core = Core(new RaftStart(default, [], default, default) { Voting = VotingRight.Rejoining });
        core.Step(
            new RaftMessage
            {
                Kind = RaftMessageKind.Append,
                From = s_other,
                To = s_self,
                Term = new Term(1),
                EntryCount = 2,
            },
            Entries((1, "x"), (1, "y")));
        core.Step(
            new RaftMessage
            {
                Kind = RaftMessageKind.Heartbeat,
                From = s_leader,
                To = s_self,
                Term = new Term(2),
                Index = new LogIndex(5),
                Commit = new LogIndex(5),
            },
            []);
        Assert.Equal(0UL, core.CommitIndex.Value);
    }

    [Fact]
    public void Only_voter_has_nobody_to_mislead()
    {
        var config = new RaftConfig { Self = s_self, Group = new GroupId(1), Voters = [s_self], Seed = 1 };
        var core = new RaftCore(
            config, new RaftStart(default, [], default, default) { Voting = VotingRight.Rejoining });
        Assert.True(core.IsVoting);
        core.Campaign();
        Drain(core);
        core.Step(
            new RaftMessage { Kind = RaftMessageKind.VoteReply, From = s_self, To = s_self, Term = new Term(1) }, []);
        Assert.Equal(RaftRole.Leader, core.Role);
    }

    private static HardState State(ulong term) => new(new Term(term), default, default);

    private static RaftCore Core(RaftStart start) =>
        new(
            new RaftConfig { Self = s_self, Group = new GroupId(1), Voters = [s_self, s_leader, s_other], Seed = 1 },
            start);

    private static RaftCore Leader()
    {
        RaftCore core = Core(new RaftStart(default, [], default, default));
        core.Campaign();
        core.Step(
            new RaftMessage { Kind = RaftMessageKind.PreVoteReply, From = s_leader, To = s_self, Term = new Term(1) },
            []);
        core.Step(
            new RaftMessage { Kind = RaftMessageKind.VoteReply, From = s_leader, To = s_self, Term = new Term(1) }, []);
        core.Step(
            new RaftMessage { Kind = RaftMessageKind.VoteReply, From = s_self, To = s_self, Term = new Term(1) }, []);
        Assert.Equal(RaftRole.Leader, core.Role);
        Drain(core);
        return core;
    }

    private static void Drain(RaftCore core)
    {
        while (core.PrepareReady())
        {
            _ = core.TakeReady().Unpersisted;
            core.Advance();
        }
    }

    private static byte[] Entries(params (ulong Term, string Text)[] entries)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        foreach ((ulong term, string text) in entries)
        {
            EntryCodec.Write(buffer, new Term(term), EntryKind.Commands, Encoding.ASCII.GetBytes(text));
        }

        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }
}
