using System.Text;
using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.KeyValues;

/// <summary>
/// Reads the keys of a range from all partitions, page by page, and puts them in order. It holds one page of each
/// partition, and asks for the next one when that is used up. A consistent scan whose moment is lost begins again by
/// itself as long as it has returned nothing. Owned by one call; not thread-safe.
/// </summary>
internal sealed class RangeScan
{
    /// <summary>How often a consistent scan begins again: a leader, or much of the range, has changed.</summary>
    private const int RestartsMax = 5;

    private readonly ClusterConnection _connection;
    private readonly Durability _durability;
    private readonly KeyRange _range;
    private readonly RangeFlags _flags;
    private readonly Source[] _sources;
    private readonly int _pageSize;

    /// <summary>The moment that is read; null: each page reads the newest state.</summary>
    private readonly ScanCuts? _cuts;
    private bool _isOpen;
    private bool _hasReturned;
    private int _restarts;
    private long _left;

    public RangeScan(
        ClusterConnection connection, Durability durability, int partitions, KeyRange range, ScanOptions options)
    {
        _connection = connection;
        _durability = durability;
        _range = range;
        _flags = (options.Descending ? RangeFlags.Descending : RangeFlags.None)
            | (options.KeysOnly ? RangeFlags.KeysOnly : RangeFlags.None);
        _left = options.Limit ?? long.MaxValue;
        _pageSize = options.PageSize;
        _sources = [.. Enumerable.Range(0, partitions).Select(static partition => new Source(partition))];
        _cuts = options.Consistent ? new ScanCuts(connection, durability, partitions, range, _flags) : null;
    }

    /// <summary>Begins a scan.</summary>
    /// <param name="connection">The connection.</param>
    /// <param name="durability">The durability that counts when the options name none.</param>
    /// <param name="prefix">The start of the keys.</param>
    /// <param name="options">Bounds, direction and limit; null for none.</param>
    /// <param name="ct">Ends the wait for the first node.</param>
    public static async ValueTask<RangeScan> OpenAsync(
        ClusterConnection connection,
        Durability durability,
        string prefix,
        ScanOptions? options,
        CancellationToken ct)
    {
        ArgumentNullException.ThrowIfNull(prefix);
        options ??= new ScanOptions();
        if (options.Limit < 1)
        {
            throw new ArgumentOutOfRangeException(nameof(options), options.Limit, "Limit must be 1 or greater.");
        }

        if (options.PageSize is < 1 or > Limits.RangeKeysMax)
        {
            throw new ArgumentOutOfRangeException(
                nameof(options), options.PageSize, "PageSize must be 1 to 10,000.");
        }

        int partitions = await connection.PartitionsAsync(ct).ConfigureAwait(connection.CapturesContext);
        return new RangeScan(
            connection,
            options.Durability ?? durability,
            partitions,
            RangeBounds.Of(prefix, options.From, options.To),
            options);
    }

    /// <summary>The next key; null at the end.</summary>
    public async ValueTask<KeyValueEntry?> NextAsync(CancellationToken ct)
    {
        if (_left == 0)
        {
            return null;
        }

        while (Array.Exists(_sources, static source => source.NeedsPage))
        {
            try
            {
                await OpenAsync(ct).ConfigureAwait(_connection.CapturesContext);
                await FillAsync(ct).ConfigureAwait(_connection.CapturesContext);
            }
            catch (KahunaException expired) when (MayRestart(expired))
            {
                Restart();
            }
        }

        Source? first = null;
        foreach (Source source in _sources)
        {
            if (source.HasEntry && (first is null || IsBefore(source, first)))
            {
                first = source;
            }
        }

        _left--;
        _hasReturned = true;
        return first?.Take((_flags & RangeFlags.KeysOnly) == 0);
    }

    /// <summary>How many keys there are.</summary>
    public async ValueTask<long> CountAsync(CancellationToken ct)
    {
        while (true)
        {
            try
            {
                await OpenAsync(ct).ConfigureAwait(_connection.CapturesContext);
                long[] counts = await Task.WhenAll(_sources.Select(source => CountAsync(source, ct)))
                    .ConfigureAwait(_connection.CapturesContext);
                return counts.Sum();
            }
            catch (KahunaException expired) when (MayRestart(expired))
            {
                Restart();
            }
        }
    }

    /// <summary>The scan is over: the partitions keep nothing for it from now on.</summary>
    public void End() => _cuts?.End();

