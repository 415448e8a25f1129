using Kahuna.Server.Hosting.Page;

namespace Kahuna.Tests.Hosting.Page;

/// <summary>Answers that nobody reads leave when there is no room for others, or when their time is up.</summary>
public sealed class AnswerRoomTests
{
    [Fact]
    public void Without_room_the_oldest_answers_are_cut_off_and_no_others()
    {
        AnswerRoom room = new(100, LastNet.Span);
        using AnswerRoom.Place first = room.Enter(40, default);
        using AnswerRoom.Place second = room.Enter(40, default);
        Assert.False(first.Token.IsCancellationRequested);
        using AnswerRoom.Place third = room.Enter(60, default);

        Assert.True(first.Token.IsCancellationRequested);
        Assert.False(second.Token.IsCancellationRequested);
        Assert.False(third.Token.IsCancellationRequested);
        Assert.Equal(100, room.Used);
    }

    [Fact]
    public void An_answer_that_was_sent_makes_room()
    {
        AnswerRoom room = new(100, LastNet.Span);
        using AnswerRoom.Place first = room.Enter(60, default);
        room.Enter(40, default).Dispose();
        using AnswerRoom.Place third = room.Enter(40, default);

        Assert.False(first.Token.IsCancellationRequested);
        Assert.Equal(100, room.Used);
    }

    [Fact]
    public void An_answer_that_is_larger_than_the_room_has_it_for_itself()
    {
        AnswerRoom room = new(100, LastNet.Span);
        using AnswerRoom.Place first = room.Enter(1, default);
        using (AnswerRoom.Place large = room.Enter(1_000, default))
        {
            Assert.True(first.Token.IsCancellationRequested);
            Assert.False(large.Token.IsCancellationRequested);
        }

        Assert.Equal(0, room.Used);
    }

    [Fact]
    public async Task An_answer_ends_when_its_time_is_up_or_its_caller_is_gone()
    {
        AnswerRoom room = new(100, TimeSpan.FromMilliseconds(1));
        using AnswerRoom.Place late = room.Enter(1, default);
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => Task.Delay(LastNet.Minute, late.Token));

        using CancellationTokenSource caller = new();
        using AnswerRoom.Place left = new AnswerRoom(100, LastNet.Span).Enter(1, caller.Token);
        await caller.CancelAsync();
        Assert.True(left.Token.IsCancellationRequested);
    }
}
