using Kahuna.Server.Partitions.Changes;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Partitions.Changes;

/// <summary>
/// The newest changes of a group in bounded memory: in order, whole entries only, and what is gone is told.
/// </summary>
public sealed class ChangeLogReadTests
{
    private static readonly GroupId s_group = GroupId.Of(3, isEphemeral: true);

    [Fact]
    public void Nothing_of_an_entry_is_read_before_all_of_it_is_there()
    {
        ChangeLog log = new(s_group, 1 << 20);
        ChangeLogModel model = new(log);
        ChangeCursor cursor = new(log.Status.Applied);
        List<(ChangePoint Point, string Text)> found = [];
        model.Change(0, "a", "1", transaction: 1);
        model.Change(1, "b", "1", transaction: 1);
        Assert.Equal(ChangeRead.End, ChangeLogModel.Read(log, ref cursor, found, 1_000));
        Assert.Empty(found);
        model.Publish();
        Assert.Equal(ChangeRead.More, ChangeLogModel.Read(log, ref cursor, found, 1_000));
        Assert.Equal(model.Written, found);
        Assert.Equal(ChangeRead.End, ChangeLogModel.Read(log, ref cursor, found, 1_000));
        Assert.Equal(ChangePoint.After(s_group.Value, 0, 1), cursor.Point);
    }

    [Theory]
    [InlineData(1, 200, 4)]
    [InlineData(2, 20, 2)]
    [InlineData(3, 3_000, 3)]
    public void Readers_find_every_change_once_and_in_order_or_are_told_that_some_are_gone(
        int seed, int bytesMax, int segments)
    {
        const int Segment = 1_024;
        Random random = new(seed);
        ChangeLog log = new(s_group, segments * Segment, Segment);
        ChangeLogModel model = new(log);
        ChangeCursor[] cursors = [.. Enumerable.Repeat(new ChangeCursor(log.Status.Applied), 5)];
        int[] told = new int[5];
        for (int step = 0; step < 20_000; step++)
        {
            model.Entry(random, bytesMax);
            if (random.Next(500) == 0)
            {
                model.Restart(model.Index + (ulong)random.Next(5), new Epoch(log.Status.Applied.Epoch));
            }
            else if (random.Next(1_000) == 0)
            {
                model.Restart(0, new Epoch(log.Status.Applied.Epoch + 1));
            }

            int reader = random.Next(cursors.Length);
            if (random.Next(10) == 0)
            {
                // Where it was in the log is only a hint.
                cursors[reader] = new ChangeCursor(cursors[reader].Point);
            }

            told[(int)Follow(log, model, ref cursors[reader], random.Next(4) * random.Next(1_000))]++;
            Assert.True(log.Bytes <= Math.Max(segments * Segment, bytesMax + (2 * Segment)));
        }

        Assert.All(Enum.GetValues<ChangeRead>(), result => Assert.True(
            told[(int)result] > 0 || result == ChangeRead.Ahead, $"{result} was never told"));
    }

    [Fact]
    public void A_reader_of_what_is_gone_goes_on_behind_a_whole_entry()
    {
        ChangeLog log = new(s_group, 2 * 256, 256);
        ChangeLogModel model = new(log);
        ChangeCursor cursor = new(log.Status.Applied);
        for (int n = 0; n < 20; n++)
        {
            model.Change(n, "k", new string('x', 20), transaction: 1);
        }

        List<(ChangePoint Point, string Text)> found = [];
        Assert.Equal(ChangeRead.Compacted, ChangeLogModel.Read(log, ref cursor, found, 1_000));
        Assert.Equal(ChangeRead.Ahead, ChangeLogModel.Read(log, ref cursor, found, 1_000));
        model.Publish();
        Assert.Equal(ChangeRead.End, ChangeLogModel.Read(log, ref cursor, found, 1_000));
        Assert.Equal(ChangePoint.After(s_group.Value, 0, 1), cursor.Point);
        Assert.Empty(found);
    }

    [Fact]
    public void A_reader_in_the_middle_of_an_entry_that_is_kept_goes_on_there()
    {
        ChangeLog log = new(s_group, 2 * 256, 256);
        ChangeLogModel model = new(log);
        for (int n = 0; n < 20; n++)
        {
            model.Change(n, "k", new string('x', 20), transaction: 1);
        }

        model.Publish();
        ChangeCursor cursor = new(model.Written[^3].Point);
        List<(ChangePoint Point, string Text)> found = [];
        Assert.Equal(ChangeRead.More, ChangeLogModel.Read(log, ref cursor, found, 1_000));
        Assert.Equal(model.Written.TakeLast(2), found);
    }

