using System.Buffers.Binary;
using Kahuna.Server.Partitions.Changes;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Partitions.Changes;

/// <summary>What the readers of a change log find while its owner writes.</summary>
public sealed class ChangeLogTests
{
    private const int Segment = ChangeLog.SegmentBytes;

    private readonly ChangeLog _log = new(new GroupId(3), 4 * Segment);
    private ulong _index;
    private Epoch _epoch;

    [Fact]
    public void Changes_are_read_in_order_from_any_point()
    {
        for (int i = 0; i < 100; i++)
        {
            Apply(i % 3, bytes: 10);
        }

        List<ChangePoint> all = [.. Points(Read(Start))];
        Assert.Equal(99, all.Count);
        Assert.Equal(all.Order(), all);
        foreach (ChangePoint point in all.Append(Start))
        {
            Assert.Equal(all.Where(each => each > point), Points(Read(point)));
        }

        Assert.Equal(
            all.Where(static each => each.Index > 50), Points(Read(ChangePoint.After(3, 0, 50))));
    }

    [Fact]
    public void Nothing_of_an_entry_is_seen_before_it_is_published()
    {
        ChangeCursor cursor = new(Start);
        Apply(1, bytes: 10);
        Assert.Single(Read(ref cursor));
        Write(2, bytes: Segment / 2);
        Assert.Equal((ChangeRead.End, 1UL), (Next(ref cursor, out _), cursor.Point.Index));
        Write(2, bytes: Segment - 100);
        Assert.Equal((ChangeRead.End, 1UL), (Next(ref cursor, out _), cursor.Point.Index));
        Publish();
        Assert.Equal([(2, 0u), (2, 1u), (2, 2u), (2, 3u)], Read(ref cursor).Select(Place));
        Assert.Equal((ChangeRead.End, ChangePoint.After(3, 0, 2)), (Next(ref cursor, out _), cursor.Point));
    }

    [Fact]
    public void The_oldest_changes_make_room_and_their_readers_are_told()
    {
        ChangeCursor slow = new(Start);
        ChangeCursor prompt = new(Start);
        for (int i = 0; i < 50; i++)
        {
            Apply(1, bytes: Segment / 3);
            Assert.Equal([(i + 1, 0u)], Read(ref prompt).Select(Place));
            Assert.InRange(_log.Bytes, Segment, 4 * Segment);
        }

        ChangePoint lost = _log.Status.Lost;
        Assert.InRange(lost.Index, 38UL, 46UL);
        Assert.Equal(ChangeRead.Compacted, Next(ref slow, out _));
        Assert.Equal(lost with { N = ChangePoint.AllOfEntry }, slow.Point);
        Assert.Equal(
            Enumerable.Range((int)lost.Index + 1, 50 - (int)lost.Index),
            Read(ref slow).Select(static point => (int)point.Index));

        // A reader that has had exactly what is gone misses nothing.
        Assert.Equal(50 - (int)lost.Index, Read(lost).Count);
        ChangeCursor before = new(lost with { Index = lost.Index - 1 });
        Assert.Equal(ChangeRead.Compacted, Next(ref before, out _));
    }

    [Fact]
    public void A_change_that_is_larger_than_the_log_is_kept_alone()
    {
        Apply(1, bytes: 10);
        ChangeCursor cursor = new(Start);
        Read(ref cursor);
        Apply(1, bytes: 10 * Segment);
        Assert.Equal([(2, 0u)], Read(ref cursor).Select(Place));
        Assert.Equal(ChangePoint.After(3, 0, 1), _log.Status.Lost with { N = ChangePoint.AllOfEntry });
        Apply(1, bytes: 10);
        Assert.Equal([(3, 0u)], Read(ref cursor).Select(Place));
        Assert.InRange(_log.Bytes, 1, 4 * Segment);

        // Several in one entry: only the last is left, and nobody gets a part of it unnoticed.
        ChangeCursor missed = cursor;
        Write(1, bytes: 10 * Segment);
        Assert.NotEqual(ChangeRead.More, Next(ref cursor, out _));
        Write(1, bytes: 10 * Segment);
        Publish();
        Assert.Equal(ChangeRead.Compacted, Next(ref missed, out _));
        Assert.Equal((4, ChangePoint.AllOfEntry), Place(missed.Point));
        Assert.Empty(Read(ref missed));
    }

