using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Hosting.Measurements;

/// <summary>Answers are counted by operation, durability, outcome and time, without allocating.</summary>
public sealed class OperationTimesTests
{
    private readonly SteppedTime _time = new();

    [Fact]
    public void An_answer_takes_until_the_end_of_its_round()
    {
        OperationTimes times = new(_time);
        RequestTag set = Tag(CommandKind.Set, Durability.Persistent);
        _time.Now += TimeSpan.FromMilliseconds(3);
        RequestTag get = Tag(CommandKind.Get, Durability.Ephemeral);
        times.Ended(set, OutcomeStatus.Applied);
        times.Ended(get, OutcomeStatus.NotFound);
        _time.Now += TimeSpan.FromMilliseconds(1);
        times.EndRound();

        OperationRow[] rows = [.. times.Rows];
        Assert.Equal(
            [(CommandKind.Set, Durability.Persistent), (CommandKind.Get, Durability.Ephemeral)],
            rows.Select(static row => (row.Kind, row.Durability)).OrderBy(static row => row.Kind));
        OperationRow first = rows.Single(static row => row.Kind == CommandKind.Set);
        OperationRow second = rows.Single(static row => row.Kind == CommandKind.Get);
        Assert.Equal((1, 0), (first.Count(OutcomeStatus.Applied), first.Count(OutcomeStatus.NotFound)));
        Assert.Equal(1, second.Count(OutcomeStatus.NotFound));
        Assert.Equal((4_000, 1_000), (Sum(first), Sum(second)));
    }

    [Fact]
    public void What_has_no_kind_is_not_counted()
    {
        OperationTimes times = new(_time);
        times.Ended(7, OutcomeStatus.Applied);
        times.EndRound();

        Assert.Empty(times.Rows);
    }

    [Fact]
    public void A_round_of_many_answers_is_counted_whole()
    {
        OperationTimes times = new(_time);
        RequestTag tag = Tag(CommandKind.Set, Durability.Persistent);
        for (int i = 0; i < 10_000; i++)
        {
            times.Ended(tag, OutcomeStatus.Applied);
        }

        times.EndRound();
        Assert.Equal(10_000, times.Rows.Single().Count(OutcomeStatus.Applied));
    }

    [Fact]
    public void An_answer_allocates_nothing()
    {
        OperationTimes times = new(TimeProvider.System);
        RequestTag tag = new(
            1, OperationTimes.Stamp(TimeProvider.System), (byte)CommandKind.Set, (byte)Durability.Persistent);
        void Round()
        {
            for (int i = 0; i < 2_000; i++)
            {
                times.Ended(tag, OutcomeStatus.Applied);
            }

            times.EndRound();
        }

        Round();
        long before = GC.GetAllocatedBytesForCurrentThread();
        Round();
        Assert.Equal(0, GC.GetAllocatedBytesForCurrentThread() - before);
    }

    private static long Sum(OperationRow row)
    {
        long sum = 0;
        row.Times.AddTo(new long[DurationHistogram.Bounds + 1], ref sum);
        return sum;
    }

    private RequestTag Tag(CommandKind kind, Durability durability) =>
        new(1, OperationTimes.Stamp(_time), (byte)kind, (byte)durability);
}
