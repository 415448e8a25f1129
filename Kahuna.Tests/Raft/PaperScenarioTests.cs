using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Tests.Raft;

/// <summary>
/// The rules of the papers, one scenario each, named by section: "raft" is Ongaro and Ousterhout 2014, "thesis" is
/// Ongaro 2014. Each compares its whole trace with a golden text, and asserts the fact that it is about.
/// </summary>
public sealed class PaperScenarioTests
{
    [Fact]
    public void Raft_5_2_election_safety()
    {
        Trace trace = Run("raft-5.2-election-safety", new TraceOptions { Voters = 4 }, """
            # Two rivals win their pre-votes at the same time and split the votes: nobody leads.
            campaign 1
            campaign 4
            deliver 1->2
            deliver 4->3
            deliver 1->3
            deliver 4->2
            deliver 2->*
            deliver 3->*
            persist all
            deliver 1->2
            deliver 4->3
            deliver 1->3
            deliver 4->2
            persist all
            drop 1->4
            drop 4->1
            settle
            state
            # The next attempt has another term and one rival: one leader.
            campaign 1
            settle
            state
            """);
        Assert.Equal(RaftRole.Leader, trace[1].Role);
        Assert.Equal(1, trace.Rules.Leaders);
        Assert.Equal(2UL, trace[1].Term.Value);
    }

    [Fact]
    public void Raft_5_2_vote_counts_only_when_durable()
    {
        Trace trace = Run("raft-5.2-vote-counts-only-when-durable", new TraceOptions(), """
            # The candidate asks for votes, and counts its own, only after its term and vote are on its disk.
            campaign 1
            deliver 1->2
            deliver 2->1
            state
            persist 1
            # Voter 2 answers only after its vote is on its disk: a crash before that makes it forget, and nobody counted it.
            deliver 1->2
            crash 2
            restart 2
            state
            deliver 2->1
            # It may vote for another then.
            drop 1->3
            campaign 3
            deliver 3->2
            deliver 2->3
            state
            """);
        Assert.Equal(RaftRole.Candidate, trace[1].Role);
        Assert.Equal(0UL, trace[2].Term.Value);
        Assert.DoesNotContain(trace.Messages, message => message is { Kind: RaftMessageKind.VoteReply, Reject: false });
    }

    [Fact]
    public void Raft_5_2_single_voter_leads_when_its_vote_is_durable()
    {
        Trace trace = Run("raft-5.2-single-voter", new TraceOptions { Voters = 1 }, """
            tick 1 20
            state
            persist 1
            propose 1 a b
            state
            read 1
            persist 1
            read 1
            state
            """);
        Assert.Equal(3UL, trace[1].CommitIndex.Value);
        Assert.Equal((1, 2UL, 3UL), trace.Reads[^1]);
    }

    [Fact]
    public void Raft_5_1_stale_terms()
    {
        Trace trace = Run("raft-5.1-stale-terms", new TraceOptions(), """
            quiet
            campaign 1
            settle
            loud
            # Leader 1 is cut off with an entry that nobody else has; 2 leads on in a later term.
            cut 1
            propose 1 lost
            persist 1
            tick 3 10
            campaign 2
            settle
            propose 2 kept
            settle
            state
            # What 1 says in its old term is refused, and the refusal tells it the new term.
            heal 1
            tick 1 1
            deliver 1->2
            deliver 2->1
            state
            tick 2 1
            settle
            state
            """);
        Assert.NotEqual(RaftRole.Leader, trace[1].Role);
        Assert.Equal("kept", trace.TextOf(1));
        Assert.Equal(trace.LogOf(2), trace.LogOf(1));
    }

    [Fact]
    public void Raft_5_3_log_matching()
    {
        Trace trace = Run("raft-5.3-log-matching", new TraceOptions(), """
            # 2 misses entries, 3 has entries that were never committed.
            node 1 term 3 log 1 1 3
            node 2 term 3 log 1
            node 3 term 2 log 1 2 2 2
            campaign 1
            settle
            state
            """);
        Assert.Equal("1 1 3 4", trace.LogOf(1));
        Assert.Equal(trace.LogOf(1), trace.LogOf(2));
        Assert.Equal(trace.LogOf(1), trace.LogOf(3));
        Assert.Equal(trace.TextOf(1), trace.TextOf(3));
    }

