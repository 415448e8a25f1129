using System.Text;
using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Routing;

namespace Kahuna.Client.Coordination;

/// <summary>
/// Lists the names of the keys of a prefix or a bucket, in all partitions, in the order of their bytes. Names of a
/// bucket lie between those of the buckets inside of it, which are left out: they divide it into ranges. The pages are
/// of different moments; who needs one depends on the ranges at a commit. Owned by one run of a script; not
/// thread-safe.
/// </summary>
internal sealed class KeyListing(ClusterConnection connection)
{
    /// <summary>
    /// Pages that a run may ask of each partition: one for each range that a transaction may depend on, and those of
    /// 1,000 names of the greatest length, which are 16.
    /// </summary>
    private const int PagesMax = Limits.TransactionRangesMax + 32;

    private readonly List<byte[]> _names = [];
    private readonly List<KeyRange> _ranges = [];
    private KeyRange _rest;
    private byte[]? _bucket;
    private int _pages;

    /// <summary>The names that were found, ascending.</summary>
    public IReadOnlyList<byte[]> Names => _names;

    /// <summary>What was looked at: these ranges together have these names, and no others.</summary>
    public IReadOnlyList<KeyRange> Ranges => _ranges;

    /// <summary>Lists the keys that begin with a prefix, or are of a bucket.</summary>
    /// <param name="name">The prefix, or the bucket.</param>
    /// <param name="isBucket">It is a bucket. Its key of the same name is not looked for.</param>
    /// <param name="durability">The durability of the keys.</param>
    /// <param name="most">Most names, and most ranges.</param>
    /// <param name="time">The deadline of the requests.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <returns>What there is more of than may be; then the list is not whole.</returns>
    public async Task<ListingEnd> ReadAsync(
        byte[] name,
        bool isBucket,
        Durability durability,
        (int Keys, int Ranges) most,
        CommitDeadline time,
        CancellationToken ct)
    {
        _names.Clear();
        _ranges.Clear();
        _bucket = isBucket ? name : null;
        if (isBucket && name.Length >= Limits.KeyBytesMax)
        {
            // No name has room for more.
            return ListingEnd.Whole;
        }

        _rest = RangeOf(name, isBucket);
        int partitions = await connection.PartitionsAsync(ct).ConfigureAwait(connection.CapturesContext);
        byte[] from = _rest.Start;
        bool isInclusive = true;
        while (true)
        {
            if (_pages++ == PagesMax)
            {
                return ListingEnd.TooManyPages;
            }

            RangeReply[] pages = await Task.WhenAll(Enumerable.Range(0, partitions)
                .Select(partition => AskAsync(
                    ToPage(partition, durability, from, isInclusive, most.Keys - _names.Count + 1, time), ct)))
                .ConfigureAwait(connection.CapturesContext);
            byte[]? last = Take(pages);
            if (_names.Count > most.Keys)
            {
                return ListingEnd.TooManyKeys;
            }

            if (_ranges.Count + 1 > most.Ranges)
            {
                return ListingEnd.TooManyRanges;
            }

            isInclusive = last is null || last.AsSpan().SequenceCompareTo(_rest.Start) < 0;
            from = isInclusive ? _rest.Start : last!;
            if (last is null || _rest.IsEmpty)
            {
                break;
            }
        }

        if (!_rest.IsEmpty)
        {
            _ranges.Add(_rest);
        }

        return ListingEnd.Whole;
    }

    /// <summary>The names that begin with a prefix, or those of a bucket and of the buckets inside it.</summary>
    public static KeyRange RangeOf(byte[] name, bool isBucket) =>
        isBucket ? new KeyRange([.. name, (byte)'/'], Behind(name)) : KeyRange.Of(name, null, null);

    /// <summary>
    /// Takes the names up to where all pages reach. Returns the last name that was looked at; null: all were.
    /// </summary>
    private byte[]? Take(RangeReply[] replies)
    {
        byte[]? last = null;
        List<byte[]> found = [];
        foreach (RangeReply reply in replies)
        {
            if (!RangePage.TryRead(reply.Page.Span, out RangePage page))
            {
                throw OperationErrors.UnknownDescription("a range");
            }

            if (page.HasMore && (last is null || page.Last.SequenceCompareTo(last) < 0))
            {
                last = page.Last.ToArray();
            }

            while (page.TryNext())
            {
                found.Add(page.Entry.Key.ToArray());
            }
        }

        found.Sort(static (one, other) => one.AsSpan().SequenceCompareTo(other));
        foreach (byte[] key in found)
        {
            if (last is not null && key.AsSpan().SequenceCompareTo(last) > 0)
            {
                break;
            }

            Take(key);
        }

        return last;
    }

    private void Take(byte[] key)
    {
        if (key.AsSpan().SequenceCompareTo(_rest.Start) < 0)
        {
            // Inside of a bucket that was passed.
            return;
        }

        if (_bucket is not null && !KeyRouting.Bucket(key).SequenceEqual(_bucket))
        {
            byte[] inside = key[..(_bucket.Length + 1 + key.AsSpan(_bucket.Length + 1).IndexOf((byte)'/'))];
            KeyRange before = _rest with { End = [.. inside, (byte)'/'] };
            if (!before.IsEmpty)
            {
                _ranges.Add(before);
            }

            _rest = _rest with { Start = Behind(inside) };
            return;
        }

        _names.Add(key);
    }

    /// <summary>The first name behind the keys inside of a bucket.</summary>
    private static byte[] Behind(byte[] bucket) => [.. bucket, (byte)('/' + 1)];

    private Operation<RangeReply> ToPage(
        int partition, Durability durability, byte[] from, bool isInclusive, int limit, CommitDeadline time)
    {
        Operation<RangeReply> operation = Operation<RangeReply>.Rent();
        operation.Request.Begin(CommandKind.KeyRange, durability, Encoding.UTF8.GetString(from));
        operation.Request.SetRange(
            partition,
            _rest.End,
            RangeRequest.Options(limit, RangeFlags.KeysOnly | (isInclusive ? 0 : RangeFlags.AfterStart)));
        operation.Request.Patience = time.LeftForStep;
        return operation;
    }

    private async Task<RangeReply> AskAsync(Operation<RangeReply> page, CancellationToken ct) =>
        await connection.Run(page, ct).ConfigureAwait(connection.CapturesContext);
}

/// <summary>How a listing of keys ended. Not stored.</summary>
internal enum ListingEnd
{
    /// <summary>It has all keys.</summary>
    Whole,

    /// <summary>There are more keys than were asked for.</summary>
    TooManyKeys,

    /// <summary>The bucket is divided into more ranges.</summary>
    TooManyRanges,

    /// <summary>The run has asked for as many pages as it may.</summary>
    TooManyPages,
}
