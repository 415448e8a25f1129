using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Tests.Raft;

/// <summary>
/// Nodes without a vote: new ones whose past is unproven, and those that lost their directory and rejoin. Golden
/// traces, each with the assertion that it is about.
/// </summary>
public sealed class LostDirectoryScenarioTests
{
    [Fact]
    public void Unproven_node_follows_and_is_not_counted()
    {
        Trace trace = Run("unproven-follows", new TraceOptions(), """
            # 3 neither campaigns nor votes; 1 and 2 do without it.
            unproven 3
            tick 3 40
            campaign 3
            campaign 1
            deliver 1->3
            deliver 3->1
            settle
            # It stores what the leader sends. It may have promised something else before, so that its acknowledgements count for nothing.
            cut 2
            propose 1 a
            read 1
            settle
            transfer 1 3
            settle
            state
            quiet
            tick 1 3
            settle
            tick 1 3
            settle
            loud
            # Proven: the next heartbeat makes it acknowledge again.
            allow 3
            tick 1 1
            settle
            tick 1 1
            settle
            state
            """);
        Assert.Equal("a", trace.TextOf(3));
        Assert.DoesNotContain(trace.Messages, message =>
            message is { From.Value: 3, Kind: RaftMessageKind.Vote or RaftMessageKind.PreVote });
        Assert.DoesNotContain(trace.Messages, message =>
            message
                is { From.Value: 3, Kind: RaftMessageKind.VoteReply or RaftMessageKind.PreVoteReply, Reject: false });
        Assert.Contains(
            "1 Leader term 1 leader 1 last 2 durable 2 commit 1 log", trace.Output, StringComparison.Ordinal);
        Assert.Equal(2UL, trace[1].CommitIndex.Value);
        Assert.Equal((1, 1UL, 1UL), Assert.Single(trace.Reads));
        Assert.Equal(RaftRole.Leader, trace[1].Role);
    }

    [Fact]
    public void Leader_that_needs_an_unproven_node_for_a_majority_steps_down()
    {
        Trace trace = Run("unproven-majority", new TraceOptions(), """
            unproven 3
            quiet
            campaign 1
            settle
            # 3 answers everything and confirms nothing: 1 could commit nothing, and would keep others from electing a leader that can.
            cut 2
            tick 1 7
            settle
            tick 1 7
            settle
            tick 1 7
            settle
            loud
            state
            """);
        Assert.NotEqual(RaftRole.Leader, trace[1].Role);
    }

    [Fact]
    public void New_cluster_elects_once_its_nodes_are_proven()
    {
        Trace trace = Run("unproven-cluster", new TraceOptions(), """
            unproven 1
            unproven 2
            unproven 3
            quiet
            tick 1 30
            tick 2 30
            tick 3 30
            settle
            loud
            state
            allow 1
            allow 2
            tick 1 20
            settle
            state
            """);
        Assert.Equal(RaftRole.Leader, trace[1].Role);
        Assert.Equal(1, trace.Rules.Leaders);
    }

    [Fact]
    public void Wiped_node_does_not_help_a_second_leader_of_the_term_it_voted_in()
    {
        Trace trace = Run("rejoining-no-second-vote", new TraceOptions(), """
            # 3 votes for 2 in term 1, durably. The answer is slow; 3 loses its directory.
            campaign 2
            drop 2->1
            deliver 2->3
            deliver 3->2
            persist 2
            drop 2->1
            deliver 2->3
            persist 3
            wipe 3
            rejoin 3
            # 1 campaigns: 3 does not remember its vote, and gives none.
            campaign 1
            deliver 1->3
            deliver 3->1
            drop 1->2
            state
            # The old vote arrives: 2 leads, alone. 3 hears of term 1 from it, but 1 has not told its term: 3 is not counted.
            deliver 3->2
            state
            cut 1
            tick 3 1
            settle
            state
            # 1 tells its term: 3 spends its vote of term 1, is counted, and is restored by 2. Then it may vote again.
            heal 1
            tick 3 10
            settle
            tick 2 1
            settle
            tick 3 10
            settle
            state
            allow 3
            state
            # A later term is not spent.
            quiet
            tick 3 10
            tick 1 10
            loud
            campaign 1
            settle
            state
            """);
        Assert.Equal(new HardState(new Term(1), new NodeId(3), default), trace.SavedBy(3)[1]);
        Assert.Contains("3 Follower (can rejoin) term 1", trace.Output, StringComparison.Ordinal);
        Assert.True(trace[3].IsVoting);
        Assert.Contains(trace.Messages, message =>
            message is { Kind: RaftMessageKind.VoteReply, From.Value: 3, To.Value: 1, Term.Value: 2, Reject: false });
    }

