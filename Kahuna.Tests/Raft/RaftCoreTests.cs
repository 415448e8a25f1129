using System.Text;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Wire.Buffers;

namespace Kahuna.Tests.Raft;

/// <summary>
/// Edge cases of the core's interface: malformed messages, broken invariants, stale confirmations, restarts.
/// </summary>
public sealed class RaftCoreTests
{
    private static readonly NodeId s_self = new(1);
    private static readonly NodeId s_leader = new(2);

    [Fact]
    public void Malformed_appends_change_nothing()
    {
        RaftCore core = Follower();
        byte[] good = Entries((1, "a"), (1, "b"));
        var append = new RaftMessage
        {
            Kind = RaftMessageKind.Append,
            From = s_leader,
            To = s_self,
            Term = new Term(1),
            EntryCount = 2,
        };

        core.Step(append with { EntryCount = 3 }, good);
        core.Step(append with { EntryCount = -1 }, good);
        core.Step(append, good.AsSpan(0, good.Length - 1));
        core.Step(append, Entries((2, "later term than the leader's"), (2, "b")));
        core.Step(append, Entries((1, "terms that decrease"), (0, "b")));
        core.Step(append with { Index = new LogIndex(ulong.MaxValue) }, good);
        core.Step(append with { LogTerm = new Term(1) }, good);
        core.Step(append with { Index = new LogIndex(5), LogTerm = default }, good);
        core.Step(append with { Term = new Term(ulong.MaxValue) }, good);
        core.Step(append with { From = new NodeId(9) }, good);
        core.Step(append with { To = new NodeId(3) }, good);
        core.Step(append with { Kind = (RaftMessageKind)77 }, good);
        Assert.Equal(0UL, core.LastIndex.Value);
        Assert.Equal(0UL, core.CommitIndex.Value);
        Assert.Equal(1UL, core.Term.Value);

        core.Step(append, good);
        Assert.Equal(2UL, core.LastIndex.Value);
    }

    [Fact]
    public void Garbage_answers_do_not_move_a_leader()
    {
        RaftCore core = Leader();
        var reply =
            new RaftMessage { Kind = RaftMessageKind.AppendReply, From = s_leader, To = s_self, Term = core.Term };
        core.Step(reply with { Index = new LogIndex(1000) }, []);
        core.Step(
            reply with { Index = new LogIndex(1000), Hint = new LogIndex(2000), LogTerm = new Term(7), Reject = true },
            []);
        core.Step(
            reply with
            {
                Kind = RaftMessageKind.HeartbeatReply,
                Index = new LogIndex(1000),
                Hint = new LogIndex(2000),
                Round = 99,
            },
            []);
        Drain(core);
        Assert.Equal(RaftRole.Leader, core.Role);
        Assert.Equal(0UL, core.MatchIndex(s_leader).Value);
        Assert.Equal(0UL, core.CommitIndex.Value);
    }

    [Fact]
    public void Second_leader_in_one_term_breaks_a_rule()
    {
        RaftCore core = Follower();
        var heartbeat =
            new RaftMessage { Kind = RaftMessageKind.Heartbeat, From = s_leader, To = s_self, Term = new Term(1) };
        core.Step(heartbeat, []);
        Assert.Throws<InvariantException>(() => core.Step(heartbeat with { From = new NodeId(3) }, []));
    }

    [Fact]
    public void Cutting_a_committed_entry_breaks_a_rule()
    {
        RaftCore core = Follower();
        var append = new RaftMessage
        {
            Kind = RaftMessageKind.Append,
            From = s_leader,
            To = s_self,
            Term = new Term(1),
            EntryCount = 2,
            Commit = new LogIndex(2),
        };
        core.Step(append, Entries((1, "a"), (1, "b")));
        Drain(core);
        Assert.Throws<InvariantException>(() => core.Step(
            append with
            {
                From = new NodeId(3),
                Term = new Term(3),
                Index = new LogIndex(1),
                LogTerm = new Term(1),
                EntryCount = 1,
            },
            Entries((3, "other"))));
    }

    [Fact]
    public void Stale_confirmations_are_ignored()
    {
        RaftCore core = Follower();
        var append = new RaftMessage
        {
            Kind = RaftMessageKind.Append,
            From = s_leader,
            To = s_self,
            Term = new Term(1),
            EntryCount = 2,
        };
        core.Step(append, Entries((1, "a"), (1, "b")));
        Drain(core);
        core.Step(
            append with
            {
                From = new NodeId(3),
                Term = new Term(2),
                Index = new LogIndex(1),
                LogTerm = new Term(1),
                EntryCount = 1,
            },
            Entries((2, "c")));
        core.Persisted(new LogIndex(2), new Term(2));
        Assert.Equal(0UL, core.DurableIndex.Value);

        // Storage must begin again where the log was cut.
        Assert.Equal((new LogIndex(2), new LogIndex(2)), core.TakeReady().Unpersisted);
        core.Advance();
        core.Persisted(new LogIndex(2), new Term(1));
        Assert.Equal(0UL, core.DurableIndex.Value);
        core.Persisted(new LogIndex(2), new Term(2));
        Assert.Equal(2UL, core.DurableIndex.Value);
    }

