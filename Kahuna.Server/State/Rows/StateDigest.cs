using System.Buffers.Binary;
using System.Numerics;
using System.Runtime.CompilerServices;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Routing;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// The digest of a partition's data: a sum over its revisions, kept ones included, its deadlines and its accounts, so
/// that it is kept up with each change. A deadline or an account counts with its row, which is the same on every node.
/// Equal data gives equal digests on every node; a difference shows but for one case in 2^64. Stateless.
/// </summary>
internal static class StateDigest
{
    private const ulong Odd1 = 0x9E3779B185EBCA87;
    private const ulong Odd2 = 0xC2B2AE3D27D4EB4F;

    /// <summary>Digest of one revision of a key, present or replaced.</summary>
    public static ulong OfRevision(
        ReadOnlySpan<byte> key, ReadOnlySpan<byte> value, Revision revision, KeyEntryFlags flags) =>
        XxHash64.Hash(value, XxHash64.Hash(key, unchecked(((ulong)revision.Value * Odd1) + (ulong)flags)));

    /// <summary>
    /// Digest of what a row holds now. A session changes with every command, and so has one that is kept up in parts.
    /// </summary>
    public static ulong OfRow(
        ReadOnlySpan<byte> key, ReadOnlySpan<byte> value, Revision revision, KeyEntryFlags flags) =>
        (flags & KeyEntryFlags.Session) != 0
            ? unchecked(WindowDigest.Of(key, value) + Mix(((ulong)revision.Value * Odd1) + (ulong)flags))
            : OfRevision(key, value, revision, flags);

    /// <summary>What a replaced revision adds to the sum.</summary>
    public static ulong OfRecord(in HistoryRecord record) =>
        Mix(unchecked(record.Digest + ((ulong)record.ReplacedAt.Ms * Odd1) + ((ulong)record.Number * Odd2)));

    /// <summary>What a deadline adds to the sum.</summary>
    public static ulong OfDeadline(Row row, ClusterTime deadline) =>
        Mix(unchecked(((ulong)deadline.Ms * Odd1) + ((ulong)row.Value * Odd2)));

    /// <summary>What the account of a key adds to the sum; nothing for none.</summary>
    public static ulong OfAccount(Row row, ushort account) =>
        account == 0 ? 0 : Mix(unchecked(((ulong)account * Odd2) ^ ((ulong)row.Value * Odd1)));

