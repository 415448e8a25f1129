using Kahuna.Server.Raft;

namespace Kahuna.Tests.Raft;

/// <summary>
/// Effects of the network and of slow followers on replication (Raft §5.3): golden traces, each with the assertion that
/// it is about.
/// </summary>
public sealed class NetworkScenarioTests
{
    [Fact]
    public void Raft_5_3_proposals_share_an_append()
    {
        Trace trace = Run("raft-5.3-shared-append", new TraceOptions(), """
            quiet
            campaign 1
            settle
            loud
            # One append per follower carries all that was proposed; several are in flight; one answer acknowledges all.
            propose 1 a b c
            propose 1 d
            deliver 1->2
            persist 2
            # 2 and 3 hold them durably: committed although the leader's own disk is slow.
            deliver 1->3
            persist 3
            deliver *->1
            state
            persist 1
            """);
        Assert.Equal(5UL, trace[1].CommitIndex.Value);
        Assert.Equal(
            2,
            trace.Messages.Count(
                message => message is { Kind: RaftMessageKind.Append, To.Value: 2, Index.Value: > 0 }));
    }

    [Fact]
    public void Raft_5_3_own_disk_counts_only_when_durable()
    {
        Trace trace = Run("raft-5.3-own-disk", new TraceOptions(), """
            quiet
            campaign 1
            settle
            loud
            propose 1 a
            deliver 1->2
            persist 2
            deliver 2->1
            # On one follower's disk and in the leader's memory: not committed.
            state
            persist 1
            state
            """);
        Assert.Contains("durable 1 commit 1", trace.Output, StringComparison.Ordinal);
        Assert.Equal(2UL, trace[1].CommitIndex.Value);
    }

    [Fact]
    public void Raft_5_3_lost_messages()
    {
        Trace trace = Run("raft-5.3-lost", new TraceOptions(), """
            quiet
            campaign 1
            settle
            cut 3
            loud
            # The first append is lost, the second arrives and is refused, the refusal is lost too.
            propose 1 a
            drop 1->2
            propose 1 b
            deliver 1->2
            drop 2->1
            persist 1
            # A heartbeat tells what was sent; its answer tells what arrived; the rest is sent again.
            tick 1 1
            deliver 1->2
            deliver 2->1
            deliver 1->2
            persist 2
            # The acknowledgement is lost: after a few ticks it is asked for again, without sending entries.
            drop 2->1
            tick 1 1
            deliver 1->2
            deliver 2->1
            tick 1 1
            deliver 1->2
            deliver 2->1
            tick 1 1
            deliver 1->2
            deliver 2->1
            deliver 1->2
            deliver 2->1
            state
            """);
        Assert.Equal(3UL, trace[1].CommitIndex.Value);
        Assert.Equal("a b", trace.TextOf(2));
    }

    [Fact]
    public void Raft_5_3_duplicated_messages()
    {
        Trace trace = Run("raft-5.3-duplicated", new TraceOptions(), """
            quiet
            campaign 1
            settle
            cut 3
            loud
            propose 1 a
            dup 1->2
            dup 1->2
            deliver 1->2
            persist 2
            dup 2->1
            deliver 2->1
            persist 1
            # An old append comes again after more was appended: nothing is cut.
            propose 1 b
            dup 1->2
            propose 1 c
            deliver 1->2
            settle
            state
            """);
        Assert.Equal("a b c", trace.TextOf(2));
        Assert.Equal(4UL, trace[1].CommitIndex.Value);
    }

    [Fact]
    public void Raft_5_3_reordered_messages()
    {
        Trace trace = Run("raft-5.3-reordered", new TraceOptions(), """
            quiet
            campaign 1
            settle
            cut 3
            loud
            propose 1 a
            propose 1 b
            propose 1 c
            reverse 1->2
            deliver 1->2
            persist all
            reverse 2->1
            deliver 2->1
            settle
            tick 1 1
            settle
            state
            """);
        Assert.Equal("a b c", trace.TextOf(2));
        Assert.Equal(4UL, trace[1].CommitIndex.Value);
    }

    [Fact]
    public void Unreachable_follower_is_probed()
    {
        Trace trace = Run("unreachable-follower", new TraceOptions(), """
            quiet
            campaign 1
            settle
            loud
            # The link to 2 breaks: nothing more is sent until a heartbeat is answered.
            unreachable 1 2
            propose 1 a
            propose 1 b
            settle
            tick 1 1
            settle
            tick 1 1
            settle
            state
            """);
        Assert.Equal("a b", trace.TextOf(2));
        Assert.Equal(
            1,
            trace.Messages.Count(
                message => message is { Kind: RaftMessageKind.Append, To.Value: 2, Index.Value: > 0 }));
    }

    [Fact]
    public void Follower_fed_by_fetch()
    {
        Trace trace = Run("follower-fed-by-fetch", new TraceOptions { AppendBytesMax = 60, CacheBytes = 0, CacheBytesMax = 100 }, """
            quiet
            campaign 1
            settle
            cut 3
            propose 1 aaaaaaaaaa bbbbbbbbbb cccccccccc dddddddddd eeeeeeeeee ffffffffff
            settle
            tick 1 5
            settle
            propose 1 g h
            settle
            tick 1 5
            settle
            loud
            # 3 comes back; what it lacks is no longer in memory: it is read from storage, piece by piece.
            heal 3
            tick 1 1
            settle
            tick 1 1
            settle
            # The first answer fails; it is asked again.
            fetch 1 fails
            settle
            tick 1 1
            fetch 1
            settle
            fetch 1
            settle
            fetch 1
            settle
            tick 1 1
            settle
            state
            """);
        Assert.Equal(trace.TextOf(1), trace.TextOf(3));
        Assert.Equal(trace[1].CommitIndex, trace[3].CommitIndex);
    }

    [Fact]
    public void Learner_gets_the_log_and_does_not_count()
    {
        Trace trace = Run("thesis-4.2.1-learner", new TraceOptions { Voters = 3, Learners = 1 }, """
            tick 4 50
            quiet
            campaign 1
            settle
            cut 2
            cut 3
            loud
            propose 1 a
            settle
            state
            # On the leader and the learner only: not committed.
            heal 2
            tick 1 1
            settle
            tick 1 1
            settle
            state
            campaign 4
            """);
        Assert.Equal(RaftRole.Learner, trace[4].Role);
        Assert.Equal("a", trace.TextOf(4));
        Assert.Equal(2UL, trace[4].CommitIndex.Value);
        Assert.DoesNotContain(
            trace.Messages, message => message.From.Value == 4 && message.Kind <= RaftMessageKind.VoteReply);
    }

    private static Trace Run(string name, TraceOptions options, string script)
    {
        Trace trace = new Trace(options).Run(script);
        Golden.Check(name, trace.Output);
        return trace;
    }
}