    [Fact]
    public void A_loaded_state_has_no_past()
    {
        Apply(1, bytes: 10);
        ChangeCursor cursor = new(Start);
        _index = 20;
        _log.Restart(_epoch, new LogIndex(20));
        Assert.Equal((ChangeRead.Compacted, ChangePoint.After(3, 0, 20)), (Next(ref cursor, out _), cursor.Point));
        Assert.Equal(ChangeRead.End, Next(ref cursor, out _));
        Apply(1, bytes: 10);
        Assert.Equal([(21, 0u)], Read(ref cursor).Select(Place));
        ChangeCursor ahead = new(ChangePoint.After(3, 0, 22));
        Assert.Equal(ChangeRead.Ahead, Next(ref ahead, out _));
        Apply(1, bytes: 10);
        Assert.Equal(ChangeRead.End, Next(ref ahead, out _));
        Apply(1, bytes: 10);
        Assert.Equal([(23, 0u)], Read(ref ahead).Select(Place));
    }

    [Fact]
    public void A_new_epoch_is_told_and_begins_empty()
    {
        Apply(1, bytes: 10);
        ChangeCursor cursor = new(Start);
        _epoch = new Epoch(2);
        _index = 0;
        _log.Restart(_epoch, default);
        ChangeCursor ahead = new(ChangePoint.After(3, 3, 1));
        Assert.Equal(ChangeRead.Ahead, Next(ref ahead, out _));
        Assert.Equal((ChangeRead.EpochBegan, ChangePoint.After(3, 2, 0)), (Next(ref cursor, out _), cursor.Point));
        Assert.Equal(ChangeRead.End, Next(ref cursor, out _));
        Apply(2, bytes: 10);
        Assert.Equal([(1, 0u), (1, 1u)], Read(ref cursor).Select(Place));
    }

    [Fact]
    public void A_reader_near_the_oldest_change_of_a_full_log_is_known()
    {
        ChangeCursor cursor = new(Start);
        Apply(1, bytes: 10);
        Next(ref cursor, out _);
        Assert.False(_log.IsNearLost(in cursor));
        for (int i = 0; i < 11; i++)
        {
            Apply(1, bytes: Segment / 3);
        }

        Assert.True(_log.IsNearLost(in cursor));
        Read(ref cursor);
        Assert.False(_log.IsNearLost(in cursor));
    }

    [Fact]
    public void An_observer_is_told_once_for_what_a_turn_has_published()
    {
        Recorder recorder = new();
        _log.Observer = recorder;
        _log.Announce();
        _log.Announce();
        Assert.Equal(1, recorder.Told);
        Apply(1, bytes: 10);
        Apply(1, bytes: 10);
        _log.Announce();
        _log.Announce();
        Assert.Equal(2, recorder.Told);
    }

    [Theory]
    [InlineData(2 * Segment, 1)]
    [InlineData(5 * Segment, 2)]
    public async Task Readers_beside_the_writer_see_order_without_gaps(long bytes, int seed)
    {
        ChangeLog log = new(new GroupId(3), bytes);
        using CancellationTokenSource stop = new(TimeSpan.FromMilliseconds(1_500));
        Task<long>[] readers =
        [
            .. Enumerable.Range(0, 2).Select(i => Task.Factory.StartNew(
                () => Follow(log, seed + i, stop.Token),
                CancellationToken.None,
                TaskCreationOptions.LongRunning,
                TaskScheduler.Default)),
        ];
        Random random = new(seed);
        byte[] value = new byte[Segment * 3];
        long number = 0;
        for (ulong index = 1; !stop.IsCancellationRequested; index++)
        {
            for (int n = 0; n < random.Next(4); n++)
            {
                int length = random.Next(200) == 0 ? random.Next(value.Length) : random.Next(8, 4_000);
                Span<byte> written = value.AsSpan(0, Math.Max(16, length));
                BinaryPrimitives.WriteInt64LittleEndian(written, ++number);
                BinaryPrimitives.WriteInt64LittleEndian(written[^8..], number);
                Tell(log, default, index, n, written);
            }

            log.Publish(new LogIndex(index));
            // Slower than memory, or no reader would ever read anything before it is gone.
            Thread.SpinWait(5_000);
        }

        long[] read = await Task.WhenAll(readers);
        Assert.All(read, static count => Assert.InRange(count, 1, long.MaxValue));
    }

