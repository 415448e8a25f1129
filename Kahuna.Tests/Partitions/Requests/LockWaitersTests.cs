using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Tests.State.Locks;
using Kahuna.Wire;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Partitions.Requests;

/// <summary>
/// Answers are held back until there is something to say; leases end, and waits that nobody asks about are given up,
/// because the leader decides it.
/// </summary>
public sealed class LockWaitersTests
{
    private readonly ModelCluster _cluster = new(3, configure: options => options with { PlacementTicks = 1 << 20 });
    private readonly NodeId _leader;

    public LockWaitersTests() => _leader = _cluster.Elect();

    [Fact]
    public void Who_waits_is_told_when_the_lock_is_freed()
    {
        long ann = Do(LockCommands.Acquire("l", "ann", leaseMs: 60_000)).Revision;
        long bob = Do(LockCommands.Acquire("l", "bob", leaseMs: 60_000, waitMs: 60_000)).Revision;
        ModelSink held = _cluster.Send(_leader, LockCommands.Await("l", "bob", bob, holdMs: 10_000));
        ModelSink second = _cluster.Send(_leader, LockCommands.Await("l", "bob", bob, holdMs: 10_000));
        _cluster.Tick(10);
        Assert.Empty(held.Replies);
        Assert.Equal(1, held.HeldBack);
        Do(LockCommands.Release("l", "ann", ann));
        Assert.Equal((OutcomeStatus.Found, bob), (held.Replies[0].Status, held.Replies[0].Revision));
        Assert.Equal(OutcomeStatus.Found, second.Replies[0].Status);
        Assert.Equal(0, held.HeldBack);
        SameEverywhere();
    }

    [Fact]
    public void An_answer_is_held_back_no_longer_than_it_was_asked_for()
    {
        Do(LockCommands.Acquire("l", "ann", leaseMs: 60_000));
        long bob = Do(LockCommands.Acquire("l", "bob", waitMs: 60_000)).Revision;
        Assert.Equal(OutcomeStatus.Queued, Do(LockCommands.Await("l", "bob", bob)).Status);
        ModelSink held = _cluster.Send(_leader, LockCommands.Await("l", "bob", bob, holdMs: 500));
        _cluster.Tick(9);
        Assert.Empty(held.Replies);
        _cluster.Tick(2);
        Assert.Equal(OutcomeStatus.Queued, held.Replies[0].Status);
    }

    [Fact]
    public void A_lease_ends_by_itself_and_the_next_has_the_lock()
    {
        Do(LockCommands.Acquire("l", "ann", leaseMs: 400));
        long bob = Do(LockCommands.Acquire("l", "bob", waitMs: 60_000)).Revision;
        ModelSink held = _cluster.Send(_leader, LockCommands.Await("l", "bob", bob, holdMs: 10_000));
        _cluster.Tick(7);
        Assert.Empty(held.Replies);
        _cluster.Tick(3);
        Assert.Equal(OutcomeStatus.Found, held.Replies[0].Status);
        SameEverywhere();
    }

    [Fact]
    public void A_wait_that_is_over_is_told_so()
    {
        Do(LockCommands.Acquire("l", "ann", leaseMs: 60_000));
        long bob = Do(LockCommands.Acquire("l", "bob", waitMs: 400)).Revision;
        ModelSink held = _cluster.Send(_leader, LockCommands.Await("l", "bob", bob, holdMs: 10_000));
        _cluster.Tick(10);
        Assert.Equal(OutcomeStatus.NotFound, held.Replies[0].Status);
    }