    [Fact]
    public void Raft_5_3_figure_7()
    {
        Trace trace = Run("raft-5.3-figure-7", new TraceOptions { Voters = 7 }, """
            # The leader of term 8 and the followers (a) to (f) of the figure.
            node 1 term 7 log 1 1 1 4 4 5 5 6 6 6
            node 2 term 6 log 1 1 1 4 4 5 5 6 6
            node 3 term 4 log 1 1 1 4
            node 4 term 6 log 1 1 1 4 4 5 5 6 6 6 6
            node 5 term 7 log 1 1 1 4 4 5 5 6 6 6 7 7
            node 6 term 4 log 1 1 1 4 4 4 4
            node 7 term 3 log 1 1 1 2 2 2 3 3 3 3 3
            campaign 1
            settle
            state
            """);
        for (int node = 1; node <= 7; node++)
        {
            Assert.Equal("1 1 1 4 4 5 5 6 6 6 8", trace.LogOf(node));
        }

        // Hints skip whole terms: two refusals are enough for the worst follower.
        Assert.InRange(
            trace.Messages.Count(
                message => message is { Kind: RaftMessageKind.AppendReply, Reject: true, From.Value: 7 }),
            1,
            2);
    }

    [Fact]
    public void Raft_5_4_2_figure_8()
    {
        Trace trace = Run("raft-5.4.2-figure-8", new TraceOptions { Voters = 5, AppendBytesMax = 16 }, """
            # State (c) begins: 1 led term 2, crashed, and comes back; 5 led term 3 and is away.
            node 1 term 3 log 1 2
            node 2 term 3 log 1 2
            node 3 term 3 vote 5 log 1
            node 4 term 3 vote 5 log 1
            node 5 term 3 vote 5 log 1 3
            cut 5
            cut 4
            campaign 1
            deliver 1->*
            deliver *->1
            persist all
            deliver 1->*
            persist all
            deliver *->1
            persist all
            state
            # 3 refuses the probe, then gets the entry of term 2: it is on a majority (1, 2, 3), the entry of term 4 is only on 1.
            drop 1->2
            deliver 1->3
            deliver 3->1
            deliver 1->3
            persist 3
            drop 1->3
            deliver 3->1
            drop 1->*
            state
            # (d): 1 crashes, 5 wins with the votes of 3 and 4, and overwrites the entry of term 2. It was not committed.
            crash 1
            cut 2
            heal 5
            heal 4
            campaign 5
            settle
            tick 3 10
            campaign 5
            settle
            campaign 5
            settle
            state
            """);
        Assert.Equal("1 3 5", trace.LogOf(3));
        Assert.Contains("1 is Leader term 4", trace.Output, StringComparison.Ordinal);
        Assert.All(
            trace.Messages.Where(message => message is { Kind: RaftMessageKind.Append, From.Value: 1 }),
            message => Assert.Equal(0UL, message.Commit.Value));
        Assert.Contains(trace.Messages, message =>
            message
                is { Kind: RaftMessageKind.AppendReply, From.Value: 3, Index.Value: 2, Term.Value: 4, Reject: false });
    }

    [Fact]
    public void Raft_5_4_2_entry_of_own_term_commits_those_before()
    {
        Trace trace = Run("raft-5.4.2-own-term-commits", new TraceOptions { Voters = 5, AppendBytesMax = 16 }, """
            # Figure 8 (e): the leader of term 4 brings its own entry to a majority; with it the entry of term 2 is committed.
            node 1 term 3 log 1 2
            node 2 term 3 log 1 2
            node 3 term 3 log 1
            node 4 term 3 log 1
            node 5 term 3 log 1 3
            cut 5
            campaign 1
            settle
            state
            # 5 cannot win any more.
            heal 5
            quiet
            tick 1 9
            cut 1
            tick 2 10
            tick 3 10
            tick 4 10
            campaign 2
            campaign 5
            loud
            settle
            state
            """);
        Assert.Equal("1 2 4", trace.LogOf(2)[..5]);
        Assert.True(trace[2].CommitIndex.Value >= 2);
        Assert.NotEqual(RaftRole.Leader, trace[5].Role);
    }

