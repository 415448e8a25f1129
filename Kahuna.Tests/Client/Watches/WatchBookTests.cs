using Kahuna.Client.Watches;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Watches;
using static Kahuna.Tests.Client.Watches.WatchFrames;

namespace Kahuna.Tests.Client.Watches;

/// <summary>What a client's watches hand on of the frames of nodes, and where they go on at the next node.</summary>
public sealed class WatchBookTests : WatchBookScenario
{
    [Fact]
    public void A_change_is_handed_on_once_with_the_position_behind_it()
    {
        WatchQueue queue = Begin("a", 10);
        Changes(
            new SentChange(11, "a1", 1) { Revision = 4, Value = "x" }, new SentChange(12, "a2", 1) { Value = null });
        WatchEvent[] events = Take(queue);
        Assert.Equal(["a1@11", "a2@12"], Told(events));
        Assert.Equal(
            ("x", 4L, WatchEventKind.Set), (events[0].Value.AsString(), events[0].Revision.Value, events[0].Kind));
        Assert.True(events[1].Value.IsNull);
        Assert.Equal(Position(At(12, 0)), events[1].Position);
        Changes(new SentChange(12, "a2", 1), new SentChange(9, "a0", 1));
        Assert.Empty(Take(queue));
    }

    [Theory]
    [InlineData(WatchedChangeKind.Set, WatchEventKind.Set)]
    [InlineData(WatchedChangeKind.Deleted, WatchEventKind.Deleted)]
    [InlineData(WatchedChangeKind.Expired, WatchEventKind.Expired)]
    [InlineData(WatchedChangeKind.Evicted, WatchEventKind.Evicted)]
    internal void Kinds_are_told_apart(WatchedChangeKind sent, WatchEventKind told)
    {
        WatchQueue queue = Begin("a", 10);
        Changes(new SentChange(11, "a1", 1) { Kind = sent });
        Assert.Equal(told, Assert.Single(Take(queue)).Kind);
    }

    [Fact]
    public void A_transaction_is_handed_on_as_a_whole_when_its_end_is_known()
    {
        WatchQueue queue = Begin("a", 10);
        WatchQueue other = Begin("a2", 10);
        Changes(new SentChange(11, "a0", 1));
        Changes(Part(12, 0, "a1", 1), Part(12, 1, "a2", 1, 2));
        Assert.Equal(["a0@11"], Told(Take(queue)));
        Changes(Part(12, 2, "a3", 1));
        Assert.Empty(Take(queue));
        Changes(new SentChange(12, "a4", 1) { N = 3 });
        WatchEvent[] events = Take(queue);
        Assert.Equal(["a1@12", "a2@12", "a3@12", "a4@12"], Told(events));
        Assert.Equal([true, true, false, false], events.Select(static one => one.HasMore));
        Assert.Equal(
            [Position(At(11, 0)), Position(At(11, 0)), Position(At(12, 2)), Position(At(12, 3))],
            events.Select(static one => one.Position));
        Assert.False(Assert.Single(Take(other)).HasMore);
    }

    [Fact]
    public void Two_transactions_of_one_entry_are_told_apart()
    {
        WatchQueue queue = Begin("a", 10);
        Changes(Part(11, 0, "a1", 1), Part(11, 1, "a2", 1));
        Changes(
            new SentChange(11, "a3", 1) { N = 2, Transaction = 3 },
            new SentChange(11, "a4", 1) { N = 3, Transaction = 3 });
        Assert.Equal([true, false], Take(queue).Select(static one => one.HasMore));
        Progress(At(11));
        Assert.Equal(["a3@11", "a4@11"], Told(Take(queue)));
    }

    [Fact]
    public void Progress_before_the_end_of_the_entry_does_not_complete_a_transaction()
    {
        WatchQueue queue = Begin("a", 10);
        Changes(Part(11, 0, "a1", 1));
        Progress(At(10));
        Progress(At(11, 0));
        Assert.Empty(Take(queue));
        Progress(At(11));
        Assert.Equal(["a1@11"], Told(Take(queue)));
    }

    [Fact]
    public void Half_a_transaction_is_not_handed_on_when_the_stream_ends_and_comes_again_as_a_whole()
    {
        WatchQueue queue = Begin("a", 10);
        Changes(new SentChange(11, "a0", 1));
        Changes(Part(12, 0, "a1", 1));
        NextStream();
        Assert.Equal(At(11, 0), Assert.Single(Points(1)));
        Begun(1);
        Changes(Part(12, 0, "a1", 1), Part(12, 1, "a2", 1));
        Progress(At(12));
        Assert.Equal(["a0@11", "a1@12", "a2@12"], Told(Take(queue)));
    }

