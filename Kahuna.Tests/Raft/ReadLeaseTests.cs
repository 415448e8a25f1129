using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Tests.Raft;

/// <summary>
/// Reads under a lease (thesis 6.4.1): what a leader may rely on, and what a voter promises. Promises of 800 ms, leases
/// of 600 ms.
/// </summary>
public sealed class ReadLeaseTests
{
    private const int PromiseMs = 800;
    private static readonly NodeId s_self = new(1);
    private static readonly NodeId s_other = new(2);
    private static readonly NodeId s_third = new(3);

    [Theory]
    [InlineData(1_599, true)]
    [InlineData(1_600, false)]
    public void A_lease_counts_from_the_beginning_of_the_round_that_a_majority_answered(long readAt, bool isAtOnce)
    {
        RaftCore core = Leader();
        ulong round = Heartbeat(core, at: 1_000);
        core.Now = new NodeTime(1_500);
        Answer(core, round, PromiseMs);
        Assert.Equal(isAtOnce, ReadIsConfirmedAt(core, readAt));
    }

    [Theory]
    [InlineData(0)]
    [InlineData(PromiseMs - 1)]
    public void An_answer_without_the_whole_promise_gives_no_lease(int promiseMs)
    {
        RaftCore core = Leader();
        ulong round = Heartbeat(core, at: 1_000);
        Answer(core, round, promiseMs);
        Assert.False(ReadIsConfirmedAt(core, 1_001));
    }

    [Fact]
    public void An_old_answer_does_not_make_a_lease_longer()
    {
        RaftCore core = Leader();
        ulong first = Heartbeat(core, at: 1_000);
        ulong second = Heartbeat(core, at: 1_400);
        Answer(core, second, PromiseMs);
        Answer(core, first, PromiseMs);
        Assert.True(ReadIsConfirmedAt(core, 1_999));
        Assert.False(ReadIsConfirmedAt(core, 2_000));
    }

    [Fact]
    public void Reads_in_a_lease_take_those_with_them_whose_round_is_on_its_way()
    {
        RaftCore core = Leader();
        core.Now = new NodeTime(1_000);
        Assert.True(core.TryRead(out ulong asked));
        ulong round = RoundOf(core);
        Assert.True(core.TryRead(out ulong later));
        Answer(core, round, PromiseMs);
        core.Now = new NodeTime(1_001);
        core.PrepareReady();
        ulong[] confirmed = [.. core.TakeReady().ReadStates.ToArray().Select(static state => state.Ticket)];
        core.Advance();
        Assert.Equal([asked, later], confirmed);
        Assert.False(core.PrepareReady());
    }

    [Fact]
    public void A_leader_that_has_asked_another_to_take_over_has_no_lease_any_longer()
    {
        RaftCore core = Leader();
        ulong round = Heartbeat(core, at: 1_000);
        Answer(core, round, PromiseMs);
        Assert.True(ReadIsConfirmedAt(core, 1_010));

        Assert.True(core.TryTransfer(s_other));
        Assert.Contains(Drain(core), static message => message.Kind == RaftMessageKind.TimeoutNow);
        Assert.False(ReadIsConfirmedAt(core, 1_020));

        // The message may still be on its way when the leader has given up waiting.
        for (int i = 0; i < 20; i++)
        {
            round = Heartbeat(core, at: 1_100 + i);
            Answer(core, round, PromiseMs);
        }

        Assert.False(core.IsTransferring);
        Assert.False(ReadIsConfirmedAt(core, 1_200));
    }

    [Fact]
    public void A_new_leadership_has_no_lease_of_the_one_before()
    {
        RaftCore core = Leader();
        Answer(core, Heartbeat(core, at: 1_000), PromiseMs);
        core.Step(
            new RaftMessage { Kind = RaftMessageKind.Heartbeat, From = s_other, To = s_self, Term = new Term(3) }, []);
        Assert.Equal(RaftRole.Follower, core.Role);
        Elect(core, new Term(4));
        Assert.False(ReadIsConfirmedAt(core, 1_100));
    }

    [Fact]
    public void Without_leases_heartbeats_ask_for_no_promise_and_open_no_rounds()
    {
        RaftCore core = Leader(promiseMs: 0);
        ulong round = Heartbeat(core, at: 1_000);
        Assert.Equal(round, Heartbeat(core, at: 1_100));
        core.Tick();
        Assert.All(Drain(core), static message => Assert.Equal(0, message.PromiseMs));
    }

