using System.Text;
using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Watches;

namespace Kahuna.Client.Watches;

/// <summary>
/// Reads the keys of a watch page by page, and knows which changes they show: each page says up to which point, and
/// covers a range of keys of its partition. Owned by one <see cref="Watch"/>; not thread-safe.
/// </summary>
internal sealed class StateRead
{
    private const int PageSize = 1_000;

    private readonly ClusterConnection _connection;
    private readonly WatchFilter _filter;
    private readonly KeyRange _range;
    private Source[] _sources = [];
    private int _reading;
    private ulong _cluster;

    public StateRead(ClusterConnection connection, in WatchFilter filter)
    {
        _connection = connection;
        _filter = filter;
        _range = RangeOf(in filter);
    }

    /// <summary>Up to where the last page of each partition shows the changes. Valid at the end.</summary>
    public WatchPosition End => Position(static source => source.Newest);

    /// <summary>Reads the first page of each partition. Returns where a watch must begin that misses nothing.</summary>
    public async Task<WatchPosition> BeginAsync(CancellationToken ct)
    {
        int partitions = await _connection.PartitionsAsync(ct).ConfigureAwait(_connection.CapturesContext);
        _sources = [.. Enumerable.Range(0, partitions).Select(static partition => new Source(partition))];
        await Task.WhenAll(_sources.Select(source => ReadAsync(source, ct)))
            .ConfigureAwait(_connection.CapturesContext);
        return Position(static source => source.First);
    }

    /// <summary>The next key that the last page read has; false: <see cref="ReadMoreAsync"/> comes next.</summary>
    public bool TryNext(out WatchEvent current)
    {
        for (; _reading < _sources.Length; _reading++)
        {
            Source source = _sources[_reading];
            while (source.TryTake(out RangeEntry entry))
            {
                if (_filter.Matches(entry.Key))
                {
                    current = new WatchEvent(WatchEventKind.Current, null)
                    {
                        Key = Encoding.UTF8.GetString(entry.Key),
                        Value = !_filter.WithValues || entry.IsNull
                            ? KahunaValue.Null
                            : new KahunaValue(entry.Value.ToArray()),
                        Revision = new Revision(entry.Revision),
                    };
                    return true;
                }
            }

            if (source.HasMore)
            {
                break;
            }
        }

        current = default;
        return false;
    }

    /// <summary>Reads the next page. False: there is none.</summary>
    public async Task<bool> ReadMoreAsync(CancellationToken ct)
    {
        if (_reading == _sources.Length)
        {
            return false;
        }

        await ReadAsync(_sources[_reading], ct).ConfigureAwait(_connection.CapturesContext);
        return true;
    }

    /// <summary>The state that was read shows the change already. Valid at the end.</summary>
    public bool Shows(in WatchEvent change)
    {
        foreach (Source source in _sources)
        {
            if (source.First.Group == change.Place.Group)
            {
                return source.PointOf(Encoding.UTF8.GetBytes(change.Key)) >= change.Place;
            }
        }

        return false;
    }

    private static KeyRange RangeOf(in WatchFilter filter)
    {
        byte[] name = filter.Name;
        return filter.Scope switch
        {
            WatchScope.Key => new KeyRange(name, [.. name, 0]),

            // A bucket is a key without '/' and what stands before the '/' of others: '0' is the next byte after it.
            WatchScope.Bucket => new KeyRange(
                name.AsSpan().Contains((byte)'/') ? [.. name, (byte)'/'] : name, [.. name, (byte)'0']),
            _ => KeyRange.Of(name, null, null),
        };
    }

    private WatchPosition Position(Func<Source, ChangePoint> point)
    {
        ChangePoint[] points = [.. _sources.Select(point)];
        Array.Sort(points, static (left, right) => left.Group.CompareTo(right.Group));
        return new WatchPosition(_cluster, _filter.Durability, points);
    }

    private async Task ReadAsync(Source source, CancellationToken ct)
    {
        Operation<RangeReply> operation = Operation<RangeReply>.Rent();
        operation.Request.Begin(
            CommandKind.KeyRange,
            _filter.Durability,
            Encoding.UTF8.GetString(source.Last ?? _range.Start));
        operation.Request.SetRange(
            source.Partition,
            _range.End,
            RangeRequest.Options(
                PageSize,
                (source.Last is null ? RangeFlags.None : RangeFlags.AfterStart)
                    | (_filter.WithValues ? RangeFlags.None : RangeFlags.KeysOnly)));
        operation.Request.AddFlag(CommandFlags.Positioned, true);
        RangeReply reply = await _connection.Run(operation, ct).ConfigureAwait(_connection.CapturesContext);
        source.Take(reply);
        _cluster = reply.Cluster;
    }

    /// <summary>The keys of one partition.</summary>
    private sealed class Source(int partition)
    {
        /// <summary>
        /// The last key of each page, null of the last page, with the point up to which the page shows the changes.
        /// Neighbours with the same point are one.
        /// </summary>
        private readonly List<(byte[]? Last, ChangePoint Point)> _pages = [];
        private ReadOnlyMemory<byte> _page;
        private int _offset;

        public int Partition => partition;

        public bool HasMore => Last is not null;

        /// <summary>The key behind which the next page begins; null before the first page and after the last.</summary>
        public byte[]? Last { get; private set; }

        /// <summary>The point of the first page.</summary>
        public ChangePoint First => _pages[0].Point;

        /// <summary>The point of the last page.</summary>
        public ChangePoint Newest => _pages[^1].Point;

        public void Take(RangeReply reply)
        {
            if (reply.Point is not { } point || !RangePage.TryRead(reply.Page.Span, out RangePage page))
            {
                throw OperationErrors.UnknownDescription("a range");
            }

            Last = page.HasMore ? page.Last.ToArray() : null;
            if (_pages.Count > 0 && _pages[^1].Point == point)
            {
                _pages[^1] = (Last, point);
            }
            else
            {
                _pages.Add((Last, point));
            }

            _page = reply.Page;
            _offset = page.EntriesOffset;
        }

        public bool TryTake(out RangeEntry entry)
        {
            if (_offset >= _page.Length)
            {
                entry = default;
                return false;
            }

            entry = RangePage.EntryAt(_page.Span, ref _offset);
            return true;
        }

        /// <summary>The point of the page on which a key stands, or would.</summary>
        public ChangePoint PointOf(ReadOnlySpan<byte> key)
        {
            (int low, int high) = (0, _pages.Count - 1);
            while (low < high)
            {
                int middle = (low + high) / 2;
                if (_pages[middle].Last is { } last && key.SequenceCompareTo(last) > 0)
                {
                    low = middle + 1;
                }
                else
                {
                    high = middle;
                }
            }

            return _pages[low].Point;
        }
    }
}
