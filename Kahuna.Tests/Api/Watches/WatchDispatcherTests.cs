using System.Text;
using Kahuna.Server.Api.Watches;
using Kahuna.Server.Partitions.Changes;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Api.Watches;

/// <summary>Which streams a change wakes, and that the others do no work for it.</summary>
public sealed class WatchDispatcherTests
{
    private readonly LoggedChanges _changes = new(partitions: 1);
    private readonly Queue<IThreadPoolWorkItem> _queued = new();
    private readonly WatchDispatcher _dispatcher;

    public WatchDispatcherTests() => _dispatcher = new WatchDispatcher(_changes.Logs, _queued.Enqueue);

    private ChangeLog Log => _changes.Log(0);

    [Fact]
    public void Only_streams_that_a_change_concerns_are_woken()
    {
        Stream[] streams =
        [
            new Stream(this, WatchScope.Key, "a/1"), new Stream(this, WatchScope.Bucket, "a"),
            new Stream(this, WatchScope.Prefix, "a"), new Stream(this, WatchScope.Prefix, ""),
            new Stream(this, WatchScope.Key, "b"), new Stream(this, WatchScope.Prefix, "ab"),
        ];
        Run();
        Array.ForEach(streams, static stream => stream.Read());
        _changes.Set(Log, "a/1", "value");
        Run();
        Assert.Equal([1, 1, 1, 1, 0, 0], streams.Select(static stream => stream.TakeWakes()));
        Assert.Equal([1, 1, 1, 1, 0, 0], streams.Select(static stream => stream.Read()));
        _changes.Set(Log, "ab", "value");
        Run();
        Assert.Equal([0, 0, 1, 1, 0, 1], streams.Select(static stream => stream.TakeWakes()));
        Assert.Equal([0, 0, 1, 1, 0, 1], streams.Select(static stream => stream.Read()));

        // Readers that have read it do not read it again.
        Assert.All(streams, static stream => Assert.Equal(0, stream.Read()));
    }

    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    public void An_exception_leaves_neither_the_turn_nor_the_work_item_and_nobody_misses_a_change(int watchers)
    {
        int thrown = 0;
        Stream[] streams = [.. Enumerable.Range(0, watchers).Select(_ => new Stream(this, WatchScope.Key, "a"))];
        Run();
        Array.ForEach(streams, static stream => stream.Read());
        streams[0].OnWake = () => throw new InvalidOperationException($"wake {++thrown}");
        _changes.Set(Log, "a", "value");
        Run();
        Assert.Equal(1, thrown);
        Assert.All(streams, static stream => Assert.Equal(1, stream.Read()));
        streams[0].OnWake = static () => { };
        _changes.Set(Log, "a", "value");
        Run();
        Assert.All(streams, static stream => Assert.Equal(1, stream.Read()));
    }

    [Fact]
    public void A_stream_that_nothing_concerned_has_lost_nothing_when_the_log_is_overwritten()
    {
        Stream idle = new(this, WatchScope.Key, "mine");
        Run();
        idle.Read();
        for (int i = 0; i < 200; i++)
        {
            _changes.Set(Log, "other", new string('x', 20_000));
            Run();
        }

        Assert.True(Log.Status.Lost.Index > 100);
        Assert.Equal(0, idle.TakeWakes());
        _changes.Set(Log, "mine", "value");
        Run();
        Assert.Equal((1, 1), (idle.TakeWakes(), idle.Read()));
        Assert.Empty(idle.Notices);
    }

    [Fact]
    public void A_stream_that_is_told_of_more_places_than_it_keeps_misses_nothing()
    {
        Stream stream = new(this, WatchScope.Bucket, "a");
        Run();
        stream.Read();
        int told = 0;
        foreach (int changes in (int[])[1, WatchHops.Max - 1, WatchHops.Max, WatchHops.Max + 1, 3 * WatchHops.Max])
        {
            for (int i = 0; i < changes; i++)
            {
                _changes.Set(Log, $"a/{i}", "value");
                _changes.Set(Log, $"other/{i}", "value");
                Run();
            }

            Assert.Equal(changes, stream.Read());
            told += changes;
            Assert.Equal(0, stream.Read());
        }

        Assert.True(told > 5 * WatchHops.Max);
    }

