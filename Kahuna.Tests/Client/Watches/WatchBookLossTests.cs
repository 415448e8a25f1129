using Kahuna.Client.Watches;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Watches;
using static Kahuna.Tests.Client.Watches.WatchFrames;

namespace Kahuna.Tests.Client.Watches;

/// <summary>What a client's watches tell of losses, refusals and progress.</summary>
public sealed class WatchBookLossTests : WatchBookScenario
{
    [Fact]
    public void A_loss_is_told_to_those_that_it_concerns()
    {
        WatchQueue behind = Begin("a", 10);
        WatchQueue ahead = Begin("b", 30);
        Changes(new SentChange(11, "a1", 1));
        Notice(WatchNoticeCode.Compacted, 0, At(20));
        WatchEvent[] events = Take(behind);
        Assert.Equal(["a1@11", "Compacted"], Told(events));
        Assert.Equal(Position(At(20)), events[1].Position);
        Assert.Empty(Take(ahead));
        Notice(WatchNoticeCode.Compacted, 0, At(20));
        Assert.Empty(Take(behind));
        Notice(WatchNoticeCode.Compacted, 2, At(40));
        Assert.Equal(["Compacted"], Told(Take(ahead)));
        Assert.Empty(Take(behind));
    }

    [Fact]
    public void A_new_epoch_is_told_and_its_changes_follow()
    {
        WatchQueue queue = New(new WatchOptions());
        Book.Begin(
            queue,
            Filter("a", Durability.Ephemeral),
            new WatchPosition(Cluster, Durability.Ephemeral, [At(90, group: Ephemeral, epoch: 3)]),
            WatchOrigin.Now);
        Requested();
        Begun(1);
        Notice(WatchNoticeCode.EpochBegan, 0, At(0, group: Ephemeral, epoch: 4));
        Notice(WatchNoticeCode.EpochBegan, 1, At(0, group: Ephemeral, epoch: 4));
        Deliver(FrameKind.Changes, WatchFrames.Changes(Ephemeral, 4, new SentChange(2, "a1", 1)));
        Assert.Equal(["EpochBegan", "a1@2"], Told(Take(queue)));
        Deliver(FrameKind.Changes, WatchFrames.Changes(Ephemeral, 3, new SentChange(95, "a0", 1)));
        Assert.Empty(Take(queue));
    }

    [Fact]
    public void Another_node_is_tried_before_a_loss_is_told_while_nothing_has_come()
    {
        WatchQueue queue = Begin("a", 10);
        Book.TriesOthers = true;
        Assert.False(Notice(WatchNoticeCode.Compacted, 0, At(20)));
        NextStream();
        Assert.Equal(At(10), Assert.Single(Points(1)));
        Begun(1);
        Assert.Empty(Take(queue));
        Changes(new SentChange(11, "a1", 1));
        Assert.True(Notice(WatchNoticeCode.Compacted, 0, At(20)));
        NextStream();
        Points(1);
        Begun(1);
        Book.TriesOthers = false;
        Assert.True(Notice(WatchNoticeCode.Compacted, 1, At(30)));
        Assert.Equal(["a1@11", "Compacted", "Compacted"], Told(Take(queue)));
    }

    [Fact]
    public void A_slow_consumer_that_has_lost_changes_does_not_make_the_stream_move()
    {
        WatchQueue queue = New(new WatchOptions());
        Book.TriesOthers = true;
        Book.Begin(queue, Filter("a"), Position(At(10)), WatchOrigin.Lagging);
        Requested();
        Begun(1);
        Assert.True(Notice(WatchNoticeCode.Compacted, 1, At(20)));
        Assert.Equal(["Compacted"], Told(Take(queue)));
    }

