using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.State.KeyValues;

/// <summary>
/// Reads pages of keys in the order of their bytes. A page is one read of one partition: it shows one state. It looks
/// at a bounded number of rows, so that a long range is read in slices between which others are served. Stateless.
/// </summary>
internal static class RangeReader
{
    /// <summary>Rows that one page looks at, deleted ones included: a few milliseconds.</summary>
    public const int RowsPerPage = 8_192;

    /// <summary>A page ends when it has this many bytes.</summary>
    public const int BytesPerPage = 64 * 1024;

    /// <summary>Rows that are looked up at once, so that their memory is fetched side by side.</summary>
    private const int RowsPerStep = 32;

    private const int LinesPrefetched = 2;

    /// <summary>Appends the outcome of one page. What has expired by the time is not in it.</summary>
    public static void Read(KeyStore store, scoped in RangeRequest asked, ClusterTime time, ByteBuffer outcome)
    {
        ByteBuffer entries = ByteBuffer.Rent();
        Row last = Row.None;
        int count = Collect(store, in asked, time, entries, ref last);
        ByteBuffer page = ByteBuffer.Rent();
        RangePage.WriteHeader(page, last.IsNone ? default : store.Keys.Key(in store.Keys[last]), count);
        page.Append(entries.Written);
        new Outcome(OutcomeStatus.Found, 0, count) { HasValue = true, Value = page.Written }.Write(outcome);
        page.Return();
        entries.Return();
    }

    /// <summary>
    /// Appends the entries and returns how many. There is more behind <paramref name="last"/>, unless it is none.
    /// </summary>
    private static int Collect(
        KeyStore store, scoped in RangeRequest asked, ClusterTime time, ByteBuffer entries, ref Row last)
    {
        Span<Row> rows = stackalloc Row[RowsPerStep];
        Span<byte> from = stackalloc byte[Limits.KeyBytesMax];
        bool descends = asked.Has(RangeFlags.Descending);
        int length = CopyTo(descends ? asked.End : asked.Start, from);
        bool isInclusive = !descends && !asked.Has(RangeFlags.AfterStart);
        int count = 0;
        for (int looked = 0; looked < RowsPerPage;)
        {
            int step = (int)Math.Min(RowsPerStep, asked.Limit - count + 1);
            int filled = descends
                ? store.Ordered.Descend(from[..length], isInclusive, rows[..step])
                : store.Ordered.Ascend(from[..length], isInclusive, rows[..step]);
            Prefetch(store, rows[..filled]);
            foreach (Row row in rows[..filled])
            {
                ref readonly KeyEntry entry = ref store.Keys[row];
                ReadOnlySpan<byte> key = store.Keys.Key(in entry);
                if (IsBehind(in asked, descends, key))
                {
                    last = Row.None;
                    return count;
                }

                if (!entry.IsDeleted && !store.Expiry.HasPassed(in entry, time))
                {
                    if (count == asked.Limit || entries.Length >= BytesPerPage)
                    {
                        return count;
                    }

                    count++;
                    if (!asked.Has(RangeFlags.CountOnly))
                    {
                        RangePage.Append(
                            entries,
                            key,
                            asked.Has(RangeFlags.KeysOnly) ? default : store.Keys.Value(in entry),
                            entry.IsNull,
                            entry.Revision.Value);
                    }
                }

                last = row;
            }

            looked += filled;
            if (filled < step)
            {
                last = Row.None;
                return count;
            }

            length = CopyTo(store.Keys.Key(in store.Keys[last]), from);
            isInclusive = false;
        }

        return count;
    }

    private static bool IsBehind(scoped in RangeRequest asked, bool descends, ReadOnlySpan<byte> key)
    {
        if (!descends)
        {
            return asked.HasEnd && key.SequenceCompareTo(asked.End) >= 0;
        }

        int sign = key.SequenceCompareTo(asked.Start);
        return sign < 0 || (sign == 0 && asked.Has(RangeFlags.AfterStart));
    }

    private static void Prefetch(KeyStore store, ReadOnlySpan<Row> rows)
    {
        foreach (Row row in rows)
        {
            CacheLines.Prefetch(in store.Keys[row]);
        }

        foreach (Row row in rows)
        {
            store.Keys.PrefetchBlock(row, LinesPrefetched);
        }
    }

    private static int CopyTo(ReadOnlySpan<byte> key, Span<byte> target)
    {
        key.CopyTo(target);
        return key.Length;
    }
}
