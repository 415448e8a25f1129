using System.Text;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire;
using Kahuna.Wire.Routing;
using Kahuna.Wire.Scripts;

namespace Kahuna.Server.State.KeyValues;

/// <summary>Reads all keys of a bucket for a script. Stateless.</summary>
internal static class BucketReader
{
    /// <summary>
    /// Rows that one read looks at, at most; keys of buckets with longer names lie between those of the bucket.
    /// </summary>
    private const int RowsMax = RangeReader.RowsPerPage;

    private const int RowsPerStep = 32;

    /// <summary>Appends the keys of a bucket, ascending. False when there are more than may be read.</summary>
    /// <param name="store">The state.</param>
    /// <param name="bucket">The bucket.</param>
    /// <param name="time">The time of the entry; what has expired by then is left out.</param>
    /// <param name="entries">Takes the keys.</param>
    /// <param name="keysMax">Most keys.</param>
    /// <param name="bytesMax">Most bytes of names and values.</param>
    public static bool Read(
        KeyStore store,
        ReadOnlySpan<byte> bucket,
        ClusterTime time,
        List<ScriptValue> entries,
        int keysMax,
        long bytesMax)
    {
        Span<Row> rows = stackalloc Row[RowsPerStep];
        Span<byte> from = stackalloc byte[Limits.KeyBytesMax + 1];
        bucket.CopyTo(from);
        int length = bucket.Length;
        bool isInclusive = true;
        for (int looked = 0; looked < RowsMax; looked += RowsPerStep)
        {
            int filled = store.Ordered.Ascend(from[..length], isInclusive, rows);
            foreach (Row row in rows[..filled])
            {
                ref readonly KeyEntry entry = ref store.Keys[row];
                ReadOnlySpan<byte> key = store.Keys.Key(in entry);
                if (IsBehind(key, bucket))
                {
                    return true;
                }

                if (entry.IsDeleted
                    || store.Expiry.HasPassed(in entry, time)
                    || !KeyRouting.Bucket(key).SequenceEqual(bucket))
                {
                    continue;
                }

                bytesMax -= key.Length + entry.ValueLength;
                if (entries.Count == keysMax || bytesMax < 0)
                {
                    return false;
                }

                entries.Add(ToEntry(store, key, in entry, time));
            }

            if (filled < RowsPerStep)
            {
                return true;
            }

            ReadOnlySpan<byte> last = store.Keys.Key(in store.Keys[rows[filled - 1]]);
            last.CopyTo(from);
            length = last.Length;
            isInclusive = false;
        }

        return false;
    }

    private static ScriptValue ToEntry(KeyStore store, ReadOnlySpan<byte> key, in KeyEntry entry, ClusterTime time) =>
        ScriptValue.OfEntry(
            Encoding.UTF8.GetString(key),
            entry.IsNull ? null : (ReadOnlyMemory<byte>?)store.Keys.Value(in entry).ToArray(),
            entry.Revision.Value,
            entry.ExpirySlot == 0
                ? ScriptValue.NeverExpires
                : Math.Max(0, store.Expiry.DeadlineOf(in entry) - time));

    /// <summary>True for a key behind all keys of the bucket.</summary>
    private static bool IsBehind(ReadOnlySpan<byte> key, ReadOnlySpan<byte> bucket)
    {
        int common = Math.Min(key.Length, bucket.Length);
        int order = key[..common].SequenceCompareTo(bucket[..common]);
        return order > 0 || (order == 0 && key.Length > bucket.Length && key[bucket.Length] > '/');
    }
}