    [Fact]
    public void Thesis_9_6_pre_vote_of_a_partitioned_node()
    {
        Trace trace = Run("thesis-9.6-pre-vote", new TraceOptions(), """
            quiet
            campaign 1
            settle
            loud
            # 3 is cut off and campaigns again and again: its term stays.
            cut 3
            tick 3 60
            state
            # It comes back: the leader's term is not disturbed, and 3 follows again.
            heal 3
            tick 3 20
            settle
            tick 1 1
            settle
            state
            """);
        Assert.All([1, 2, 3], node => Assert.Equal(1UL, trace[node].Term.Value));
        Assert.Equal(RaftRole.Leader, trace[1].Role);
        Assert.Equal(new NodeId(1), trace[3].Leader);
    }

    [Fact]
    public void Thesis_4_2_3_a_living_leader_is_not_voted_out()
    {
        Trace trace = Run("thesis-4.2.3-living-leader", new TraceOptions(), """
            quiet
            campaign 1
            settle
            loud
            # 2 and 3 hear nothing for a while: 3 wins a pre-vote.
            tick 2 10
            campaign 3
            deliver 3->2
            deliver 2->3
            # Before its request for a vote arrives, 2 hears the leader again: it stays deaf, although the term is later.
            tick 1 1
            deliver 1->2
            persist 3
            deliver 3->2
            deliver 3->1
            state
            """);
        Assert.Contains(
            trace.Messages, message => message is { Kind: RaftMessageKind.Vote, From.Value: 3, To.Value: 2 });
        Assert.Equal(RaftRole.Leader, trace[1].Role);
        Assert.Equal(1UL, trace[2].Term.Value);
    }

    [Fact]
    public void Thesis_6_2_check_quorum()
    {
        Trace trace = Run("thesis-6.2-check-quorum", new TraceOptions(), """
            quiet
            campaign 1
            settle
            tick 1 1
            settle
            loud
            # The leader hears nobody for an election timeout: it steps down by itself, in its term.
            cut 1
            tick 1 9
            state
            propose 1 late
            tick 1 1
            state
            propose 1 refused
            read 1
            """);
        Assert.NotEqual(RaftRole.Leader, trace[1].Role);
        Assert.Equal(1UL, trace[1].Term.Value);
        Assert.Equal("late", trace.TextOf(1));
    }

    [Fact]
    public void Thesis_6_4_read_rounds_across_a_leader_change()
    {
        Trace trace = Run("thesis-6.4-read-rounds", new TraceOptions(), """
            quiet
            campaign 1
            settle
            loud
            # A read is confirmed by a round of heartbeats.
            read 1
            deliver 1->2
            deliver 2->1
            drop *->*
            # The next round is answered, but the answers stay on the way; 2 is elected meanwhile.
            propose 1 a
            settle
            read 1
            deliver 1->*
            transfer 1 2
            deliver 1->2
            persist 2
            deliver 2->3
            persist 3
            deliver 3->2
            state
            # 2 has a read at once, but it is confirmed only after the entry of its own term is committed.
            read 2
            deliver 2->3
            persist 3
            persist 2
            deliver 3->2
            # The old leader's answers arrive at last, after it learned of the new term: they confirm nothing.
            reverse 2->1
            deliver 2->1
            deliver 3->1
            deliver 2->3
            deliver 3->2
            state
            """);
        Assert.Equal((1, 1UL, 1UL), trace.Reads[0]);
        Assert.DoesNotContain(trace.Reads, read => read is { Node: 1, Ticket: 2 });
        Assert.Contains(trace.Reads, read => read is { Node: 2, Index: 3UL });
        Assert.Equal(RaftRole.Leader, trace[2].Role);
    }

    [Fact]
    public void Thesis_6_4_reads_share_rounds()
    {
        Trace trace = Run("thesis-6.4-shared-rounds", new TraceOptions(), """
            quiet
            campaign 1
            settle
            loud
            # Two rounds may be in flight; reads that come meanwhile share the next one.
            read 1
            read 1
            read 1
            read 1
            # The heartbeats of both rounds are lost: the next heartbeat names the newest round again, and one answer confirms both.
            drop 1->*
            tick 1 1
            deliver 1->2
            deliver 2->1
            deliver 1->2
            deliver 2->1
            state
            """);
        Assert.Equal([(1, 2UL, 1UL), (1, 3UL, 1UL)], trace.Reads);
        Assert.Equal(3UL, trace.Messages.Max(message => message.Round));
    }