    [Fact]
    public void Who_never_asks_and_who_is_gone_is_given_up_and_who_asks_stays()
    {
        int checkTicks = (int)new StateLimits().WaiterCheckMs / 50;
        _cluster.Tick(checkTicks + 1);
        Do(LockCommands.Acquire("l", "ann", leaseMs: 3_000_000));
        long silent = Do(LockCommands.Acquire("l", "silent", waitMs: 3_000_000)).Revision;
        long gone = Do(LockCommands.Acquire("l", "gone", waitMs: 3_000_000)).Revision;
        long there = Do(LockCommands.Acquire("l", "there", waitMs: 3_000_000)).Revision;
        ModelSink lost = _cluster.Send(_leader, LockCommands.Await("l", "gone", gone, holdMs: 30_000));
        ModelSink stays = _cluster.Send(_leader, LockCommands.Await("l", "there", there, holdMs: 30_000));
        _cluster.Settle();
        lost.IsGone = true;
        _cluster.Tick(checkTicks + 2);
        Assert.Equal(OutcomeStatus.NotFound, Do(LockCommands.Await("l", "silent", silent)).Status);
        _cluster.Tick(110);
        Assert.Equal(OutcomeStatus.NotFound, Do(LockCommands.Await("l", "gone", gone)).Status);
        Assert.Empty(stays.Replies);
        Assert.Equal(OutcomeStatus.Queued, Do(LockCommands.Await("l", "there", there)).Status);
        SameEverywhere();
    }

    [Fact]
    public void A_connection_that_is_lost_takes_no_other_question_along()
    {
        int checkTicks = (int)new StateLimits().WaiterCheckMs / 50;
        long ann = Do(LockCommands.Acquire("l", "ann", leaseMs: 3_000_000)).Revision;
        long bob = Do(LockCommands.Acquire("l", "bob", leaseMs: 60_000, waitMs: 3_000_000)).Revision;
        ModelSink stays = _cluster.Send(_leader, LockCommands.Await("l", "bob", bob, holdMs: 30_000));
        _cluster.Settle();
        ModelSink lost = _cluster.Send(_leader, LockCommands.Await("l", "bob", bob, holdMs: 30_000));
        _cluster.Settle();
        lost.IsGone = true;
        _cluster.Tick(checkTicks + 5);
        Assert.Equal((1, 0), (stays.HeldBack, lost.HeldBack));
        Do(LockCommands.Release("l", "ann", ann));
        Assert.Equal((OutcomeStatus.Found, bob), (stays.Replies[0].Status, stays.Replies[0].Revision));
    }

    [Fact]
    public void Who_has_asked_not_long_ago_stays()
    {
        int checkTicks = (int)new StateLimits().WaiterCheckMs / 50;
        _cluster.Tick(checkTicks + 1);
        Do(LockCommands.Acquire("l", "ann", leaseMs: 3_000_000));
        long bob = Do(LockCommands.Acquire("l", "bob", waitMs: 3_000_000)).Revision;
        _cluster.Tick(checkTicks * 6 / 10);
        Assert.Equal(OutcomeStatus.Queued, Do(LockCommands.Await("l", "bob", bob)).Status);
        _cluster.Tick(checkTicks * 8 / 10);
        Assert.Equal(OutcomeStatus.Queued, Do(LockCommands.Await("l", "bob", bob)).Status);
        _cluster.Tick(checkTicks + 3);
        Assert.Equal(OutcomeStatus.NotFound, Do(LockCommands.Await("l", "bob", bob)).Status);
    }

    [Fact]
    public void A_new_leader_gives_those_who_wait_time_to_come_back()
    {
        Do(LockCommands.Acquire("l", "ann", leaseMs: 3_000_000));
        long bob = Do(LockCommands.Acquire("l", "bob", waitMs: 3_000_000)).Revision;
        ModelSink held = _cluster.Send(_leader, LockCommands.Await("l", "bob", bob, holdMs: 30_000));
        int checkTicks = (int)new StateLimits().WaiterCheckMs / 50;
        _cluster.Tick(checkTicks - 20);

        // The next leader's time goes on from here, so that it has to look after the claim a second later.
        Do(LockCommands.Acquire("other", "ann", leaseMs: 3_000_000));
        _cluster.Tick(4);
        _cluster.Cut.Add(_leader);
        _cluster.Elect();
        _cluster.Cut.Clear();
        _cluster.Tick(checkTicks - 40);
        Assert.Equal(OutcomeStatus.NotLeader, held.Replies[0].Status);
        ModelSink again = _cluster.Send(_cluster.LeaderOf(), LockCommands.Await("l", "bob", bob));
        _cluster.Settle();
        Assert.Equal(OutcomeStatus.Queued, again.Replies[0].Status);
        _cluster.Tick(checkTicks + 40);
        Assert.Equal(OutcomeStatus.NotFound, Do(LockCommands.Await("l", "bob", bob)).Status);
    }