    [Fact]
    public void Wiped_node_does_not_help_an_old_leader_to_commit()
    {
        Trace trace = Run("rejoining-no-old-leader", new TraceOptions(), """
            quiet
            campaign 1
            settle
            # 2 leads term 2 with the vote of 3; 1 does not know, and leads on in term 1.
            cut 1
            tick 2 10
            tick 3 10
            campaign 2
            settle
            propose 2 kept
            settle
            # 3 loses its directory, and hears 1 before it hears 2.
            wipe 3
            cut 2
            heal 1
            loud
            rejoin 3
            propose 1 lost
            read 1
            settle
            tick 1 1
            settle
            state
            # 2 is heard: 3 has to do with term 2 and refuses 1 from now on.
            heal 2
            tick 3 10
            settle
            tick 2 1
            settle
            tick 2 1
            settle
            tick 3 10
            settle
            state
            """);
        Assert.Contains("1 Leader term 1 leader 1 last 2 durable 2 commit 1", trace.Output, StringComparison.Ordinal);
        Assert.Empty(trace.Reads);
        Assert.Equal("kept", trace.TextOf(3));
        Assert.True(trace[3].CanRejoin);
    }

    [Fact]
    public void Wiped_node_votes_only_after_it_holds_what_it_may_have_acknowledged()
    {
        Trace trace = Run("rejoining-restored-first", new TraceOptions(), """
            quiet
            campaign 1
            settle
            # Entries on 1 and 3 only: committed by what 3 acknowledged.
            cut 2
            propose 1 a b c
            settle
            trim 1 4
            wipe 3
            rejoin 3
            heal 2
            loud
            # The terms are known, and the log of the leader is not here yet.
            tick 3 1
            deliver 3->*
            deliver 1->3
            deliver 2->3
            persist 3
            state
            # 2, which lacks the entries, would need the vote of 3, and 3 waits for no leader any more.
            quiet
            tick 3 10
            loud
            campaign 2
            deliver 2->3
            deliver 3->2
            drop *->*
            state
            # Restored by a snapshot: it acknowledges, and may vote once that is durable.
            tick 1 1
            settle
            install 1->3
            state
            persist 3
            state
            settle
            """);
        Assert.Contains((1, 3), trace.SnapshotsWanted);
        Assert.True(trace[3].CanRejoin);
        Assert.NotEqual(RaftRole.Leader, trace[2].Role);
        Assert.Equal("a b c", trace.StateTextOf(3));
    }

    [Fact]
    public void Forgotten_follower_is_not_counted()
    {
        Trace trace = Run("forgotten-follower", new TraceOptions(), """
            quiet
            campaign 1
            settle
            cut 2
            loud
            # 3 has acknowledged the entry; the leader's own disk has not. Then 3 is known to have come back without its log.
            propose 1 a
            deliver 1->3
            persist 3
            deliver 3->1
            forget 1 3
            drop 1->3
            persist 1
            state
            # Its answer to a heartbeat confirms no read either.
            read 1
            deliver 1->3
            deliver 3->1
            # It acknowledges again: committed, and its answers confirm reads.
            tick 1 3
            deliver 1->3
            deliver 3->1
            deliver 1->3
            deliver 3->1
            tick 1 1
            deliver 1->3
            deliver 3->1
            state
            """);
        Assert.Contains(
            "> persist 1\n  1 is Leader term 1 leader 1 last 2 durable 2 commit 1\n",
            trace.Output,
            StringComparison.Ordinal);
        int confirmed = trace.Output.IndexOf("confirms reads", StringComparison.Ordinal);
        Assert.True(confirmed > trace.Output.IndexOf("# It acknowledges again", StringComparison.Ordinal));
        Assert.Equal(2UL, trace[1].CommitIndex.Value);
        Assert.Single(trace.Reads);
    }

    [Fact]
    public void Rejoining_node_that_is_restarted_is_restored_also_when_nothing_is_written()
    {
        Trace trace = Run("rejoining-restarted-idle", new TraceOptions(), """
            quiet
            campaign 1
            settle
            propose 1 a
            settle
            # 3 loses its directory, gets the log again, and its acknowledgements count.
            wipe 3
            forget 1 3
            rejoin 3
            tick 3 10
            settle
            tick 1 5
            settle
            tick 1 5
            settle
            loud
            state
            # It is restarted before it may vote, and everybody tells it the term before the leader hears of it.
            crash 3
            rejoin 3
            quiet
            tick 3 10
            settle
            tick 3 10
            settle
            loud
            state
            # The leader has nothing new; its heartbeat shows that 3 does not know how far its log agrees.
            tick 1 5
            settle
            tick 1 5
            settle
            state
            """);
        Assert.True(trace[3].CanRejoin);
    }

    private static Trace Run(string name, TraceOptions options, string script)
    {
        Trace trace = new Trace(options).Run(script);
        Golden.Check(name, trace.Output);
        return trace;
    }
}