    [Fact]
    public void Thesis_6_4_an_old_answer_confirms_no_later_round()
    {
        Trace trace = Run("thesis-6.4-old-answers", new TraceOptions(), """
            quiet
            campaign 1
            settle
            loud
            # The answer to round 1 stays on the way while a second read opens round 2.
            read 1
            deliver 1->2
            read 1
            drop 1->2
            deliver 2->1
            state
            tick 1 1
            deliver 1->2
            deliver 2->1
            """);
        Assert.Equal([(1, 1UL, 1UL), (1, 2UL, 1UL)], trace.Reads);
        int state = trace.Output.IndexOf("> state", StringComparison.Ordinal);
        Assert.True(trace.Output.IndexOf("up to ticket 1", StringComparison.Ordinal) < state);
        Assert.True(trace.Output.IndexOf("up to ticket 2", StringComparison.Ordinal) > state);
    }

    [Fact]
    public void Raft_5_3_what_was_acknowledged_to_an_earlier_leadership_does_not_count()
    {
        Trace trace = Run("raft-5.3-acknowledged-before", new TraceOptions { Voters = 5 }, """
            quiet
            campaign 1
            settle
            # 2 acknowledges three entries of term 1 that reach no majority.
            cut 3
            cut 4
            cut 5
            propose 1 a b c
            settle
            # 3 leads in term 2 and overwrites them.
            heal 3
            heal 4
            heal 5
            cut 1
            cut 2
            tick 4 10
            tick 5 10
            campaign 3
            settle
            heal 1
            heal 2
            tick 3 1
            settle
            tick 3 1
            settle
            tick 3 1
            settle
            loud
            state
            # 1 leads again, in term 3; its entry is on 1 and 3 only. What 2 acknowledged in term 1 is no acknowledgement of it.
            transfer 3 1
            deliver 3->1
            persist 1
            deliver 1->3
            deliver 1->4
            persist 3
            persist 4
            deliver 3->1
            deliver 4->1
            persist 1
            deliver 1->3
            drop 1->*
            persist 3
            deliver 3->1
            state
            """);
        Assert.Equal(RaftRole.Leader, trace[1].Role);
        Assert.Equal(3UL, trace[1].LastIndex.Value);
        Assert.Equal(3UL, trace[1].MatchIndex(new NodeId(3)).Value);
        Assert.Equal(2UL, trace[1].CommitIndex.Value);
    }

    [Fact]
    public void Thesis_3_10_transfer()
    {
        Trace trace = Run("thesis-3.10-transfer", new TraceOptions(), """
            quiet
            campaign 1
            settle
            loud
            # 2 lacks an entry: it is caught up first; nothing new is accepted meanwhile.
            propose 1 a
            drop 1->2
            transfer 1 2
            propose 1 b
            deliver 1->3
            tick 1 1
            deliver 1->2
            deliver 2->1
            deliver 1->2
            persist 2
            deliver 2->1
            # It campaigns without a pre-vote, and is voted for although the leader is alive.
            deliver 1->2
            settle
            state
            """);
        Assert.Equal(RaftRole.Leader, trace[2].Role);
        Assert.Equal(2UL, trace[2].Term.Value);
        Assert.Equal("a", trace.TextOf(3));
    }

    [Fact]
    public void Thesis_3_10_transfer_gives_up()
    {
        Trace trace = Run("thesis-3.10-transfer-gives-up", new TraceOptions(), """
            quiet
            campaign 1
            settle
            loud
            transfer 1 1
            transfer 2 1
            cut 2
            transfer 1 2
            propose 1 refused
            quiet
            tick 1 5
            settle
            tick 1 5
            settle
            loud
            propose 1 accepted
            settle
            state
            """);
        Assert.Equal(RaftRole.Leader, trace[1].Role);
        Assert.Equal("accepted", trace.TextOf(3));
    }

    private static Trace Run(string name, TraceOptions options, string script)
    {
        Trace trace = new Trace(options).Run(script);
        Golden.Check(name, trace.Output);
        return trace;
    }
}