    [Fact]
    public void A_leader_that_stood_still_gives_those_who_wait_time_to_come_back()
    {
        ModelCluster alone = new(1);
        NodeId leader = alone.Elect();
        alone.Send(leader, LockCommands.Acquire("l", "ann", leaseMs: 3_000_000));
        ModelSink queued = alone.Send(leader, LockCommands.Acquire("l", "bob", waitMs: 3_000_000));
        alone.Settle();
        long bob = queued.Replies[0].Revision;
        int checkMs = (int)new StateLimits().WaiterCheckMs;
        alone.Pass(2 * checkMs);
        alone.Tick((checkMs / 50) - 20);
        ModelSink again = alone.Send(leader, LockCommands.Await("l", "bob", bob));
        alone.Tick((checkMs / 50) + 40);
        ModelSink late = alone.Send(leader, LockCommands.Await("l", "bob", bob));
        alone.Settle();
        Assert.Equal((OutcomeStatus.Queued, OutcomeStatus.NotFound), (again.Replies[0].Status, late.Replies[0].Status));
    }

    [Fact]
    public void Who_observes_is_told_of_another_holder_and_of_none()
    {
        ModelSink none = _cluster.Send(_leader, LockCommands.Observe("e", 0, holdMs: 10_000));
        _cluster.Settle();
        Assert.Empty(none.Replies);
        long ann = Do(LockCommands.Acquire("e", "ann", leaseMs: 60_000)).Revision;
        Assert.Equal((OutcomeStatus.Found, ann), (none.Replies[0].Status, none.Replies[0].Revision));
        ModelSink some = _cluster.Send(_leader, LockCommands.Observe("e", ann, holdMs: 10_000));
        Do(LockCommands.Acquire("e", "bob", waitMs: 60_000));
        Assert.Empty(some.Replies);
        Do(LockCommands.Release("e", "ann", ann));
        Assert.Equal(OutcomeStatus.Found, some.Replies[0].Status);
        ModelSink last = _cluster.Send(_leader, LockCommands.Observe("e", some.Replies[0].Revision, holdMs: 10_000));
        _cluster.Tick(25);
        Assert.Equal(OutcomeStatus.NotFound, last.Replies[0].Status);
        ModelSink nothing = _cluster.Send(_leader, LockCommands.Observe("e", 0, holdMs: 500));
        _cluster.Tick(11);
        Assert.Equal(OutcomeStatus.NotFound, nothing.Replies[0].Status);
    }

    [Fact]
    public void A_stream_has_so_many_answers_held_back_and_further_ones_are_given_at_once()
    {
        Do(LockCommands.Acquire("l", "ann", leaseMs: 60_000));
        long bob = Do(LockCommands.Acquire("l", "bob", waitMs: 60_000)).Revision;
        ModelSink sink = _cluster.Send(_leader, LockCommands.Await("l", "bob", bob, holdMs: 10_000));
        sink.HoldBack(Limits.InFlightPerStreamMax / 2, 0);
        _cluster.Settle();
        Assert.Equal(OutcomeStatus.Queued, sink.Replies[0].Status);
    }

    private (OutcomeStatus Status, long Revision, long Number, string Value) Do(byte[] command)
    {
        ModelSink sink = _cluster.Send(_cluster.LeaderOf(), command);
        _cluster.Settle();
        return sink.Replies[0];
    }

    private void SameEverywhere()
    {
        _cluster.Tick(4);
        Assert.Single(_cluster.Ids.Select(id => _cluster[id.Value].Loops!.Group(0).State.Digest).Distinct());
    }
}
