using Kahuna.Wire.Routing;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// The digest of a partition's data: a sum over its revisions, kept ones included, and its deadlines, so that it is
/// kept up with each change. A deadline counts with its row, which is the same on every node. Equal data gives equal
/// digests on every node; a difference shows but for one case in 2^64. Stateless.
/// </summary>
internal static class StateDigest
{
    private const ulong Odd1 = 0x9E3779B185EBCA87;
    private const ulong Odd2 = 0xC2B2AE3D27D4EB4F;

    /// <summary>Digest of one revision of a key, present or replaced.</summary>
    public static ulong OfRevision(
        ReadOnlySpan<byte> key, ReadOnlySpan<byte> value, long revision, KeyEntryFlags flags) =>
        XxHash64.Hash(value, XxHash64.Hash(key, unchecked(((ulong)revision * Odd1) + (ulong)flags)));

    /// <summary>
    /// Digest of what a row holds now. A session changes with every command, and so has one that is kept up in parts.
    /// </summary>
    public static ulong OfRow(ReadOnlySpan<byte> key, ReadOnlySpan<byte> value, long revision, KeyEntryFlags flags) =>
        (flags & KeyEntryFlags.Session) != 0
            ? unchecked(WindowDigest.Of(key, value) + Mix(((ulong)revision * Odd1) + (ulong)flags))
            : OfRevision(key, value, revision, flags);

    /// <summary>What a replaced revision adds to the sum.</summary>
    public static ulong OfRecord(in HistoryRecord record) =>
        Mix(unchecked(record.Digest + ((ulong)record.ReplacedAtMs * Odd1) + ((ulong)record.Number * Odd2)));

    /// <summary>What a deadline adds to the sum.</summary>
    public static ulong OfDeadline(int row, long deadlineMs) =>
        Mix(unchecked(((ulong)deadlineMs * Odd1) + ((ulong)row * Odd2)));

    /// <summary>
    /// The digest computed anew from every byte: equal to <see cref="KeyStore.Digest"/> unless memory or a stored state
    /// is damaged. Linear in the state's size.
    /// </summary>
    public static ulong Recompute(KeyStore store)
    {
        ulong sum = 0;
        for (int key = 1; key <= store.Keys.Count; key++)
        {
            ref readonly KeyEntry entry = ref store.Keys[key];
            if (entry.IsFree)
            {
                continue;
            }

            ReadOnlySpan<byte> name = store.Keys.Key(in entry);
            sum = unchecked(sum + OfRow(name, store.Keys.Value(in entry), entry.Revision, entry.Flags));
            if (entry.ExpirySlot != 0)
            {
                sum = unchecked(sum + OfDeadline(key, store.DeadlineOf(in entry)));
            }

            int index = entry.NewestHistory;
            for (int left = entry.HistoryCount; left > 0; left--)
            {
                HistoryRecord record = store.History[index];
                record.Digest = OfRevision(name, store.History.Value(in record), record.Revision, record.Flags);
                sum = unchecked(sum + OfRecord(in record));
                index = record.Older;
            }
        }

        return sum;
    }

    /// <summary>The last steps of XXH64: every bit of the sum depends on every bit of the input.</summary>
    public static ulong Mix(ulong hash)
    {
        hash = unchecked((hash ^ (hash >> 33)) * Odd2);
        hash = unchecked((hash ^ (hash >> 29)) * Odd1);
        return hash ^ (hash >> 32);
    }
}
