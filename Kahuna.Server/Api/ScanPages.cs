using System.Buffers;
using System.Buffers.Binary;
using System.Buffers.Text;
using System.Text;
using Google.Protobuf;
using Grpc.Core;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Api.Protos;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Routing;

namespace Kahuna.Server.Api;

/// <summary>
/// Pages of keys over all partitions, for unary calls. A page is read anew from every partition and merged, so nothing
/// is kept between two pages: the page token says where to go on. Stateless, any thread.
/// </summary>
internal sealed class ScanPages(UnaryExecutor calls, int partitions)
{
    /// <summary>Keys of a page whose request does not say how many.</summary>
    private const int LimitDefault = 1_000;

    /// <summary>A page ends when it has this many bytes.</summary>
    private const int BytesPerPage = 64 * 1024;

    /// <summary>One page.</summary>
    public async Task<ScanKeyValuesResponse> ReadAsync(ScanKeyValuesRequest request, ServerCallContext context)
    {
        KeyRange range = RangeOf(
            request.Prefix, request.HasFrom ? request.From : null, request.HasTo ? request.To : null);
        RangeFlags flags = (request.Descending ? RangeFlags.Descending : 0)
            | (request.KeysOnly ? RangeFlags.KeysOnly : 0);
        ulong query = QueryOf(range, request.Durability, flags);
        byte[] last = ReadToken(request.PageToken, query);
        if (last.Length > 0)
        {
            (range, flags) = Behind(range, flags, last);
        }

        int limit = request.Limit == 0 ? LimitDefault : (int)Math.Min(request.Limit, int.MaxValue);
        byte[][] answers = await Task.WhenAll(Enumerable.Range(0, partitions).Select(
            partition => AskAsync(range, partition, flags, limit, request.Durability, context))).ConfigureAwait(false);
        return Merge([.. answers.Select(static answer => new Source(answer))], flags, limit, query);
    }

    /// <summary>How many keys there are.</summary>
    public async Task<CountKeyValuesResponse> CountAsync(CountKeyValuesRequest request, ServerCallContext context)
    {
        KeyRange range = RangeOf(
            request.Prefix, request.HasFrom ? request.From : null, request.HasTo ? request.To : null);
        long[] counts = await Task.WhenAll(Enumerable.Range(0, partitions).Select(
            partition => CountAsync(range, partition, request.Durability, context))).ConfigureAwait(false);
        return new CountKeyValuesResponse { Count = counts.Sum() };
    }

    private async Task<long> CountAsync(
        KeyRange range, int partition, Protos.Durability durability, ServerCallContext context)
    {
        long count = 0;
        RangeFlags flags = RangeFlags.CountOnly;
        while (true)
        {
            Source page = new(await AskAsync(
                range, partition, flags, Limits.RangeKeysMax, durability, context).ConfigureAwait(false));
            count += page.Count;
            if (page.Last is null)
            {
                return count;
            }

            (range, flags) = Behind(range, flags, page.Last);
        }
    }

    private Task<byte[]> AskAsync(
        KeyRange range,
        int partition,
        RangeFlags flags,
        int limit,
        Protos.Durability durability,
        ServerCallContext context)
    {
        Command command = new()
        {
            Kind = CommandKind.KeyRange,
            Durability = DurabilityField.Read(durability),
            Flags = CommandFlags.Number
                | CommandFlags.AtRevision
                | (range.End is null ? CommandFlags.None : CommandFlags.IfValue),
            Key = range.Start,
            ComparedValue = range.End,
            Number = partition,
            AtRevision = RangeRequest.Options(limit, flags),
        };
        ByteBuffer buffer = ByteBuffer.Rent(command.EncodedBytes);
        command.Write(buffer);
        return calls.ExecuteAsync(buffer, context.TimeLeft(), context.CancellationToken);
    }

    private static KeyRange RangeOf(string prefix, string? from, string? to) => KeyRange.Of(
        CommandText.Encode("prefix", prefix),
        from is null ? null : CommandText.Encode("from", from),
        to is null ? null : CommandText.Encode("to", to));

    private static (KeyRange Range, RangeFlags Flags) Behind(KeyRange range, RangeFlags flags, byte[] last) =>
        (flags & RangeFlags.Descending) == 0
            ? (range with { Start = last }, flags | RangeFlags.AfterStart)
            : (range with { End = last }, flags);

