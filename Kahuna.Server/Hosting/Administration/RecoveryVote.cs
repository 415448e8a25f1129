using System.Buffers.Binary;
using Kahuna.Server.Access;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Meta;

namespace Kahuna.Server.Hosting.Administration;

/// <summary>
/// A row of the records: a node has a request to recover the administrator in its data directory
/// (docs/adr/0047-lost-administrator.md). A node has one vote: a later one takes the place of the one before it, also
/// when the node has another data directory by then. Immutable.
/// </summary>
/// <param name="Node">Which node.</param>
/// <param name="DirectoryId">Of its data directory.</param>
/// <param name="Fingerprint">Of the request (<see cref="RecoveryRequest.Fingerprint"/>).</param>
/// <param name="VotedMs">By the clock of the node; milliseconds since 1970, UTC.</param>
/// <remarks>
/// The row is of the kind <see cref="AccessRowKind.RecoveryVote"/>, and its name is the node's number, u16. The value:
/// <code>u8 version (1), u64 id of the directory, u8[32] fingerprint, i64 time</code>
/// Numbers are little-endian.
/// </remarks>
internal sealed record RecoveryVote(NodeId Node, ulong DirectoryId, byte[] Fingerprint, long VotedMs)
{
    private const byte Version = 1;

    /// <summary>The row.</summary>
    public AccessRow ToRow()
    {
        byte[] name = new byte[sizeof(ushort)];
        BinaryPrimitives.WriteUInt16LittleEndian(name, Node.Value);
        AccessRowWriter value = new();
        value.U8(Version);
        value.U64(DirectoryId);
        value.Bytes(Fingerprint);
        value.U64((ulong)VotedMs);
        return new AccessRow((byte)AccessRowKind.RecoveryVote, name, value.ToArray());
    }

    /// <summary>Decodes a vote; null for another row, and for one that this version does not know.</summary>
    public static RecoveryVote? Read(AccessRow row)
    {
        AccessRowReader value = new(row.Value);
        if (row.Kind != (byte)AccessRowKind.RecoveryVote
            || row.Name.Length != sizeof(ushort)
            || value.U8() != Version)
        {
            return null;
        }

        RecoveryVote vote = new(
            new NodeId(BinaryPrimitives.ReadUInt16LittleEndian(row.Name)),
            value.U64(),
            value.Bytes(RecoveryRequest.FingerprintBytes).ToArray(),
            (long)value.U64());
        return value.IsDone ? vote : null;
    }

    /// <summary>Votes for the request that count now: of these nodes, and no older than a request may be.</summary>
    /// <param name="votes">All votes.</param>
    /// <param name="fingerprint">Of the request.</param>
    /// <param name="voters">The nodes whose votes count.</param>
    /// <param name="now">The present time.</param>
    public static int Count(
        IEnumerable<RecoveryVote> votes, byte[] fingerprint, VoterSet voters, DateTimeOffset now) => votes
        .Where(vote => vote.Fingerprint.AsSpan().SequenceEqual(fingerprint)
            && voters.Ids.Contains(vote.Node)
            && RecoveryRequest.IsRecent(vote.VotedMs, now))
        .Select(static vote => vote.Node)
        .Distinct()
        .Count();
}

/// <summary>
/// A row of the records: a request was carried out. It is not carried out again, however many nodes still have it.
/// Immutable.
/// </summary>
/// <param name="Fingerprint">Of the request.</param>
/// <param name="EndedMs">By the clock of the node that did it; milliseconds since 1970, UTC.</param>
/// <remarks>
/// The row is of the kind <see cref="AccessRowKind.RecoveryVote"/>, and its name is the fingerprint. The value:
/// <code>u8 version (1), i64 time</code>
/// </remarks>
internal sealed record RecoveryEnd(byte[] Fingerprint, long EndedMs)
{
    private const byte Version = 1;

    /// <summary>The row.</summary>
    public AccessRow ToRow()
    {
        AccessRowWriter value = new();
        value.U8(Version);
        value.U64((ulong)EndedMs);
        return new AccessRow((byte)AccessRowKind.RecoveryVote, Fingerprint, value.ToArray());
    }

    /// <summary>Decodes it; null for another row, and for one that this version does not know.</summary>
    public static RecoveryEnd? Read(AccessRow row)
    {
        AccessRowReader value = new(row.Value);
        if (row.Kind != (byte)AccessRowKind.RecoveryVote
            || row.Name.Length != RecoveryRequest.FingerprintBytes
            || value.U8() != Version)
        {
            return null;
        }

        RecoveryEnd end = new(row.Name, (long)value.U64());
        return value.IsDone ? end : null;
    }
}
