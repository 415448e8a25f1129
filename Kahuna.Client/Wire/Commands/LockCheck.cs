using System.Globalization;
using System.Text.Unicode;

namespace Kahuna.Wire.Commands;

/// <summary>The part of <see cref="CommandCheck"/> for locks and fencing tokens. Stateless, any thread.</summary>
internal static class LockCheck
{
    /// <summary>Why the command is refused, apart from its name and flags; null when it is valid.</summary>
    public static string? Refusal(scoped in Command command) => command.Kind switch
    {
        CommandKind.LockAcquire => BodyRefusal(command.Value) ?? LeaseRefusal(in command) ?? WaitRefusal(in command),
        CommandKind.LockExtend => OwnerRefusal(command.Value) ?? TokenRefusal(in command) ?? LeaseRefusal(in command),
        CommandKind.LockRelease => OwnerRefusal(command.Value) ?? TokenRefusal(in command),
        CommandKind.LockAwait => OwnerRefusal(command.Value) ?? TokenRefusal(in command) ?? HoldRefusal(in command),
        CommandKind.LockObserve =>
            ValueRefusal(in command)
                ?? (command.Token.Value < 0 ? Negative("token", command.Token.Value) : null)
                ?? HoldRefusal(in command),
        CommandKind.LockList =>
            command.Cursor < 0 || command.Partition < 0
                ? "the cursor of the list did not come from a server"
                : ValueRefusal(in command),
        _ => ValueRefusal(in command),
    };

    /// <summary>Why the fence of a write is refused; null when it is valid or absent.</summary>
    public static string? FenceRefusal(scoped in Command command)
    {
        if (!command.Has(CommandFlags.Fenced))
        {
            return null;
        }

        if (command.FenceToken < 1)
        {
            return string.Create(
                CultureInfo.InvariantCulture, $"fence token is {command.FenceToken:N0}; it must be 1 or greater");
        }

        if (command.FenceName.IsEmpty || command.FenceName.Length > Limits.KeyBytesMax)
        {
            return string.Create(
                CultureInfo.InvariantCulture,
                $"fence resource is {command.FenceName.Length:N0} bytes; it must have 1 to {Limits.KeyBytesMax:N0}");
        }

        if (!Utf8.IsValid(command.FenceName))
        {
            return "fence resource is not valid UTF-8";
        }

        return Routing.KeyRouting.Bucket(command.FenceName).SequenceEqual(Routing.KeyRouting.Bucket(command.Key))
            ? null
            : "fence resource is in another bucket than the key; a write can be fenced by locks of its own bucket, "
                + "which is the part of the name before the last /";
    }

    private static string? BodyRefusal(ReadOnlySpan<byte> value) =>
        LockBody.TryRead(value, out LockBody body) ? BodyRefusal(in body) : "the claim is malformed";

    /// <summary>Why the claim is refused; null when it is valid.</summary>
    public static string? BodyRefusal(scoped in LockBody body)
    {
        if (body.Mode is not (LockMode.Exclusive or LockMode.Shared or LockMode.Permit))
        {
            return string.Create(
                CultureInfo.InvariantCulture,
                $"mode is {(byte)body.Mode}; it must be 1 (exclusive), 2 (shared) or 3 (permit)");
        }

        if (body.Mode == LockMode.Permit ? body.Permits is < 1 or > Limits.PermitsMax : body.Permits != 0)
        {
            return body.Mode == LockMode.Permit
                ? string.Create(
                    CultureInfo.InvariantCulture,
                    $"permits is {body.Permits:N0}; it must be 1 to {Limits.PermitsMax:N0}")
                : "permits is not an option of a lock; it belongs to a semaphore";
        }

        return body.Note.Length > Limits.NoteBytesMax
            ? string.Create(
                CultureInfo.InvariantCulture,
                $"note is {body.Note.Length:N0} bytes; the limit is {Limits.NoteBytesMax:N0}")
            : OwnerRefusal(body.Owner);
    }

    private static string? OwnerRefusal(ReadOnlySpan<byte> owner) =>
        owner.IsEmpty
            ? string.Create(
                CultureInfo.InvariantCulture, $"owner is empty; it must have 1 to {Limits.OwnerBytesMax} bytes")
        : owner.Length > Limits.OwnerBytesMax
            ? string.Create(
                CultureInfo.InvariantCulture, $"owner is {owner.Length:N0} bytes; the limit is {Limits.OwnerBytesMax}")
        : Utf8.IsValid(owner) ? null : "owner is not valid UTF-8";

    private static string? LeaseRefusal(scoped in Command command) =>
        !command.Has(CommandFlags.Ttl) ? "lease_ms is not set"
        : command.LeaseMs is < 1 or > Limits.LeaseMsMax
            ? string.Create(
                CultureInfo.InvariantCulture,
                $"lease_ms is {command.LeaseMs:N0}; it must be 1 to {Limits.LeaseMsMax:N0}")
        : null;

    private static string? WaitRefusal(scoped in Command command) =>
        command.Has(CommandFlags.Number) && command.WaitMs is < 1 or > Limits.LockWaitMsMax
            ? string.Create(
                CultureInfo.InvariantCulture,
                $"wait_ms is {command.WaitMs:N0}; it must be 1 to {Limits.LockWaitMsMax:N0}, or unset not to wait")
            : null;

    private static string? HoldRefusal(scoped in Command command) =>
        !command.Has(CommandFlags.Number) || command.HoldMs is < 0 or > Limits.LockHoldMsMax
            ? string.Create(
                CultureInfo.InvariantCulture,
                $"hold_ms is {command.HoldMs:N0}; it must be 0 to {Limits.LockHoldMsMax:N0}")
            : null;

    private static string? TokenRefusal(scoped in Command command) =>
        !command.Has(CommandFlags.IfRevision) ? "token is not set"
        : command.Token.Value < 1 ? Negative("token", command.Token.Value) : null;

    private static string Negative(string field, long value) =>
        string.Create(CultureInfo.InvariantCulture, $"{field} is {value:N0}; it must be 1 or greater");

    private static string? ValueRefusal(scoped in Command command) =>
        command.Value.IsEmpty
            ? null
            : string.Create(
                CultureInfo.InvariantCulture, $"value is {command.Value.Length:N0} bytes; this operation carries none");
}
