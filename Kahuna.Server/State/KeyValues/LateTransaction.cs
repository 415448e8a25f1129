using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.State.KeyValues;

/// <summary>
/// A transaction over several partitions whose time has passed, as this group knows it: somebody has to settle it.
/// Immutable.
/// </summary>
internal sealed class LateTransaction
{
    public required TransactionId Id { get; init; }

    /// <summary>This group keeps the decision; otherwise it has a part, and the decision is the anchor's.</summary>
    public required bool IsRecord { get; init; }

    /// <summary>Leads to the group that keeps the decision.</summary>
    public required byte[] AnchorKey { get; init; }

    /// <summary>Of a part: leads to the group that has it. Empty otherwise.</summary>
    public byte[] PartKey { get; init; } = [];

    /// <summary>Of a record: what is decided.</summary>
    public TransactionDecision Decision { get; init; }

    /// <summary>Of a record: the groups that have to carry out the decision, each by a key of it.</summary>
    public IReadOnlyList<(Durability Durability, byte[] Key)> Participants { get; init; } = [];

    /// <summary>The transaction of a prepared part.</summary>
    public static LateTransaction OfPart(TransactionId id, ReadOnlySpan<byte> value)
    {
        PreparedPart part = PreparedPart.Read(value);
        return new LateTransaction
        {
            Id = id,
            IsRecord = false,
            AnchorKey = part.AnchorKey.ToArray(),
            PartKey = part.Key.ToArray(),
        };
    }

    /// <summary>The transaction of a decision's row.</summary>
    public static LateTransaction OfRecord(TransactionId id, ReadOnlySpan<byte> value)
    {
        DecisionRow row = DecisionRow.Read(value);
        List<(Durability, byte[])> participants = [];
        ReadOnlySpan<byte> list = row.ParticipantList;
        while (PrepareBody.TryTakeParticipant(ref list, out Durability durability, out ReadOnlySpan<byte> key))
        {
            participants.Add((durability, key.ToArray()));
        }

        return new LateTransaction
        {
            Id = id,
            IsRecord = true,
            AnchorKey = row.AnchorKey.ToArray(),
            Decision = row.Decision,
            Participants = participants,
        };
    }
}

/// <summary>What a group holds for transactions over several partitions.</summary>
/// <param name="Parts">Prepared parts.</param>
/// <param name="Keys">Keys and ranges of keys that they hold.</param>
/// <param name="Undecided">Transactions that wait for their decision, which this group keeps.</param>
/// <param name="Decided">Decisions that are still remembered, those about unknown transactions included.</param>
internal readonly record struct PreparedCounts(int Parts, int Keys, int Undecided, int Decided);