    [Fact]
    public void Groups_have_transactions_of_their_own()
    {
        WatchQueue queue = Begin("a", At(10), At(20, group: 2));
        Changes(Part(11, 0, "a1", 1));
        Deliver(FrameKind.Changes, WatchFrames.Changes(2, 0, new SentChange(21, "b1", 1)));
        WatchEvent between = Assert.Single(Take(queue));
        Assert.Equal(Position(At(10), At(21, 0, group: 2)), between.Position);
        Progress(At(11));
        WatchEvent last = Assert.Single(Take(queue));
        Assert.Equal("a1", last.Key);
        Assert.Equal(Position(At(11, 0), At(21, 0, group: 2)), last.Position);
    }

    [Fact]
    public void A_watch_goes_on_behind_what_it_had_and_behind_the_progress_of_its_stream()
    {
        WatchQueue queue = Begin("a", At(10), At(20, group: 2), At(30, group: 3));
        Changes(new SentChange(11, "a1", 1));
        Progress(At(25, group: 2));
        NextStream();
        Assert.Equal([At(11, 0), At(25, group: 2), At(30, group: 3)], Points(1));
        Begun(1);
        Changes(new SentChange(11, "a1", 1), new SentChange(12, "a2", 1));
        Assert.Equal(["a1@11", "a2@12"], Told(Take(queue)));
    }

    [Fact]
    public void Progress_of_before_a_watch_began_says_nothing_of_it()
    {
        Begin("a", 10);
        Progress(At(50));
        WatchQueue late = Begin("b", 40);
        Progress(At(45));
        NextStream();
        Assert.Equal([At(50)], Points(1));
        Begun(1);
        Changes(new SentChange(41, "b1", 2));
        Assert.Equal(["b1@41"], Told(Take(late)));
    }

    [Fact]
    public void Equal_watches_share_one_at_the_node_if_the_points_allow_it()
    {
        WatchQueue first = Begin("a", 10);
        Changes(new SentChange(12, "a1", 1));
        WatchQueue now = Begin("a", WatchOrigin.Now, At(11));
        WatchQueue exact = Begin("a", WatchOrigin.Given, At(20));
        WatchQueue early = Begin("a", WatchOrigin.Given, At(11));
        Assert.Equal(2, Book.Count);
        Assert.Equal([1u, 2], AskedFor);
        Changes(new SentChange(13, "a2", 1), new SentChange(21, "a3", 1));
        Assert.Equal(["a1@12", "a2@13", "a3@21"], Told(Take(first)));
        Assert.Equal(["a2@13", "a3@21"], Told(Take(now)));
        Assert.Equal(["a3@21"], Told(Take(exact)));
        Assert.Empty(Take(early));
        Book.End(first);
        Book.End(now);
        Assert.Empty(Requested());
        Book.End(exact);
        Assert.Equal([(1u, WatchOperation.End)], Requested());
        Book.End(early);
        Assert.Equal([(2u, WatchOperation.End)], Requested());
        Assert.Equal(0, Book.Count);
    }

    [Fact]
    public void A_watch_that_is_over_before_it_wasAskedFor_for_is_notAskedFor_for()
    {
        WatchQueue queue = New(new WatchOptions());
        Book.Begin(queue, Filter("a"), Position(At(1)), WatchOrigin.Now);
        Book.End(queue);
        Assert.Empty(Requested());
    }

    [Fact]
    public void A_slow_consumer_is_told_and_its_watch_goes_on_behind_what_it_has()
    {
        WatchQueue slow = New(new WatchOptions { BufferedEvents = 3 });
        Book.Begin(slow, Filter("a"), Position(At(10)), WatchOrigin.Now);
        WatchQueue other = Begin("a", 10);
        Changes(new SentChange(11, "a1", 1), new SentChange(12, "a2", 1));
        Changes(Part(13, 0, "a3", 1), Part(13, 1, "a4", 1), new SentChange(14, "a5", 1));
        Assert.Equal(["a1@11", "a2@12", "a3@13", "a4@13", "a5@14"], Told(Take(other)));
        WatchEvent[] events = Take(slow, out WatchPosition? resumesAt);
        Assert.Equal(["a1@11", "a2@12", "Lagging"], Told(events));
        Assert.Equal((Position(At(12, 0)), Position(At(12, 0))), (resumesAt!, events[2].Position!));
        Assert.Equal(1, Book.Count);
        Book.Begin(slow, Filter("a"), resumesAt!, WatchOrigin.Lagging);
        Assert.Equal(At(12, 0), Assert.Single(Points(2)));
        Begun(2);
        Changes(Part(13, 0, "a3", 2), Part(13, 1, "a4", 2), new SentChange(14, "a5", 2));
        Assert.Equal(["a3@13", "a4@13", "a5@14"], Told(Take(slow)));
    }

    [Fact]
    public void The_bytes_that_wait_are_bounded_and_what_is_larger_is_taken_alone()
    {
        WatchQueue queue = New(new WatchOptions { BufferedBytes = 1_000 });
        Book.Begin(queue, Filter("a"), Position(At(10)), WatchOrigin.Now);
        Requested();
        Begun(1);
        Changes(new SentChange(11, "a1", 1) { Value = new string('x', 5_000) }, new SentChange(12, "a2", 1));
        Assert.Equal(["a1@11", "Lagging"], Told(Take(queue, out _)));
    }
}