    [Fact]
    public void Groups_with_the_same_ticks_send_their_heartbeats_together()
    {
        RaftCore first = Leader(heartbeatTicks: 4);
        RaftCore second = Leader(heartbeatTicks: 4);
        first.Tick(101);
        Drain(first);
        for (ulong tick = 102; tick < 130; tick++)
        {
            first.Tick(tick);
            second.Tick(tick);
            AnswerAny(first);
            AnswerAny(second);
            bool sends = Drain(first).Any(static message => message.Kind == RaftMessageKind.Heartbeat);
            Assert.Equal(tick % 4 == 0, sends);
            Assert.Equal(sends, Drain(second).Any(static message => message.Kind == RaftMessageKind.Heartbeat));
        }
    }

    [Fact]
    public void A_voter_keeps_its_promise_from_its_answer_on()
    {
        RaftCore core = Follower();
        RaftMessage reply = Promise(core, at: 1_000);
        Assert.Equal(PromiseMs, reply.PromiseMs);

        // Its ticks run out at once, as after a pause.
        core.Now = new NodeTime(1_799);
        for (int i = 0; i < 100; i++)
        {
            core.Tick();
        }

        Assert.Equal(RaftRole.Follower, core.Role);
        Assert.Empty(Ask(core, RaftMessageKind.PreVote));
        Assert.Empty(Ask(core, RaftMessageKind.Vote));
        Assert.Equal(1UL, core.Term.Value);

        core.Now = new NodeTime(1_800);
        Assert.Contains(Ask(core, RaftMessageKind.PreVote), static message => !message.Reject);
        core.Tick();
        Assert.Equal(RaftRole.PreCandidate, core.Role);
    }

    [Fact]
    public void A_voter_elects_whom_its_leader_has_asked_to_take_over()
    {
        RaftCore core = Follower();
        Promise(core, at: 1_000);
        Assert.Contains(
            Ask(core, RaftMessageKind.Vote, isTransfer: true),
            static message => message is { Kind: RaftMessageKind.VoteReply, Reject: false });
    }

    [Fact]
    public void A_promise_counts_from_when_the_answer_is_made_not_from_when_the_turn_of_the_heartbeat_began()
    {
        RaftCore core = Follower();
        core.Now = new NodeTime(1_000);
        core.Step(HeartbeatOf(s_other), []);
        core.Now = new NodeTime(5_000);
        Drain(core);
        core.Now = new NodeTime(5_799);
        Assert.Empty(Ask(core, RaftMessageKind.PreVote));
    }

    [Theory]
    [InlineData(0)]
    [InlineData(-1)]
    [InlineData(PromiseMs + 1)]
    public void A_voter_promises_no_longer_than_it_waits_after_a_restart(int promiseMs)
    {
        RaftCore core = Follower();
        core.Now = new NodeTime(1_000);
        core.Step(HeartbeatOf(s_other) with { PromiseMs = promiseMs }, []);
        Assert.All(Drain(core), static message => Assert.Equal(0, message.PromiseMs));
    }

    [Fact]
    public void A_voter_without_leases_promises_nothing()
    {
        RaftCore core = Follower(promiseMs: 0);
        Assert.Equal(0, Promise(core, at: 1_000).PromiseMs);
    }

    [Fact]
    public void After_a_restart_a_voter_waits_as_long_as_it_may_have_promised()
    {
        RaftCore core = Follower(promisedBeforeMs: PromiseMs);
        core.Now = new NodeTime(70_000);
        Assert.Empty(Ask(core, RaftMessageKind.PreVote));
        core.Campaign();
        Assert.Equal(RaftRole.Follower, core.Role);
        core.Now = new NodeTime(70_799);
        Assert.Empty(Ask(core, RaftMessageKind.Vote));
        core.Now = new NodeTime(70_800);
        Assert.NotEmpty(Ask(core, RaftMessageKind.Vote));
    }

    [Fact]
    public void A_member_that_is_alone_waits_for_nobody()
    {
        RaftConfig config = new()
        {
            Self = s_self,
            Group = new GroupId(1),
            Voters = [s_self],
            PromiseMs = PromiseMs,
            PromisedBeforeMs = PromiseMs,
            Seed = 1,
        };
        RaftCore core = new(config, new RaftStart(new HardState(new Term(1), s_self, default), [], default, default))
        {
            Now = new NodeTime(1_000),
        };
        core.Campaign();
        Drain(core);
        core.Step(VoteOf(s_self, RaftMessageKind.VoteReply, new Term(2)), []);
        Assert.Equal(RaftRole.Leader, core.Role);
    }

