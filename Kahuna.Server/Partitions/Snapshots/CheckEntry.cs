using System.Buffers.Binary;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Snapshots;

/// <summary>
/// Payload of a check entry: <c>i64 cluster time in ms, u8 kind, u64 index, u64 digest</c>. A mark asks each member for
/// the digest of its state before the entry; a verdict says what the members of the mark at an index answered
/// (docs/adr/0018-replicas-compare-digests.md). Immutable.
/// </summary>
/// <param name="Time">Cluster time.</param>
/// <param name="Kind">What the entry says.</param>
/// <param name="Index">Verdict: the mark's index.</param>
/// <param name="Digest">Agreed: the digest that a majority of the voters has there.</param>
internal readonly record struct CheckEntry(ClusterTime Time, CheckKind Kind, LogIndex Index, ulong Digest)
{
    public const int Bytes = 25;

    public void Write(Span<byte> target)
    {
        BinaryPrimitives.WriteInt64LittleEndian(target, Time.Ms);
        target[8] = (byte)Kind;
        BinaryPrimitives.WriteUInt64LittleEndian(target[9..], Index.Value);
        BinaryPrimitives.WriteUInt64LittleEndian(target[17..], Digest);
    }

    /// <summary>False when the bytes are no check.</summary>
    public static bool TryRead(ReadOnlySpan<byte> payload, out CheckEntry check)
    {
        check = default;
        if (payload.Length != Bytes || payload[8] > (byte)CheckKind.Divided)
        {
            return false;
        }

        check = new CheckEntry(
            new ClusterTime(BinaryPrimitives.ReadInt64LittleEndian(payload)),
            (CheckKind)payload[8],
            new LogIndex(BinaryPrimitives.ReadUInt64LittleEndian(payload[9..])),
            BinaryPrimitives.ReadUInt64LittleEndian(payload[17..]));
        return true;
    }
}

/// <summary>What a check entry says. Values are part of the log format.</summary>
internal enum CheckKind : byte
{
    /// <summary>Every member notes its digest here, and tells the leader.</summary>
    Mark = 0,

    /// <summary>A majority of the voters has this digest; a member with another one stops the group.</summary>
    Agreed = 1,

    /// <summary>All voters have answered, and no digest has a majority: every member stops the group.</summary>
    Divided = 2,
}
