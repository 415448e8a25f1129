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
    /// <param name="store">The state.</param>
    /// <param name="asked">The page.</param>
    /// <param name="time">Cluster time of the last applied entry, or of the cut.</param>
    /// <param name="outcome">Takes the outcome.</param>
    /// <param name="cut">The page shows the range as it was there; null: as it is.</param>
    public static void Read(
        KeyStore store, scoped in RangeRequest asked, ClusterTime time, ByteBuffer outcome, RangeCut? cut = null)
    {
        ByteBuffer entries = ByteBuffer.Rent();
        PageInWork page = new(entries);
        page.Forgotten = ForgottenOf(cut, in asked);
        Collect(store, in asked, time, cut, ref page);
        ByteBuffer written = ByteBuffer.Rent();
        ReadOnlySpan<byte> last = page.LastForgotten is { } name ? name
            : page.Last.IsNone ? default : store.Keys.Key(in store.Keys[page.Last]);
        RangePage.WriteHeader(written, last, page.Count);
        written.Append(entries.Written);
        new Outcome(OutcomeStatus.Found, 0, page.Count) { HasValue = true, Value = written.Written }.Write(outcome);
        written.Return();
        entries.Return();
    }

    /// <summary>Fills the page. There is more behind its last key, unless it has none.</summary>
    private static void Collect(
        KeyStore store, scoped in RangeRequest asked, ClusterTime time, RangeCut? cut, ref PageInWork page)
    {
        Span<Row> rows = stackalloc Row[RowsPerStep];
        Span<byte> from = stackalloc byte[Limits.KeyBytesMax];
        bool descends = asked.Has(RangeFlags.Descending);
        int length = CopyTo(descends ? asked.End : asked.Start, from);
        bool isInclusive = !descends && !asked.Has(RangeFlags.AfterStart);
        while (page.Looked < RowsPerPage)
        {
            int step = (int)Math.Min(RowsPerStep, asked.Limit - page.Count + 1);
            int filled = descends
                ? store.Ordered.Descend(from[..length], isInclusive, rows[..step])
                : store.Ordered.Ascend(from[..length], isInclusive, rows[..step]);
            Prefetch(store, rows[..filled]);
            foreach (Row row in rows[..filled])
            {
                ref readonly KeyEntry entry = ref store.Keys[row];
                ReadOnlySpan<byte> key = store.Keys.Key(in entry);
                if (page.Forgotten is not null && !TryAddForgotten(in asked, key, ref page))
                {
                    return;
                }

                if (IsBehind(in asked, descends, key))
                {
                    page.End();
                    return;
                }

                if (!TryAdd(store, in asked, time, cut, row, ref page))
                {
                    return;
                }

                page.Look(row);
            }

            if (filled < step)
            {
                if (page.Forgotten is null || TryAddForgotten(in asked, upTo: default, ref page))
                {
                    page.End();
                }

                return;
            }

            length = CopyTo(store.Keys.Key(in store.Keys[page.Last]), from);
            isInclusive = false;
        }
    }

    /// <summary>Adds a row if there is something to see. False: the page has no room for it.</summary>
    private static bool TryAdd(
        KeyStore store, scoped in RangeRequest asked, ClusterTime time, RangeCut? cut, Row row, ref PageInWork page)
    {
        ref readonly KeyEntry entry = ref store.Keys[row];
        if (cut is not null && cut.TryFind(row, out PreImage image))
        {
            return image.IsHidden
                || page.TryAdd(
                    in asked, store.Keys.Key(in entry), image.Value.Span, image.IsNull, image.Revision.Value);
        }

        if (entry.IsDeleted || store.Expiry.HasPassed(in entry, time))
        {
            return true;
        }

        ReadOnlySpan<byte> value = asked.Has(RangeFlags.KeysOnly) ? default : store.Keys.Value(in entry);
        return page.TryAdd(in asked, store.Keys.Key(in entry), value, entry.IsNull, entry.Revision.Value);
    }

    /// <summary>
    /// Adds the forgotten keys of the cut up to a key, which may be of the same name; all that are left without one.
    /// False: the page has no room.
    /// </summary>
    private static bool TryAddForgotten(
        scoped in RangeRequest asked, scoped ReadOnlySpan<byte> upTo, ref PageInWork page)
    {
        bool descends = asked.Has(RangeFlags.Descending);
        while (page.Forgotten is { } forgotten)
        {
            ForgottenKey key = forgotten.Current;
            int sign = upTo.IsEmpty ? 0 : key.Name.AsSpan().SequenceCompareTo(upTo);
            if ((descends ? sign < 0 : sign > 0) || IsBehind(in asked, descends, key.Name))
            {
                return true;
            }

            if (page.Looked >= RowsPerPage
                || !page.TryAdd(in asked, key.Name, key.Image.Value.Span, key.Image.IsNull, key.Image.Revision.Value))
            {
                return false;
            }

            page.Look(key);
        }

        return true;
    }

    /// <summary>The forgotten keys of the cut from the page's first key on, at the first; null: none.</summary>
    private static IEnumerator<ForgottenKey>? ForgottenOf(RangeCut? cut, scoped in RangeRequest asked)
    {
        if (cut is not { Forgotten: > 0 })
        {
            return null;
        }

        bool descends = asked.Has(RangeFlags.Descending);
        bool isInclusive = !descends && !asked.Has(RangeFlags.AfterStart);
        ReadOnlySpan<byte> from = descends ? asked.End : asked.Start;
        IEnumerator<ForgottenKey>? forgotten = cut.ForgottenFrom(from, descends);
        while (forgotten is not null && forgotten.MoveNext())
        {
            if (isInclusive || !from.SequenceEqual(forgotten.Current.Name))
            {
                return forgotten;
            }
        }

        return null;
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

    /// <summary>A page that is being filled.</summary>
    private ref struct PageInWork(ByteBuffer entries)
    {
        /// <summary>Forgotten keys of the cut that are still to come, at the next one; null: none.</summary>
        public IEnumerator<ForgottenKey>? Forgotten;

        public int Count { get; private set; }

        /// <summary>Keys that were looked at.</summary>
        public int Looked { get; private set; }

        /// <summary>The row that was looked at last; none: the range ends with the page.</summary>
        public Row Last { get; private set; }

        /// <summary>The forgotten key that was looked at last, where none of a row came later.</summary>
        public byte[]? LastForgotten { get; private set; }

        /// <summary>Adds a key. False: the page is full.</summary>
        public bool TryAdd(
            scoped in RangeRequest asked,
            scoped ReadOnlySpan<byte> key,
            scoped ReadOnlySpan<byte> value,
            bool isNull,
            long revision)
        {
            if (Count == asked.Limit || entries.Length >= BytesPerPage)
            {
                return false;
            }

            Count++;
            if (!asked.Has(RangeFlags.CountOnly))
            {
                RangePage.Append(entries, key, asked.Has(RangeFlags.KeysOnly) ? default : value, isNull, revision);
            }

            return true;
        }

        public void Look(Row row)
        {
            Looked++;
            Last = row;
            LastForgotten = null;
        }

        /// <summary>The next forgotten key was looked at.</summary>
        public void Look(ForgottenKey key)
        {
            Looked++;
            LastForgotten = key.Name;
            Forgotten = Forgotten!.MoveNext() ? Forgotten : null;
        }

        /// <summary>There is no more in the range.</summary>
        public void End()
        {
            Last = Row.None;
            LastForgotten = null;
        }
    }
}
