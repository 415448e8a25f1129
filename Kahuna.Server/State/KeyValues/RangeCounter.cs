using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.State.KeyValues;

/// <summary>
/// Counts the keys of the ranges that a transaction depends on. It looks at all of them before anything is changed, and
/// at a bounded number of rows. Owned by one <see cref="TransactionRunner"/>; not thread-safe.
/// </summary>
internal sealed class RangeCounter(KeyStore store)
{
    /// <summary>
    /// Rows that one transaction looks at in a group, those of deleted keys included: a few milliseconds.
    /// </summary>
    public const int RowsMax = 16_384;

    /// <summary>Rows that are looked up at once, so that their memory is fetched side by side.</summary>
    private const int RowsPerStep = 64;

    private readonly List<int> _counts = [];
    private readonly List<Row> _expiring = [];
    private int _next;

    /// <summary>
    /// The keys of the ranges that have a time to live, which has not passed. Valid until something changes.
    /// </summary>
    public IReadOnlyList<Row> Expiring => _expiring;

    /// <summary>
    /// Counts the ranges of a transaction. False: they have too many rows, or too many keys that will expire.
    /// </summary>
    public bool TryCount(scoped in TransactionBody body, ClusterTime time)
    {
        _counts.Clear();
        _expiring.Clear();
        _next = 0;
        int left = RowsMax;
        ReadOnlySpan<byte> items = body.Items;
        for (int i = 0; i < body.Conditions && body.Ranges > 0; i++)
        {
            bool decodes = CommandList.TryTake(ref items, out Command item);
            InvariantException.Require(decodes, "the conditions of a transaction that passed the door decode");
            if (i >= body.Conditions - body.Ranges)
            {
                _counts.Add(Count(new RangeCondition(in item), time, ref left));
            }
        }

        return left >= 0 && _expiring.Count <= Limits.TransactionItemsMax;
    }

    /// <summary>How many keys the next range has, in the order of the conditions.</summary>
    public int Take() => _counts[_next++];

    /// <summary>
    /// The rows that the ranges of a transaction have, as far as they are looked at; 0 when the bytes are none.
    /// </summary>
    public int RowsOf(scoped in TransactionBody body)
    {
        _expiring.Clear();
        int left = RowsMax;
        ReadOnlySpan<byte> items = body.Items;
        for (int i = 0; i < body.Conditions && CommandList.TryTake(ref items, out Command item); i++)
        {
            if (RangeCondition.Is(in item))
            {
                Count(new RangeCondition(in item), ClusterTime.Never, ref left);
            }
        }

        return RowsMax - left;
    }

    /// <summary>Counts one range. The rows that are left are below 0 once there are too many.</summary>
    private int Count(scoped in RangeCondition asked, ClusterTime time, ref int left)
    {
        Span<Row> rows = stackalloc Row[RowsPerStep];
        Span<byte> from = stackalloc byte[Limits.KeyBytesMax];
        asked.Start.CopyTo(from);
        int length = asked.Start.Length;
        bool isInclusive = true;
        int count = 0;
        while (left >= 0)
        {
            int filled = store.Ordered.Ascend(from[..length], isInclusive, rows);
            foreach (Row row in rows[..filled])
            {
                CacheLines.Prefetch(in store.Keys[row]);
            }

            // Keys are only looked at where the range ends.
            ReadOnlySpan<byte> last = filled == 0 ? default : store.Keys.Key(in store.Keys[rows[filled - 1]]);
            bool isWithin = asked.End.IsEmpty || last.SequenceCompareTo(asked.End) < 0;
            foreach (Row row in rows[..filled])
            {
                ref readonly KeyEntry entry = ref store.Keys[row];
                if (!isWithin && store.Keys.Key(in entry).SequenceCompareTo(asked.End) >= 0)
                {
                    return count;
                }

                left--;
                if (!entry.IsDeleted && !store.Expiry.HasPassed(in entry, time))
                {
                    count++;
                    if (entry.ExpirySlot != 0 && _expiring.Count <= Limits.TransactionItemsMax)
                    {
                        _expiring.Add(row);
                    }
                }
            }

            if (filled < rows.Length)
            {
                return count;
            }

            last.CopyTo(from);
            length = last.Length;
            isInclusive = false;
        }

        return count;
    }
}
