using System.Globalization;
using Kahuna.Wire.Commands;

namespace Kahuna.Wire.Checks;

/// <summary>
/// The part of <see cref="CommandCheck"/> for transactions over several partitions. Stateless, any thread.
/// </summary>
internal static class PrepareCheck
{
    private const string Malformed = "the transaction is malformed";

    /// <summary>Why a part is refused, apart from its conditions and operations; null when it is valid.</summary>
    public static string? Refusal(scoped in Command command, out PrepareBody body)
    {
        if (!PrepareBody.TryRead(command.Value, out body) || body.AnchorKey.IsEmpty)
        {
            return Malformed;
        }

        if (body.TimeoutMs is < Limits.PrepareMsMin or > Limits.PrepareMsMax)
        {
            return string.Create(
                CultureInfo.InvariantCulture,
                $"the timeout is {body.TimeoutMs:N0} ms; it must be {Limits.PrepareMsMin:N0} to "
                    + $"{Limits.PrepareMsMax:N0}");
        }

        if (!body.Has(PrepareFlags.Anchor))
        {
            return body.Participants == 0 && body.AnchorKey.Length <= Limits.KeyBytesMax ? null : Malformed;
        }

        return body.Participants is 0 or > Limits.ParticipantsMax
            || command.Durability != Durability.Persistent
            || !body.AnchorKey.SequenceEqual(command.Key)
            ? Malformed
            : ParticipantsRefusal(body.ParticipantList);
    }

    /// <summary>Why what decides, finishes or forgets a transaction is refused; null when it is valid.</summary>
    public static string? DecisionRefusal(scoped in Command command)
    {
        bool isForget = command.Kind == CommandKind.TransactionForget;
        bool isKnown = isForget
            || (TransactionDecision)command.Number is TransactionDecision.Then
                or TransactionDecision.Else
                or TransactionDecision.Abort;
        bool isAtAnchor = isForget || command.Kind == CommandKind.TransactionDecide;
        int idsMax = isForget ? Limits.ForgottenTransactionsMax : 1;
        return command.Value.Length < TransactionId.Bytes
            || command.Value.Length > idsMax * TransactionId.Bytes
            || command.Value.Length % TransactionId.Bytes != 0
            || !isKnown
            || (isAtAnchor && command.Durability != Durability.Persistent)
            ? Malformed
            : null;
    }

    private static string? ParticipantsRefusal(ReadOnlySpan<byte> list)
    {
        while (PrepareBody.TryTakeParticipant(ref list, out Durability durability, out ReadOnlySpan<byte> key))
        {
            if (durability is not (Durability.Persistent or Durability.Ephemeral)
                || key.Length is 0 or > Limits.KeyBytesMax)
            {
                return Malformed;
            }
        }

        return null;
    }
}
