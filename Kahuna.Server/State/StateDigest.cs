using System.Buffers.Binary;
using Kahuna.Client.Wire.Routing;

namespace Kahuna.Server.State;

/// <summary>The digest of a partition's data: a sum over its keys, so it does not depend on the order of rows. Stateless; called by the owner of the store.</summary>
internal static class StateDigest
{
    public static ulong Of(KeyStore store)
    {
        ulong sum = 0;
        for (int key = 1; key <= store.Keys.Count; key++)
        {
            sum = unchecked(sum + OfKey(store, in store.Keys[key]));
        }

        return sum;
    }

    private static ulong OfKey(KeyStore store, in KeyEntry entry)
    {
        long deadline = entry.ExpirySlot == 0 ? -1 : store.Expiry.DeadlineOf(in entry);
        ulong digest = XxHash64.Hash(store.Keys.Key(in entry));
        digest = Mix(digest, entry.Revision, deadline, entry.Flags, entry.ValueLength);
        digest = XxHash64.Hash(store.Keys.Value(in entry), digest);
        int index = entry.NewestHistory;
        for (int left = entry.HistoryCount; left > 0; left--)
        {
            ref readonly HistoryRecord record = ref store.History[index];
            digest = Mix(digest, record.Revision, record.ReplacedAtMs, record.Flags, record.ValueLength);
            digest = XxHash64.Hash(store.History.Value(in record), digest);
            index = record.Older;
        }

        return digest;
    }

    private static ulong Mix(ulong digest, long a, long b, KeyEntryFlags flags, int length)
    {
        Span<byte> bytes = stackalloc byte[24];
        BinaryPrimitives.WriteInt64LittleEndian(bytes, a);
        BinaryPrimitives.WriteInt64LittleEndian(bytes[8..], b);
        BinaryPrimitives.WriteInt32LittleEndian(bytes[16..], (int)flags);
        BinaryPrimitives.WriteInt32LittleEndian(bytes[20..], length);
        return XxHash64.Hash(bytes, digest);
    }
}
