using System.Text;
using Google.Protobuf;
using Grpc.Core;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Protos;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Routing;

namespace Kahuna.Server.Api;

/// <summary>
/// The partitions of one scan: holds at most one page of each and merges them. Owned by one call; the pages are read
/// concurrently.
/// </summary>
/// <param name="execute">Executes a command.</param>
/// <param name="call">What the call takes up.</param>
/// <param name="partitions">Number of partitions.</param>
/// <param name="durability">The durability of the keys.</param>
internal sealed class ScanParts(
    Func<ByteBuffer, TimeSpan?, CancellationToken, Task<byte[]>> execute,
    ScanCall call,
    int partitions,
    Durability durability)
{
    private readonly Part[] _parts =
        [.. Enumerable.Range(0, partitions).Select(static partition => new Part(partition))];

    private ScanMoment? _moment;
    private RangeFlags _flags;
    private ulong _query;
    private byte[] _reached = [];
    private long _count;

    /// <summary>A partition has keys behind its page, which is used up.</summary>
    public bool NeedsPage => Array.Exists(_parts, static part => part.NeedsPage);

    /// <summary>The keys that <see cref="CountAsync"/> has counted.</summary>
    public long Count => Volatile.Read(ref _count);

    private bool Descends => (_flags & RangeFlags.Descending) != 0;

    /// <summary>Begins at the start of the range, or behind the key of the token.</summary>
    /// <exception cref="RpcException">INVALID_ARGUMENT: the token is of another query, or of no server.</exception>
    public void Begin(KeyRange range, RangeFlags flags, string token)
    {
        _flags = flags;
        _query = QueryOf(range, durability, flags);
        byte[] last = PageToken.Read(token, _query);
        if (last.Length > 0)
        {
            (range, flags) = Behind(range, flags, last);
        }

        foreach (Part part in _parts)
        {
            (part.Range, part.Flags) = (range, flags);
        }
    }

    /// <summary>From now on the pages show one moment.</summary>
    public async Task OpenMomentAsync(KeyRange range, bool keysOnly, CancellationToken ct)
    {
        _moment = new ScanMoment(execute, call, partitions, durability);
        await _moment.OpenAsync(range, keysOnly, ct).ConfigureAwait(false);
    }

    /// <summary>The partitions keep nothing for the moment from now on.</summary>
    public void EndMoment() => _moment?.End();

    /// <summary>Reads the next page of each partition that needs one.</summary>
    public Task FillAsync(int limit) => call.EachAsync(
        _parts.Where(static part => part.NeedsPage), (part, ct) => FillAsync(part, limit, ct));

    /// <summary>Counts the keys of all partitions.</summary>
    public Task CountAsync() => call.EachAsync(_parts, async (part, ct) =>
    {
        while (part.NeedsPage)
        {
            Interlocked.Add(ref _count, await FillAsync(part, Limits.RangeKeysMax, ct).ConfigureAwait(false));
        }
    });

    /// <summary>
    /// Adds the next key of all to a message. False: there is none, or a partition that needs a page may have it.
    /// </summary>
    public bool TryTake(ICollection<KeyValueEntry> entries, ref int bytes)
    {
        Part? first = null;
        foreach (Part part in _parts)
        {
            if (part.HasEntry && (first is null || IsBefore(part.Key, first.Key, Descends)))
            {
                first = part;
            }
        }

        if (first is null || (Horizon() is { } horizon && IsBefore(horizon, first.Key, Descends)))
        {
            return false;
        }

        _reached = first.Key.ToArray();
        bytes += first.Take(entries, (_flags & RangeFlags.KeysOnly) == 0);
        if (!first.HasEntry)
        {
            call.Release(first.Drop());
        }

        return true;
    }

    /// <summary>Where a later call goes on; empty when there are no more keys.</summary>
    /// <param name="tookLast">Whether the latest <see cref="TryTake"/> took a key.</param>
    public string Token(bool tookLast)
    {
        if (!NeedsPage && !Array.Exists(_parts, static part => part.HasEntry))
        {
            return "";
        }

        return PageToken.Write(tookLast ? _reached : Horizon()!, _query);
    }

    /// <summary>
    /// The first of the keys up to which the partitions that need a page were looked at: keys up to it are known. Null
    /// when no partition needs one.
    /// </summary>
    private byte[]? Horizon()
    {
        byte[]? horizon = null;
        foreach (Part part in _parts)
        {
            if (part is { NeedsPage: true, Last: { } last }
                && (horizon is null || IsBefore(last, horizon, Descends)))
            {
                horizon = last;
            }
        }

        return horizon;
    }

    private async Task<int> FillAsync(Part part, int limit, CancellationToken ct)
    {
        byte[] page = await call.ReadAsync(
            () => execute(Encode(part, limit), call.TimeLeft, ct), ct).ConfigureAwait(false);
        int count = part.Begin(page);
        if (part.Last is { } last)
        {
            (part.Range, part.Flags) = Behind(part.Range, part.Flags, last);
        }

        if (!part.HasEntry)
        {
            call.Release(part.Drop());
        }

        return count;
    }

    private ByteBuffer Encode(Part part, int limit)
    {
        Command command = new()
        {
            Kind = CommandKind.KeyRange,
            Durability = durability,
            Flags = CommandFlags.Number
                | CommandFlags.AtRevision
                | (part.Range.End is null ? CommandFlags.None : CommandFlags.IfValue)
                | (_moment is null ? CommandFlags.None : CommandFlags.IfRevision),
            Key = part.Range.Start,
            ComparedValue = part.Range.End,
            ComparedRevision = _moment?[part.Partition] ?? 0,
            Number = part.Partition,
            AtRevision = RangeRequest.Options(limit, part.Flags),
        };
        ByteBuffer buffer = ByteBuffer.Rent(command.EncodedBytes);
        command.Write(buffer);
        return buffer;
    }

    private static (KeyRange Range, RangeFlags Flags) Behind(KeyRange range, RangeFlags flags, byte[] last) =>
        (flags & RangeFlags.Descending) == 0
            ? (range with { Start = last }, flags | RangeFlags.AfterStart)
            : (range with { End = last }, flags);

    private static bool IsBefore(ReadOnlySpan<byte> one, ReadOnlySpan<byte> other, bool descends)
    {
        int sign = one.SequenceCompareTo(other);
        return descends ? sign > 0 : sign < 0;
    }

    /// <summary>A number that other queries do not have.</summary>
    private static ulong QueryOf(KeyRange range, Durability durability, RangeFlags flags)
    {
        ulong query = XxHash64.Hash(range.Start, ((ulong)durability << 32) | (ulong)flags);
        return XxHash64.Hash(range.End, query + (range.End is null ? 1UL : 0));
    }

    /// <summary>One partition: its page, and the range behind it. Used by one call, one thread at a time.</summary>
    private sealed class Part(int partition)
    {
        private byte[] _answer = [];
        private int _offset;
        private bool _hasBegun;

        public int Partition => partition;

        /// <summary>The range that is not read yet.</summary>
        public KeyRange Range { get; set; }

        public RangeFlags Flags { get; set; }

        /// <summary>The last key that was looked at; null: there are no more, or none was read yet.</summary>
        public byte[]? Last { get; private set; }

        public bool HasEntry => _offset < _answer.Length;

        public bool NeedsPage => !HasEntry && (Last is not null || !_hasBegun);

        public ReadOnlySpan<byte> Key
        {
            get
            {
                int at = _offset;
                return RangePage.EntryAt(_answer, ref at).Key;
            }
        }

        /// <summary>Takes a page and returns how many keys it has.</summary>
        public int Begin(byte[] answer)
        {
            if (!Outcome.TryRead(answer, out Outcome outcome) || !RangePage.TryRead(outcome.Value, out RangePage page))
            {
                throw new InvalidOperationException("A page of keys cannot be read.");
            }

            _answer = answer;
            _offset = Outcome.HeaderBytes + page.EntriesOffset;
            _hasBegun = true;
            Last = page.HasMore ? page.Last.ToArray() : null;
            return page.Count;
        }

        /// <summary>Lets go of the page and returns its bytes.</summary>
        public int Drop()
        {
            int bytes = _answer.Length;
            (_answer, _offset) = ([], 0);
            return bytes;
        }

        /// <summary>Adds the entry to a message and returns its bytes.</summary>
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