    internal static RaftCore Follower(int promiseMs = PromiseMs, int promisedBeforeMs = 0, int heartbeatTicks = 1) =>
        new(
            new RaftConfig
            {
                Self = s_self,
                Group = new GroupId(1),
                Voters = [s_self, s_other, s_third],
                PromiseMs = promiseMs,
                PromisedBeforeMs = promisedBeforeMs,
                HeartbeatTicks = heartbeatTicks,
                Seed = 1,
            },
            new RaftStart(new HardState(new Term(1), s_other, default), [], default, default));

    internal static RaftCore Leader(int promiseMs = PromiseMs, int heartbeatTicks = 1)
    {
        RaftCore core = Follower(promiseMs, heartbeatTicks: heartbeatTicks);
        core.Now = new NodeTime(500);
        Elect(core, new Term(2));
        return core;
    }

    /// <summary>Makes it the leader of the term, with its first entry committed.</summary>
    private static void Elect(RaftCore core, Term term)
    {
        while (core.Term < term)
        {
            core.Campaign();
            core.Step(VoteOf(s_other, RaftMessageKind.PreVoteReply, core.Term.Next()), []);
        }

        core.Step(VoteOf(s_other, RaftMessageKind.VoteReply, term), []);
        core.Step(VoteOf(s_self, RaftMessageKind.VoteReply, term), []);
        Assert.Equal(RaftRole.Leader, core.Role);
        Drain(core);
        core.Persisted(core.LastIndex, term);
        core.Step(
            new RaftMessage
            {
                Kind = RaftMessageKind.AppendReply,
                From = s_other,
                To = s_self,
                Term = term,
                Index = core.LastIndex,
            },
            []);
        Assert.Equal(core.LastIndex, core.CommitIndex);
        Drain(core);
    }

    private static RaftMessage VoteOf(NodeId from, RaftMessageKind kind, Term term) =>
        new() { Kind = kind, From = from, To = s_self, Term = term };

    internal static RaftMessage HeartbeatOf(NodeId leader) => new()
    {
        Kind = RaftMessageKind.Heartbeat,
        From = leader,
        To = s_self,
        Term = new Term(1),
        Round = 1,
        PromiseMs = PromiseMs,
    };

    /// <summary>Takes in a heartbeat, and returns the answer.</summary>
    private static RaftMessage Promise(RaftCore core, long at)
    {
        core.Now = new NodeTime(at);
        core.Step(HeartbeatOf(s_other), []);
        return Drain(core).Single(static message => message.Kind == RaftMessageKind.HeartbeatReply);
    }

    /// <summary>A third member asks for a vote; returns the answers.</summary>
    private static List<RaftMessage> Ask(RaftCore core, RaftMessageKind kind, bool isTransfer = false)
    {
        core.Step(
            new RaftMessage
            {
                Kind = kind,
                From = s_third,
                To = s_self,
                Term = core.Term.Next(),
                Transfer = isTransfer,
            },
            []);
        return [.. Drain(core).Where(static message => message.To == s_third)];
    }

    /// <summary>A tick with a heartbeat; returns its round.</summary>
    private static ulong Heartbeat(RaftCore core, long at)
    {
        core.Now = new NodeTime(at);
        core.Tick();
        return RoundOf(core);
    }

    private static ulong RoundOf(RaftCore core) =>
        Drain(core).Where(static message => message.Kind == RaftMessageKind.Heartbeat).Max(static message =>
            message.Round);

    internal static void Answer(RaftCore core, ulong round, int promiseMs) => core.Step(
        new RaftMessage
        {
            Kind = RaftMessageKind.HeartbeatReply,
            From = s_other,
            To = s_self,
            Term = core.Term,
            Index = core.LastIndex,
            Hint = core.LastIndex,
            Round = round,
            PromiseMs = promiseMs,
        },
        []);

    private static void AnswerAny(RaftCore core) => Answer(core, 0, 0);

    private static bool ReadIsConfirmedAt(RaftCore core, long at)
    {
        core.Now = new NodeTime(at);
        Assert.True(core.TryRead(out ulong ticket));
        bool isConfirmed = false;
        while (core.PrepareReady())
        {
            foreach (ReadState state in core.TakeReady().ReadStates)
            {
                isConfirmed |= state.Ticket >= ticket;
            }

            core.Advance();
        }

        return isConfirmed;
    }

    internal static List<RaftMessage> Drain(RaftCore core)
    {
        List<RaftMessage> messages = [];
        while (core.PrepareReady())
        {
            ref readonly Ready ready = ref core.TakeReady();
            foreach (OutgoingMessage outgoing in ready.Messages)
            {
                messages.Add(outgoing.Message);
            }

            core.Advance();
        }

        return messages;
    }
}
