using Kahuna.Server.Raft;

namespace Kahuna.Tests.Raft;

/// <summary>
/// Truncated logs, and followers that need a snapshot (Raft §7): golden traces, each with the assertion that it is
/// about.
/// </summary>
public sealed class SnapshotScenarioTests
{
    [Fact]
    public void Raft_7_follower_behind_the_start_gets_a_snapshot()
    {
        Trace trace = Run("raft-7-behind-the-start", new TraceOptions(), """
            quiet
            campaign 1
            settle
            cut 3
            propose 1 a b c
            settle
            trim 1 4
            loud
            # 3 comes back; what it lacks is no longer in the log. It is told once, and nothing is appended to it.
            heal 3
            tick 1 1
            settle
            propose 1 d
            settle
            tick 1 1
            settle
            transfer 1 3
            # It has the state up to 4 and says so; the entry behind it follows at once, before the transfer is told to have ended.
            install 1->3 4
            persist 3
            deliver 3->1
            settle
            ended 1->3 4
            tick 1 1
            settle
            state
            """);
        Assert.Equal("a b c d", trace.StateTextOf(3));
        Assert.Equal("d", trace.TextOf(3));
        Assert.Equal([(1, 3)], trace.SnapshotsWanted);
        Assert.Contains("not accepted", trace.Output, StringComparison.Ordinal);
        Assert.DoesNotContain(
            trace.Messages, message => message is { Kind: RaftMessageKind.Append, To.Value: 3, Index.Value: 2 or 3 });
    }

    [Fact]
    public void Raft_7_entries_follow_when_the_transfer_is_told_to_have_ended()
    {
        Trace trace = Run("raft-7-entries-follow", new TraceOptions(), """
            quiet
            campaign 1
            settle
            cut 3
            propose 1 a b c
            settle
            trim 1 4
            heal 3
            tick 1 1
            settle
            propose 1 d
            settle
            loud
            # The acknowledgement of the state is lost. The end of the transfer leads to a probe right behind it.
            install 1->3 4
            persist 3
            drop 3->1
            ended 1->3 4
            settle
            tick 1 1
            settle
            state
            """);
        Assert.Equal("a b c d", trace.StateTextOf(3));
    }

    [Fact]
    public void Raft_7_lost_acknowledgement_of_a_state_is_asked_for()
    {
        Trace trace = Run("raft-7-lost-acknowledgement", new TraceOptions(), """
            quiet
            campaign 1
            settle
            cut 3
            propose 1 a b c
            settle
            trim 1 4
            heal 3
            tick 1 1
            settle
            loud
            # 3 has the state, but its acknowledgement is lost and nobody tells the leader how the transfer ended: the next heartbeat finds out.
            install 1->3
            persist 3
            drop 3->1
            tick 1 1
            settle
            state
            """);
        Assert.Equal(4UL, trace[1].MatchIndex(new(3)).Value);
        Assert.False(trace[1].AwaitsSnapshot(new(3)));
    }

    [Fact]
    public void Raft_7_snapshot_is_aborted_by_an_acknowledgement()
    {
        Trace trace = Run("raft-7-aborted", new TraceOptions(), """
            quiet
            campaign 1
            settle
            propose 1 a b c
            deliver 1->2
            persist all
            deliver 2->1
            tick 1 1
            deliver 1->2
            trim 1 4
            loud
            # The heartbeat to 3 overtakes the append before it: the entries seem lost, and the log no longer has them.
            reverse 1->3
            deliver 1->3
            deliver 3->1
            # They were not: 3 acknowledges them, and needs no snapshot any more.
            persist 3
            deliver 3->1
            propose 1 d
            settle
            # What the transfer tells now changes nothing, and the state that arrives is not taken.
            ended 1->3 fails
            ended 1->3 4
            install 1->3 4
            state
            """);
        Assert.Equal([(1, 3)], trace.SnapshotsWanted);
        Assert.False(trace[1].AwaitsSnapshot(new(3)));
        Assert.Equal("a b c d", trace.TextOf(3));
    }

    [Fact]
    public void Raft_7_acknowledged_entries_survive_a_late_snapshot()
    {
        Trace trace = Run("raft-7-late-snapshot", new TraceOptions(), """
            quiet
            campaign 1
            settle
            propose 1 a b c
            settle
            loud
            # 3 has acknowledged all of them, and does not know that they are committed. A state that ends among them must not cost it the rest.
            state
            install 1->3 3
            state
            """);
        Assert.Equal("a b c", trace.TextOf(3));
        Assert.Contains("3 does not take 3/1", trace.Output, StringComparison.Ordinal);
    }