    [Fact]
    public void A_cursor_of_what_was_not_applied_yet_waits()
    {
        ChangeLog log = new(s_group, 1 << 20);
        ChangeLogModel model = new(log);
        ChangeCursor cursor = new(new ChangePoint(s_group.Value, 0, 2, 0));
        List<(ChangePoint Point, string Text)> found = [];
        model.Change(0, "a", "1");
        model.Publish();
        Assert.Equal(ChangeRead.Ahead, ChangeLogModel.Read(log, ref cursor, found, 1_000));
        model.Change(0, "a", "2");
        model.Change(1, "a", "3");
        model.Publish();
        Assert.Equal(ChangeRead.More, ChangeLogModel.Read(log, ref cursor, found, 1_000));
        Assert.Equal(["a=3"], found.Select(static change => change.Text));

        cursor = new ChangeCursor(ChangePoint.After(s_group.Value, 7, 1));
        Assert.Equal(ChangeRead.Ahead, ChangeLogModel.Read(log, ref cursor, found, 1_000));
    }

    [Fact]
    public void An_observer_is_told_once_of_a_turn_that_has_applied_something()
    {
        ChangeLog log = new(s_group, 1 << 20);
        ChangeLogModel model = new(log);
        CountingObserver observer = new();
        log.Observer = observer;
        log.Announce();
        observer.Told = 0;
        log.Announce();
        Assert.Equal(0, observer.Told);
        model.Publish();
        model.Publish();
        log.Announce();
        log.Announce();
        Assert.Equal(1, observer.Told);
    }

    [Fact]
    public async Task Readers_of_other_threads_never_see_bytes_that_are_being_overwritten()
    {
        const int Entries = 60_000;
        ChangeLog log = new(s_group, 3 * 1_024, 1_024);
        bool isOver = false;
        Task<(long Found, long Gone)>[] readers =
            [.. Enumerable.Range(0, 3).Select(reader => Task.Run(() => Read(log, reader, () => isOver)))];
        await Task.Run(() =>
        {
            ChangeLogModel model = new(log);
            for (int entry = 0; entry < Entries; entry++)
            {
                for (int n = 0; n <= entry % 3; n++)
                {
                    // Both say the same, so that a mixture shows.
                    string text = $"{model.Index + 1}.{n}." + new string((char)('a' + (entry % 26)), entry % 97);
                    model.Change(n, text, text);
                }

                model.Publish();
            }
        });
        Volatile.Write(ref isOver, true);
        foreach ((long found, long gone) in await Task.WhenAll(readers))
        {
            Assert.True(found > 0, $"{found} found, {gone} gone");
        }
    }

    private static (long Found, long Gone) Read(ChangeLog log, int reader, Func<bool> isOver)
    {
        ChangeCursor cursor = new(ChangePoint.After(s_group.Value, 0, 0));
        (long found, long gone) = (0, 0);
        List<(ChangePoint Point, string Text)> read = [];
        while (true)
        {
            bool isLast = isOver();
            ChangePoint before = cursor.Point;
            read.Clear();
            ChangeRead result = ChangeLogModel.Read(log, ref cursor, read, 100 << (3 * reader));
            foreach ((ChangePoint point, string text) in read)
            {
                // Entry i has i modulo 3 changes more than one, counted from 0 on.
                bool isNext = point.N > 0
                    ? before == point with { N = point.N - 1 }
                    : before.Index + 1 == point.Index
                        && (before.N == ChangePoint.AllOfEntry || before.N == (before.Index - 1) % 3);
                Assert.True(isNext, $"{before} and then {point}");
                string half = text[..((text.Length - 1) / 2)];
                Assert.Equal($"{half}={half}", text);
                Assert.StartsWith($"{point.Index}.{point.N}.", half, StringComparison.Ordinal);
                before = point;
                found++;
            }

            gone += result == ChangeRead.Compacted ? 1 : 0;
            if (isLast && result == ChangeRead.End)
            {
                return (found, gone);
            }
        }
    }

    /// <summary>Reads to the end, and compares with what was written.</summary>
    private static ChangeRead Follow(ChangeLog log, ChangeLogModel model, ref ChangeCursor cursor, int bytesMax)
    {
        ChangePoint before = cursor.Point;
        ChangeLogStatus status = log.Status;
        List<(ChangePoint Point, string Text)> found = [];
        ChangeRead result = ChangeLogModel.Read(log, ref cursor, found, bytesMax);
        ChangePoint end = cursor.Point;
        (ChangePoint Point, string Text)[] expected =
            [.. model.Written.Where(written => written.Point > before && written.Point <= end)];
        switch (result)
        {
            case ChangeRead.More or ChangeRead.End:
                Assert.Equal(expected, found);
                Assert.Equal(result == ChangeRead.More, found.Count > 0);
                break;
            case ChangeRead.Compacted:
                Assert.Empty(found);
                Assert.True(before < status.Lost && before.Epoch == status.Lost.Epoch);
                Assert.True(cursor.Point >= status.Lost && cursor.Point.N == ChangePoint.AllOfEntry);
                break;
            case ChangeRead.EpochBegan:
                Assert.Empty(found);
                Assert.True(before.Epoch < status.Applied.Epoch);
                Assert.Equal(ChangePoint.After(s_group.Value, status.Applied.Epoch, 0), cursor.Point);
                break;
            default:
                Assert.Fail($"{before} is said to be ahead of {status.Applied}");
                break;
        }

        return result;
    }

    private sealed class CountingObserver : IChangeObserver
    {
        public int Told { get; set; }

        public void HasNews(ChangeLog log) => Told++;
    }
}