    /// <summary>Opens the cuts of a consistent scan, once.</summary>
    private async Task OpenAsync(CancellationToken ct)
    {
        if (_cuts is not null && !_isOpen)
        {
            await _cuts.OpenAsync(ct).ConfigureAwait(_connection.CapturesContext);
            _isOpen = true;
        }
    }

    /// <summary>The moment that the scan reads is lost, and the caller has seen nothing of it.</summary>
    private bool MayRestart(KahunaException error) =>
        _isOpen && error.Code == KahunaErrorCode.ScanExpired && !_hasReturned && _restarts < RestartsMax;

    private void Restart()
    {
        _restarts++;
        _isOpen = false;
        _cuts!.End();
        foreach (Source source in _sources)
        {
            source.Reset();
        }
    }

    private async Task<long> CountAsync(Source source, CancellationToken ct)
    {
        long count = 0;
        while (!source.IsAtEnd)
        {
            count += source.Begin(
                await AskAsync(source, RangeFlags.CountOnly, Limits.RangeKeysMax, ct)
                    .ConfigureAwait(_connection.CapturesContext));
        }

        return count;
    }

    /// <summary>Reads the next page of each source that needs one.</summary>
    private async ValueTask FillAsync(CancellationToken ct)
    {
        Source[] empty = [.. _sources.Where(static source => source.NeedsPage)];
        int limit = (int)Math.Min(_left, _pageSize);
        RangeReply[] replies = await Task.WhenAll(empty.Select(source => AskAsync(source, _flags, limit, ct)))
            .ConfigureAwait(_connection.CapturesContext);
        for (int i = 0; i < empty.Length; i++)
        {
            empty[i].Begin(replies[i]);
        }
    }

    private async Task<RangeReply> AskAsync(Source source, RangeFlags flags, int limit, CancellationToken ct)
    {
        bool descends = (flags & RangeFlags.Descending) != 0;
        byte[]? last = source.Last;
        Operation<RangeReply> operation = Operation<RangeReply>.Rent();
        operation.Request.Begin(
            CommandKind.KeyRange,
            _durability,
            Encoding.UTF8.GetString(last is null || descends ? _range.Start : last));
        operation.Request.SetRange(
            source.Partition,
            last is null || !descends ? _range.End : last,
            RangeRequest.Options(limit, flags | (last is null || descends ? RangeFlags.None : RangeFlags.AfterStart)));
        operation.Request.SetCut(_cuts?[source.Partition] ?? 0);
        return await _connection.Run(operation, ct).ConfigureAwait(_connection.CapturesContext);
    }

    private bool IsBefore(Source one, Source other)
    {
        int sign = one.Key.SequenceCompareTo(other.Key);
        return (_flags & RangeFlags.Descending) == 0 ? sign < 0 : sign > 0;
    }

    /// <summary>The keys of one partition.</summary>
    private sealed class Source(int partition)
    {
        private ReadOnlyMemory<byte> _page;
        private int _offset;

        public int Partition => partition;

        /// <summary>The key behind which the next page begins; null before the first page.</summary>
        public byte[]? Last { get; private set; }

        public bool IsAtEnd { get; private set; }

        public bool HasEntry => _offset < _page.Length;

        public bool NeedsPage => !HasEntry && !IsAtEnd;

        public ReadOnlySpan<byte> Key
        {
            get
            {
                int at = _offset;
                return RangePage.EntryAt(_page.Span, ref at).Key;
            }
        }

        /// <summary>Takes a page and returns how many keys it says there are.</summary>
        public int Begin(RangeReply reply)
        {
            if (!RangePage.TryRead(reply.Page.Span, out RangePage page))
            {
                throw OperationErrors.UnknownDescription("a range");
            }

            Last = page.HasMore ? page.Last.ToArray() : null;
            IsAtEnd = !page.HasMore;
            _page = reply.Page;
            _offset = page.EntriesOffset;
            return page.Count;
        }

        /// <summary>Goes back to the beginning.</summary>
        public void Reset()
        {
            Last = null;
            IsAtEnd = false;
            _page = default;
            _offset = 0;
        }

        public KeyValueEntry Take(bool hasValue)
        {
            RangeEntry entry = RangePage.EntryAt(_page.Span, ref _offset);
            return new KeyValueEntry
            {
                Key = Encoding.UTF8.GetString(entry.Key),
                Value = !hasValue || entry.IsNull ? KahunaValue.Null : new KahunaValue(entry.Value.ToArray()),
                Revision = new Revision(entry.Revision),
            };
        }
    }
}
