using System.Buffers.Binary;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Primitives;

/// <summary>
/// Encoding of consecutive log entries, in appends between nodes and in log records. The first entry's index is carried
/// beside them; each further entry has the next index. Stateless.
/// <code>
/// entry:  u64 term, u8 kind, u16 feature level - 1, u8 zero, u32 payload length, payload
/// </code>
/// The level is the cluster's when the entry was proposed; older formats have zero there, which is level 1. The reader
/// compares it with what it supports before it looks at the payload.
/// </summary>
internal static class EntryCodec
{
    public const int HeaderBytes = 16;

    public static void Write(
        ByteBuffer target, Term term, EntryKind kind, ReadOnlySpan<byte> payload, FeatureLevel level = default)
    {
        Span<byte> span = target.Take(HeaderBytes + payload.Length);
        WriteHeader(span, term, kind, level, payload.Length);
        payload.CopyTo(span[HeaderBytes..]);
    }

    /// <summary>Writes everything before the payload.</summary>
    public static void WriteHeader(Span<byte> target, Term term, EntryKind kind, FeatureLevel level, int payloadBytes)
    {
        BinaryPrimitives.WriteUInt64LittleEndian(target, term.Value);
        BinaryPrimitives.WriteUInt32LittleEndian(target[8..], (byte)kind | ((uint)level.Encoded << 8));
        BinaryPrimitives.WriteUInt32LittleEndian(target[12..], (uint)payloadBytes);
    }

    /// <summary>The feature level of an encoded entry.</summary>
    public static FeatureLevel LevelOf(ReadOnlySpan<byte> entry) =>
        FeatureLevel.Decode(BinaryPrimitives.ReadUInt16LittleEndian(entry[9..]));

    /// <summary>As the other one, without the level.</summary>
    public static bool TryRead(
        ref ReadOnlySpan<byte> rest, out Term term, out EntryKind kind, out ReadOnlySpan<byte> payload) =>
        TryRead(ref rest, out term, out kind, out _, out payload);

    /// <summary>
    /// Takes the next entry off <paramref name="rest"/>. False at the end, when <paramref name="rest"/> is empty, or
    /// when the rest is no entry. An unknown kind is an entry only with a feature level above all that this build has.
    /// </summary>
    public static bool TryRead(
        ref ReadOnlySpan<byte> rest, out Term term, out EntryKind kind, out FeatureLevel level,
        out ReadOnlySpan<byte> payload)
    {
        term = default;
        kind = default;
        level = default;
        payload = default;
        if (rest.Length < HeaderBytes)
        {
            return false;
        }

        uint length = BinaryPrimitives.ReadUInt32LittleEndian(rest[12..]);
        FeatureLevel found = LevelOf(rest);
        bool isKind = rest[8] <= (byte)EntryKind.Check || found > FeatureLevels.Newest;
        if (!isKind || rest[11] != 0 || length > (uint)(rest.Length - HeaderBytes))
        {
            return false;
        }

        term = new Term(BinaryPrimitives.ReadUInt64LittleEndian(rest));
        kind = (EntryKind)rest[8];
        level = found;
        payload = rest.Slice(HeaderBytes, (int)length);
        rest = rest[(HeaderBytes + (int)length)..];
        return true;
    }
}

/// <summary>Kind of a log entry. Values are part of the log format.</summary>
internal enum EntryKind : byte
{
    /// <summary>Empty: the entry with which a new leader begins its term.</summary>
    Empty = 0,

    /// <summary>A batch of commands with the cluster time at which they apply.</summary>
    Commands = 1,

    /// <summary>A change of the group's members. Reserved; not written yet.</summary>
    Membership = 2,

    /// <summary>Stamps the cluster time and compares the members' states.</summary>
    Check = 3,
}