    /// <summary>
    /// The keys of all partitions in order, up to the limit, and no further than every partition was looked at.
    /// </summary>
    private static ScanKeyValuesResponse Merge(Source[] sources, RangeFlags flags, int limit, ulong query)
    {
        bool descends = (flags & RangeFlags.Descending) != 0;
        byte[]? horizon = null;
        foreach (byte[] last in sources.Select(static source => source.Last).OfType<byte[]>())
        {
            horizon = horizon is null || IsBefore(last, horizon, descends) ? last : horizon;
        }

        ScanKeyValuesResponse page = new();
        int bytes = 0;
        byte[] reached = [];
        while (page.Entries.Count < limit && bytes < BytesPerPage)
        {
            Source? first = null;
            foreach (Source source in sources)
            {
                if (source.HasEntry && (first is null || IsBefore(source.Key, first.Key, descends)))
                {
                    first = source;
                }
            }

            if (first is null || (horizon is not null && IsBefore(horizon, first.Key, descends)))
            {
                page.NextPageToken = horizon is null ? "" : ToToken(horizon, query);
                return page;
            }

            reached = first.Key.ToArray();
            bytes += first.Take(page.Entries, (flags & RangeFlags.KeysOnly) == 0);
        }

        bool hasMore = horizon is not null || sources.Any(static source => source.HasEntry);
        page.NextPageToken = hasMore ? ToToken(reached, query) : "";
        return page;
    }

    private static bool IsBefore(ReadOnlySpan<byte> one, ReadOnlySpan<byte> other, bool descends)
    {
        int sign = one.SequenceCompareTo(other);
        return descends ? sign > 0 : sign < 0;
    }

    /// <summary>A number that other queries do not have.</summary>
    private static ulong QueryOf(KeyRange range, Protos.Durability durability, RangeFlags flags)
    {
        ulong query = XxHash64.Hash(range.Start, ((ulong)durability << 32) | (ulong)flags);
        return XxHash64.Hash(range.End, query + (range.End is null ? 1UL : 0));
    }

    /// <summary>A page token: the hash of the query and of the key, and the key behind which the page begins.</summary>
    private static string ToToken(byte[] last, ulong query)
    {
        byte[] token = new byte[sizeof(ulong) + last.Length];
        BinaryPrimitives.WriteUInt64LittleEndian(token, XxHash64.Hash(last, query));
        last.CopyTo(token.AsSpan(sizeof(ulong)));
        return Base64Url.EncodeToString(token);
    }

    /// <summary>The key behind which the page begins; empty for the first page.</summary>
    /// <exception cref="RpcException">INVALID_ARGUMENT: the token is of another query, or of no server.</exception>
    private static byte[] ReadToken(string text, ulong query)
    {
        if (text.Length == 0)
        {
            return [];
        }

        byte[] token = new byte[text.Length];
        return Base64Url.DecodeFromChars(text, token, out _, out int length) == OperationStatus.Done
            && length > sizeof(ulong)
            && BinaryPrimitives.ReadUInt64LittleEndian(token)
                == XxHash64.Hash(token.AsSpan(sizeof(ulong), length - sizeof(ulong)), query)
            ? token[sizeof(ulong)..length]
            : throw OutcomeErrors.Build(
                StatusCode.InvalidArgument,
                "page_token is not of this query; begin without one.",
                OutcomeErrors.DidNotHappen);
    }

    /// <summary>The page of one partition. Used by one call.</summary>
    private sealed class Source
    {
        private readonly byte[] _answer;
        private int _offset;

        public Source(byte[] answer)
        {
            if (!Outcome.TryRead(answer, out Outcome outcome) || !RangePage.TryRead(outcome.Value, out RangePage page))
            {
                throw new InvalidOperationException("A page of keys cannot be read.");
            }

            _answer = answer;
            _offset = Outcome.HeaderBytes + page.EntriesOffset;
            Last = page.HasMore ? page.Last.ToArray() : null;
            Count = page.Count;
        }

        /// <summary>The last key that was looked at; null: there are no more.</summary>
        public byte[]? Last { get; }

        public int Count { get; }

        public bool HasEntry => _offset < _answer.Length;

        public ReadOnlySpan<byte> Key
        {
            get
            {
                int at = _offset;
                return RangePage.EntryAt(_answer, ref at).Key;
            }
        }

        /// <summary>Adds the entry to a page and returns its bytes.</summary>
        public int Take(ICollection<KeyValueEntry> entries, bool hasValue)
        {
            RangeEntry entry = RangePage.EntryAt(_answer, ref _offset);
            KeyValueEntry added = new() { Key = Encoding.UTF8.GetString(entry.Key), Revision = entry.Revision };
            if (hasValue)
            {
                added.Value = entry.IsNull ? new Value() : new Value { Data = ByteString.CopyFrom(entry.Value) };
            }

            entries.Add(added);
            return entry.Key.Length + entry.Value.Length;
        }
    }
}