    /// <summary>
    /// The digest computed anew from every byte: equal to <see cref="KeyStore.Digest"/> unless memory or a stored state
    /// is damaged. Linear in the state's size.
    /// </summary>
    public static ulong Recompute(KeyStore store)
    {
        ulong sum = 0;
        for (Row key = Row.First; key.Value <= store.Keys.Count; key = key.Next)
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

            sum = unchecked(sum + OfAccount(key, entry.Account));
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

/// <summary>
/// The digest of a session's row: a sum of its header and of its places, so that it is kept up with each of them. What
/// the bytes mean is the session's concern. Stateless.
/// </summary>
internal static class WindowDigest
{
    private const ulong Odd1 = 0x9E3779B185EBCA87;
    private const ulong Odd2 = 0xC2B2AE3D27D4EB4F;

    /// <summary>Digest of a whole row, computed anew.</summary>
    public static ulong Of(ReadOnlySpan<byte> name, ReadOnlySpan<byte> value)
    {
        ulong id = SystemRowKind.SessionIn(name);
        ulong sum = OfHeader(id, value);
        ulong low = BinaryPrimitives.ReadUInt64LittleEndian(value);
        ReadOnlySpan<byte> places = value[SystemRowKind.SessionHeaderBytes..];
        uint room = (uint)(places.Length / SystemRowKind.SessionPlaceBytes);
        for (uint i = 0; i < room; i++)
        {
            ulong number = low + i;
            int at = (int)(number & (room - 1)) * SystemRowKind.SessionPlaceBytes;
            sum = unchecked(sum + OfPlace(id, number, places.Slice(at, SystemRowKind.SessionPlaceBytes)));
        }

        return sum;
    }

    /// <summary>What the header adds.</summary>
    public static ulong OfHeader(ulong id, ReadOnlySpan<byte> header)
    {
        ulong low = BinaryPrimitives.ReadUInt64LittleEndian(header);
        ulong high = BinaryPrimitives.ReadUInt64LittleEndian(header[8..]);
        ulong sum = unchecked(((id * Odd1) + (low * Odd2) + BitOperations.RotateLeft(high, 32)) * Odd1);
        return StateDigest.Mix(unchecked(sum + BinaryPrimitives.ReadUInt64LittleEndian(header[16..])));
    }

    /// <summary>What a number's place adds; 0 for one without an outcome.</summary>
    public static ulong OfPlace(ulong id, ulong number, ReadOnlySpan<byte> place)
    {
        if (place[0] == 0)
        {
            return 0;
        }

        ulong sum = unchecked((id + (number * Odd1)) ^ (BinaryPrimitives.ReadUInt64LittleEndian(place) * Odd2));
        sum = unchecked((StateDigest.Mix(sum) + BinaryPrimitives.ReadUInt64LittleEndian(place[8..])) * Odd1);
        return StateDigest.Mix(unchecked(sum ^ (BinaryPrimitives.ReadUInt64LittleEndian(place[16..]) * Odd2)));
    }
}

/// <summary>
/// SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012, with one round per word and three at
/// the end): without the secret nobody can tell which inputs collide. Stateless, any thread.
/// </summary>
internal static class SipHash13
{
    public static ulong Hash(ReadOnlySpan<byte> source, in HashSecret secret)
    {
        ulong a = secret.First ^ 0x736F6D6570736575;
        ulong b = secret.Second ^ 0x646F72616E646F6D;
        ulong c = secret.First ^ 0x6C7967656E657261;
        ulong d = secret.Second ^ 0x7465646279746573;
        ulong last = (ulong)source.Length << 56;
        while (source.Length >= sizeof(ulong))
        {
            ulong word = BinaryPrimitives.ReadUInt64LittleEndian(source);
            d ^= word;
            Round(ref a, ref b, ref c, ref d);
            a ^= word;
            source = source[sizeof(ulong)..];
        }

        last |= Tail(source);
        d ^= last;
        Round(ref a, ref b, ref c, ref d);
        a ^= last;
        c ^= 0xFF;
        Round(ref a, ref b, ref c, ref d);
        Round(ref a, ref b, ref c, ref d);
        Round(ref a, ref b, ref c, ref d);
        return a ^ b ^ c ^ d;
    }

    /// <summary>The last bytes, up to seven, as the low bytes of a word.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private static ulong Tail(ReadOnlySpan<byte> rest)
    {
        ulong tail = 0;
        int at = 0;
        if (rest.Length >= sizeof(uint))
        {
            tail = BinaryPrimitives.ReadUInt32LittleEndian(rest);
            at = sizeof(uint);
        }

        for (; at < rest.Length; at++)
        {
            tail |= (ulong)rest[at] << (8 * at);
        }

        return tail;
    }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private static void Round(ref ulong a, ref ulong b, ref ulong c, ref ulong d)
    {
        unchecked
        {
            a += b;
            c += d;
            b = BitOperations.RotateLeft(b, 13) ^ a;
            d = BitOperations.RotateLeft(d, 16) ^ c;
            a = BitOperations.RotateLeft(a, 32);
            c += b;
            a += d;
            b = BitOperations.RotateLeft(b, 17) ^ c;
            d = BitOperations.RotateLeft(d, 21) ^ a;
            c = BitOperations.RotateLeft(c, 32);
        }
    }
}

/// <summary>
/// The 128-bit key of a table's hash. Each process draws its own, so that nobody outside can choose keys that collide.
/// Nothing that leaves the process depends on it. A value.
/// </summary>
/// <param name="First">Lower half.</param>
/// <param name="Second">Upper half.</param>
internal readonly record struct HashSecret(ulong First, ulong Second)
{
    /// <summary>Bytes that a secret is made of.</summary>
    public const int Bytes = 16;

    /// <summary>The secret that 16 random bytes make up, little endian.</summary>
    public static HashSecret From(ReadOnlySpan<byte> random) =>
        new(
            BinaryPrimitives.ReadUInt64LittleEndian(random),
            BinaryPrimitives.ReadUInt64LittleEndian(random[sizeof(ulong)..]));

    /// <summary>Does not show the secret: options are logged and printed.</summary>
    public override string ToString() => "***";
}