    /// <summary>Reads until the end: numbers follow on each other, except where changes are said to be gone.</summary>
    private static long Follow(ChangeLog log, int seed, CancellationToken stop)
    {
        Random random = new(seed);
        ByteBuffer records = ByteBuffer.Rent();
        ChangeCursor cursor = new(ChangePoint.After(3, 0, 0));
        ChangePoint last = cursor.Point;
        long next = 1;
        long count = 0;
        while (!stop.IsCancellationRequested)
        {
            records.Length = 0;
            ChangeRead read = log.Read(ref cursor, records, random.Next(1, 100_000));
            if (read == ChangeRead.Compacted)
            {
                Assert.True(cursor.Point > last);
                (next, last) = (0, cursor.Point);
                continue;
            }

            ReadOnlySpan<byte> rest = records.Written;
            while (ChangeRecord.TryTake(ref rest, out ChangeRecord record))
            {
                ChangePoint point = new(3, 0, record.Index, record.N);
                Assert.True(point > last);
                last = point;
                long number = BinaryPrimitives.ReadInt64LittleEndian(record.Value);
                Assert.Equal(number, BinaryPrimitives.ReadInt64LittleEndian(record.Value[^8..]));
                Assert.True(next == 0 || next == number, $"{number} follows on {next - 1}");
                next = number + 1;
                count++;
            }

            Assert.True(rest.IsEmpty);
            if (random.Next(100) == 0)
            {
                // Slow enough to fall behind.
                Thread.SpinWait(random.Next(1_000_000));
            }
        }

        records.Return();
        return count;
    }

    private static ChangePoint Start => ChangePoint.After(3, 0, 0);

    private static (int Index, uint N) Place(ChangePoint point) => ((int)point.Index, point.N);

    private static IEnumerable<ChangePoint> Points(List<ChangePoint> points) => points;

    private static void Tell(ChangeLog log, Epoch epoch, ulong index, int n, ReadOnlySpan<byte> value)
    {
        Change change = new() { Kind = ChangeKind.Written, Key = "key"u8, Value = value, Revision = new Revision(1) };
        log.Changed(new ChangePosition(log.Group, epoch, new LogIndex(index), n), in change);
    }

    private int _written;

    /// <summary>Writes changes of the next entry.</summary>
    private void Write(int count, int bytes)
    {
        for (int i = 0; i < count; i++)
        {
            Tell(_log, _epoch, _index + 1, _written++, new byte[bytes]);
        }
    }

    private void Publish()
    {
        _written = 0;
        _log.Publish(new LogIndex(++_index));
    }

    private void Apply(int count, int bytes)
    {
        Write(count, bytes);
        Publish();
    }

    private List<ChangePoint> Read(ChangePoint from)
    {
        ChangeCursor cursor = new(from);
        return Read(ref cursor);
    }

    private List<ChangePoint> Read(ref ChangeCursor cursor)
    {
        List<ChangePoint> all = [];
        while (Next(ref cursor, out List<ChangePoint> some) == ChangeRead.More)
        {
            all.AddRange(some);
        }

        return all;
    }

    private ChangeRead Next(ref ChangeCursor cursor, out List<ChangePoint> points)
    {
        points = [];
        ByteBuffer records = ByteBuffer.Rent();
        ChangeRead read = _log.Read(ref cursor, records, 100);
        ReadOnlySpan<byte> rest = records.Written;
        while (ChangeRecord.TryTake(ref rest, out ChangeRecord record))
        {
            points.Add(new ChangePoint(3, _epoch.Value, record.Index, record.N));
        }

        Assert.True(rest.IsEmpty);
        records.Return();
        return read;
    }

    private sealed class Recorder : IChangeObserver
    {
        public int Told { get; private set; }

        public void HasNews(ChangeLog log) => Told++;
    }
}