    [Fact]
    public void Raft_7_failed_transfer_is_told_again()
    {
        Trace trace = Run("raft-7-failed-transfer", new TraceOptions(), """
            quiet
            campaign 1
            settle
            cut 3
            propose 1 a b c
            settle
            trim 1 4
            heal 3
            loud
            tick 1 1
            settle
            # A lost frame is no reason to begin anew: the transfer has a resumption of its own.
            unreachable 1 3
            tick 1 1
            settle
            # It failed: after a pause it is told again.
            ended 1->3 fails
            quiet
            tick 1 4
            settle
            tick 1 5
            settle
            loud
            tick 1 1
            settle
            # What the state ends with was cut meanwhile as well: a newer one is needed at once.
            propose 1 d e
            settle
            tick 1 1
            settle
            install 1->3 4
            drop 3->1
            trim 1 6
            ended 1->3 4
            install 1->3
            settle
            tick 1 1
            settle
            state
            """);
        Assert.Equal([(1, 3), (1, 3), (1, 3)], trace.SnapshotsWanted);
        Assert.Equal("a b c d e", trace.StateTextOf(3));
    }

    [Fact]
    public void Raft_7_refusal_below_the_start()
    {
        Trace trace = Run("raft-7-refusal-below", new TraceOptions(), """
            # The terms of the log of 3 lead below the start of the log of 1: there is nothing to probe, one refusal is enough.
            node 1 term 3 cut 4 log 1 1 2 2 3 3
            node 2 term 3 log 1 1 2 2 3 3
            node 3 term 2 log 1 1 1 1 1
            campaign 1
            settle
            install 1->3
            settle
            ended 1->3 7
            settle
            tick 1 1
            settle
            state
            """);
        Assert.Equal([(1, 3)], trace.SnapshotsWanted);
        Assert.Equal(
            1,
            trace.Messages.Count(
                message => message is { Kind: RaftMessageKind.AppendReply, Reject: true, From.Value: 3 }));
        Assert.Equal(trace.StateTextOf(1), trace.StateTextOf(3));
    }

    [Fact]
    public void Raft_7_install_on_a_conflicting_log()
    {
        Trace trace = Run("raft-7-conflicting-log", new TraceOptions(), """
            # 3 has a longer log, which agrees with none of what is committed behind index 2.
            node 1 term 3 cut 4 log 1 1 2 2 3
            node 2 term 3 log 1 1 2 2 3
            node 3 term 2 log 1 1 1 1 1 1 1 1
            campaign 1
            settle
            # A crash before the new start of its log is durable leaves the old log.
            install 1->3 4
            crash 3
            restart 3
            state
            install 1->3 4
            persist 3
            crash 3
            restart 3
            state
            ended 1->3 4
            settle
            tick 1 1
            settle
            state
            """);
        Assert.Equal("3 4", trace.LogOf(3));
        Assert.Equal(trace.StateTextOf(1), trace.StateTextOf(3));
        Assert.Equal(4UL, trace[3].LogStart.Value);
    }

    [Fact]
    public void Raft_5_4_1_votes_with_an_empty_log_above_a_start()
    {
        Trace trace = Run("raft-5.4.1-empty-log", new TraceOptions(), """
            # The logs of 1 and 2 are empty, and end with entry 4 of term 2 all the same.
            node 1 term 3 cut 4 log 1 1 2 2
            node 2 term 3 cut 4 log 1 1 2 2
            node 3 term 3 log 1 1 2
            campaign 3
            settle
            state
            campaign 1
            settle
            state
            """);
        Assert.Equal(RaftRole.Leader, trace[1].Role);
        Assert.Equal([(1, 3)], trace.SnapshotsWanted);
        Assert.Contains(trace.Messages, message =>
            message is { Kind: RaftMessageKind.PreVoteReply, From.Value: 1, To.Value: 3, Reject: true });
    }

    private static Trace Run(string name, TraceOptions options, string script)
    {
        Trace trace = new Trace(options).Run(script);
        Golden.Check(name, trace.Output);
        return trace;
    }
}
