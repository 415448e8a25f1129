using System.Globalization;
using Kahuna.Wire.Commands;

namespace Kahuna.Wire.Checks;

/// <summary>
/// The part of <see cref="CommandCheck"/> for the holds of pessimistic transactions. Stateless, any thread.
/// </summary>
internal static class HoldCheck
{
    private const string Malformed = "the hold is malformed";

    /// <summary>Why a hold or a release is refused, apart from its key and flags; null when it is valid.</summary>
    public static string? Refusal(scoped in Command command)
    {
        if (command.Kind == CommandKind.TransactionRelease)
        {
            return command.Value.Length == TransactionId.Bytes ? null : Malformed;
        }

        if (!HoldBody.TryRead(command.Value, out HoldBody body)
            || body.Mode is not (HoldMode.Shared or HoldMode.Exclusive)
            || (body.Flags & ~HoldFlags.All) != 0)
        {
            return Malformed;
        }

        if (body.LeftMs is 0 or > Limits.TransactionHoldMsMax)
        {
            return string.Create(
                CultureInfo.InvariantCulture,
                $"the time of the hold is {body.LeftMs:N0} ms; it must be 1 to {Limits.TransactionHoldMsMax:N0}");
        }

        return !command.Has(CommandFlags.Number) || command.HoldMs is < 0 or > Limits.LockHoldMsMax
            ? string.Create(
                CultureInfo.InvariantCulture,
                $"hold_ms is {command.HoldMs:N0}; it must be 0 to {Limits.LockHoldMsMax:N0}")
            : null;
    }

    /// <summary>Why the holder that a commit names is refused; null when it is valid, or none is named.</summary>
    public static string? HolderRefusal(scoped in Command command) =>
        command.Holder.Length == (command.Has(CommandFlags.IfValue) ? TransactionId.Bytes : 0)
            ? null
            : "the id of the transaction is malformed";
}