    [Fact]
    public void Open_ready_stands_still()
    {
        RaftCore core = Leader();
        Assert.True(core.TryPropose(EntryKind.Commands, "a"u8, out LogIndex index));
        Assert.Equal(index, core.TakeReady().Unpersisted.Last);
        Assert.True(core.TryPropose(EntryKind.Commands, "b"u8, out LogIndex later));
        Assert.Equal(index, core.TakeReady().Unpersisted.Last);
        core.Advance();
        Assert.True(core.PrepareReady());
        Assert.Equal((later, later), core.TakeReady().Unpersisted);
        core.Advance();
        Assert.False(core.PrepareReady());
    }

    [Fact]
    public void Follower_acknowledges_several_appends_at_once()
    {
        RaftCore core = Follower();
        var append = new RaftMessage
        {
            Kind = RaftMessageKind.Append,
            From = s_leader,
            To = s_self,
            Term = new Term(1),
            EntryCount = 1,
        };
        core.Step(append, Entries((1, "a")));
        core.Step(append with { Index = new LogIndex(1), LogTerm = new Term(1) }, Entries((1, "b")));
        core.Step(append with { Index = new LogIndex(2), LogTerm = new Term(1) }, Entries((1, "c")));
        OutgoingMessage only = Assert.Single(core.TakeReady().Messages.ToArray());
        Assert.Equal(3UL, only.Message.Index.Value);
        Assert.True(only.AfterDurable);
    }

    [Fact]
    public void Large_entry_goes_alone()
    {
        RaftCore core = Leader();
        byte[] large = new byte[3 << 20];
        large[^1] = 7;
        core.TryPropose(EntryKind.Commands, large, out LogIndex index);
        Assert.Equal(large, core.Payload(index, out _, out _).ToArray());
        ByteBuffer copy = ByteBuffer.Rent();
        core.CopyEntries(index, 1, copy);
        Assert.Equal(EntryCodec.HeaderBytes + large.Length, copy.Length);
        copy.Return();
    }

    [Fact]
    public void Restart_goes_on_where_the_log_ends()
    {
        var start = new RaftStart(
            new HardState(new Term(3), s_self, new LogIndex(9)),
            [new TermRun(new LogIndex(1), new Term(1)), new TermRun(new LogIndex(3), new Term(2))],
            new LogIndex(4),
            new LogIndex(2));
        var core = new RaftCore(Config([s_self]), start);
        Assert.Throws<InvariantException>(core.Tick);
        core.Restore(new LogIndex(3), Entries((2, "c"), (2, "d")));
        Assert.Equal(4UL, core.CommitIndex.Value);
        Assert.Equal((new LogIndex(3), new LogIndex(4)), core.TakeReady().Committed);
        Assert.Equal("d", Encoding.ASCII.GetString(core.Payload(new LogIndex(4), out Term term, out _)));
        Assert.Equal(2UL, term.Value);
        Assert.Equal(4UL, core.DurableIndex.Value);
        Assert.False(core.TakeReady().HardStateChanged);
        core.Advance();
        Assert.False(core.PrepareReady());
    }

    [Fact]
    public void Configuration_must_make_sense()
    {
        var empty = new RaftStart(default, [], default, default);
        Assert.Throws<InvariantException>(() => new RaftCore(Config([]), empty));
        Assert.Throws<InvariantException>(() => new RaftCore(Config([s_self, s_self]), empty));
        Assert.Throws<InvariantException>(() => new RaftCore(Config([s_self]) with { HeartbeatTicks = 10 }, empty));
    }

    private static RaftConfig Config(NodeId[] voters) =>
        new() { Self = s_self, Group = new GroupId(1), Voters = voters, Seed = 1 };

    private static RaftCore Follower() =>
        new(
            Config([s_self, s_leader, new NodeId(3)]),
            new RaftStart(new HardState(new Term(1), s_leader, default), [], default, default));

    private static RaftCore Leader()
    {
        RaftCore core = Follower();
        core.Campaign();
        core.Step(
            new RaftMessage { Kind = RaftMessageKind.PreVoteReply, From = s_leader, To = s_self, Term = new Term(2) },
            []);
        core.Step(
            new RaftMessage { Kind = RaftMessageKind.VoteReply, From = s_leader, To = s_self, Term = new Term(2) }, []);
        core.Step(
            new RaftMessage { Kind = RaftMessageKind.VoteReply, From = s_self, To = s_self, Term = new Term(2) }, []);
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