    [Fact]
    public void Progress_is_told_when_it_is_due_and_newer_replaces_older()
    {
        WatchQueue queue = New(new WatchOptions { ProgressInterval = TimeSpan.FromSeconds(1) });
        Book.Begin(queue, Filter("a"), Position(At(10)), WatchOrigin.Now);
        Requested();
        Begun(1);
        Deliver(FrameKind.Progress, WatchFrames.Progress(new WatchProgress(At(12), 40)), nowMs: 1_000);
        Deliver(FrameKind.Progress, WatchFrames.Progress(new WatchProgress(At(13), 40)), nowMs: 1_500);
        WatchEvent told = Assert.Single(Take(queue));
        Assert.Equal((WatchEventKind.Progress, 40.0), (told.Kind, told.Behind!.Value.TotalMilliseconds));
        Assert.Equal(Position(At(12)), told.Position);
        Deliver(FrameKind.Progress, WatchFrames.Progress(new WatchProgress(At(14), 0)), nowMs: 3_000);
        Deliver(FrameKind.Progress, WatchFrames.Progress(new WatchProgress(At(15), 0)), nowMs: 5_000);
        Assert.Equal(Position(At(15)), Assert.Single(Take(queue)).Position);
        Deliver(FrameKind.Progress, WatchFrames.Progress(new WatchProgress(At(16), 0)), nowMs: 7_000);
        Changes(new SentChange(17, "a1", 1));
        Deliver(FrameKind.Progress, WatchFrames.Progress(new WatchProgress(At(17), 0)), nowMs: 9_000);
        Assert.Equal(["Progress", "a1@17"], Told(Take(queue)));
    }

    [Fact]
    public void The_end_of_the_state_is_told_behind_everything_that_the_state_may_show()
    {
        WatchQueue queue = Begin("a", 10);
        Book.TellWhenAt(queue, Position(At(12)));
        Changes(new SentChange(11, "a1", 1), new SentChange(12, "a2", 1));
        Assert.Equal(["a1@11", "a2@12"], Told(Take(queue)));
        Progress(At(12));
        Assert.Equal(["CurrentEnd"], Told(Take(queue)));
        Book.TellWhenAt(queue, Position(At(12)));
        Assert.Equal(["CurrentEnd"], Told(Take(queue)));
    }

    [Fact]
    public void A_watch_that_is_refused_ends_with_the_reason_and_one_that_is_put_off_isAskedFor_for_again()
    {
        WatchQueue refused = New(new WatchOptions());
        WatchQueue putOff = New(new WatchOptions());
        Book.Begin(refused, Filter("a"), Position(At(10)), WatchOrigin.Now);
        Book.Begin(putOff, Filter("b"), Position(At(10)), WatchOrigin.Now);
        Task begun = refused.WhenBegun(isInline: true);
        Requested();
        Notice(WatchNoticeCode.Refused, 1, status: (uint)OutcomeStatus.InvalidArgument, text: "no");
        Notice(WatchNoticeCode.Refused, 2, status: (uint)OutcomeStatus.Busy);
        KahunaException failure = Assert.Throws<KahunaException>(() => refused.TryTake(out _, out _));
        Assert.Equal((KahunaErrorCode.InvalidArgument, "no."), (failure.Code, failure.Message));
        Assert.True(begun.IsCompleted);
        Assert.Empty(Requested());
        Book.AskAgain();
        Assert.Equal([(2u, WatchOperation.Begin)], Requested());
        Assert.False(putOff.TryTake(out _, out _));
    }

    [Fact]
    public void A_watch_of_another_cluster_ends()
    {
        WatchQueue queue = Begin("a", 10);
        NextStream();
        Book.OnStreamBegan(Cluster + 1);
        Assert.Equal(
            KahunaErrorCode.InvalidArgument,
            Assert.Throws<KahunaException>(() => queue.TryTake(out _, out _)).Code);
        Assert.Equal(0, Book.Count);
    }

    [Fact]
    public void Malformed_frames_end_the_stream()
    {
        Begin("a", 10);
        byte[] changes = WatchFrames.Changes(new SentChange(11, "a1", 1));
        foreach (FrameKind kind in new[] { FrameKind.Changes, FrameKind.Progress, FrameKind.Notices })
        {
            for (int length = 0; length < changes.Length; length++)
            {
                Assert.Throws<InvalidDataException>(() => Book.Deliver(kind, changes.AsSpan(0, length), 3, default));
            }
        }

        Assert.Throws<InvalidDataException>(() => Book.Deliver(FrameKind.Replies, [], 0, default));
    }

    [Fact]
    public void Requests_of_many_watches_are_spread_over_frames()
    {
        for (int i = 0; i < 10_000; i++)
        {
            Book.Begin(New(new WatchOptions()), Filter($"a{i}"), Position(At(1)), WatchOrigin.Now);
        }

        ByteBuffer frame = ByteBuffer.Rent();
        int first = Book.TakeRequests(frame);
        Assert.InRange(first, 1, 9_999);
        Assert.InRange(frame.Length, 1, Kahuna.Wire.Limits.FrameBytesTarget + 100);
        Assert.Equal(10_000 - first, Requested().Length);
        frame.Return();
    }
}