    [Fact]
    public void A_watch_that_begins_between_a_change_and_its_dispatch_hears_of_it()
    {
        Stream first = new(this, WatchScope.Key, "first");
        Run();
        first.Read();
        ChangePoint before = Log.Status.Applied;
        _changes.Set(Log, "second", "value");
        Stream second = new(this, WatchScope.Key, "second", before);
        Assert.Equal(1, second.Read());
        Run();
        Assert.Equal(0, second.Read());
    }

    [Fact]
    public void When_the_dispatcher_itself_is_too_slow_every_stream_looks_for_itself()
    {
        Stream stream = new(this, WatchScope.Key, "mine");
        Run();
        stream.Read();
        _changes.Set(Log, "mine", "value");
        for (int i = 0; i < 200; i++)
        {
            _changes.Set(Log, "other", new string('x', 20_000));
        }

        Run();
        Assert.Equal(1, stream.TakeWakes());
        Assert.Equal(0, stream.Read());
        Assert.Equal([WatchNoticeCode.Compacted], stream.Notices);
    }

    [Fact]
    public void Without_watches_no_log_knows_of_it()
    {
        Assert.Null(Log.Observer);
        Stream one = new(this, WatchScope.Prefix, "a");
        Stream other = new(this, WatchScope.Prefix, "a");
        Assert.NotNull(Log.Observer);
        one.End();
        Assert.NotNull(Log.Observer);
        other.End();
        Assert.Null(Log.Observer);
        Assert.Null(_changes.Log(0, isEphemeral: true).Observer);
        Run();
        _changes.Set(Log, "a", "value");
        Assert.Empty(_queued);
    }

    private void Run()
    {
        while (_queued.TryDequeue(out IThreadPoolWorkItem? item))
        {
            item.Execute();
        }
    }

    /// <summary>A stream with one watch.</summary>
    private sealed class Stream
    {
        private readonly WatchNews _news;
        private readonly WatchReader _reader;
        private int _wakes;

        public Stream(WatchDispatcherTests test, WatchScope scope, string name, params ChangePoint[] from)
        {
            _news = new WatchNews(test._dispatcher, () =>
            {
                _wakes++;
                OnWake();
            });
            _reader = new WatchReader(test._changes.Logs, dispatch: _news);
            test._dispatcher.Join(_news);
            byte[] points = new byte[from.Length * ChangePoint.Bytes];
            for (int i = 0; i < from.Length; i++)
            {
                from[i].Write(points.AsSpan(i * ChangePoint.Bytes));
            }

            Assert.Null(_reader.Take(new WatchRequest
            {
                Operation = WatchOperation.Begin,
                Durability = Durability.Persistent,
                Scope = scope,
                Id = 1,
                Points = points,
                Name = Encoding.UTF8.GetBytes(name),
            }));
        }

        /// <summary>Called with each wake.</summary>
        public Action OnWake { get; set; } = static () => { };

        /// <summary>Notices other than that the watch has begun.</summary>
        public List<WatchNoticeCode> Notices { get; } = [];

        public int TakeWakes() => Interlocked.Exchange(ref _wakes, 0);

        /// <summary>Reads everything and returns the number of changes.</summary>
        public int Read()
        {
            int changes = 0;
            ByteBuffer frame = ByteBuffer.Rent();
            while (_reader.Fill(frame, new NodeTime(1)) == WatchFill.Frame)
            {
                foreach (WatchSaid said in WatchSaid.ReadSent(frame.Written))
                {
                    changes += said.Frame == Kahuna.Wire.Frames.FrameKind.Changes ? 1 : 0;
                    if (said.Notice > WatchNoticeCode.Begun)
                    {
                        Notices.Add(said.Notice);
                    }
                }

                frame.Length = 0;
            }

            frame.Return();
            return changes;
        }

        public void End() => _reader.Dispose();
    }
}
