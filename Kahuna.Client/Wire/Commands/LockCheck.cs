using System.Globalization;
using System.Text.Unicode;

namespace Kahuna.Client.Wire.Commands;

/// <summary>The part of <see cref="CommandCheck"/> that concerns locks and the tokens that writes carry. Stateless, any thread.</summary>
internal static class LockCheck
{
    /// <summary>True for the commands that are about a lock.</summary>
    public static bool IsLock(CommandKind kind) =>
        kind is CommandKind.LockAcquire or CommandKind.LockExtend or CommandKind.LockRelease
            or CommandKind.LockGet or CommandKind.LockList or CommandKind.LockAwait or CommandKind.LockObserve;

    /// <summary>What is wrong with the command apart from its name and flags; null: nothing.</summary>
    public static string? Refusal(scoped in Command command) => command.Kind switch
    {
        CommandKind.LockAcquire => FormRefusal(command.Value) ?? LeaseRefusal(in command) ?? WaitRefusal(in command),
        CommandKind.LockExtend => OwnerRefusal(command.Value) ?? TokenRefusal(in command) ?? LeaseRefusal(in command),
        CommandKind.LockRelease => OwnerRefusal(command.Value) ?? TokenRefusal(in command),
        CommandKind.LockAwait => OwnerRefusal(command.Value) ?? TokenRefusal(in command) ?? HoldRefusal(in command),
        CommandKind.LockObserve => ValueRefusal(in command) ?? (command.ComparedRevision < 0 ? Negative("token", command.ComparedRevision) : null) ?? HoldRefusal(in command),
        CommandKind.LockList => command.AtRevision < 0 || command.Number < 0 ? "the cursor of the list is none that a server gave" : ValueRefusal(in command),
        _ => ValueRefusal(in command),
    };

    /// <summary>What is wrong with the token that a write carries; null: nothing, or it carries none.</summary>
    public static string? FenceRefusal(scoped in Command command)
    {
        if (!command.Has(CommandFlags.Fenced))
        {
            return null;
        }

        if (command.FenceToken < 1)
        {
            return string.Create(CultureInfo.InvariantCulture, $"fence token is {command.FenceToken:N0}; it must be 1 or greater");
        }

        if (command.FenceName.IsEmpty || command.FenceName.Length > Limits.KeyBytesMax)
        {
            return string.Create(CultureInfo.InvariantCulture, $"fence resource is {command.FenceName.Length:N0} bytes; it must have 1 to {Limits.KeyBytesMax:N0}");
        }

        if (!Utf8.IsValid(command.FenceName))
        {
            return "fence resource is not valid UTF-8";
        }

        return Routing.KeyRouting.Bucket(command.FenceName).SequenceEqual(Routing.KeyRouting.Bucket(command.Key))
            ? null
            : "fence resource is in another bucket than the key; a write can be fenced by locks of its own bucket, which is the part of the name before the last /";
    }

    private static string? FormRefusal(ReadOnlySpan<byte> value) => LockForm.TryRead(value, out LockForm form) ? FormRefusal(in form) : "the claim is malformed";

    /// <summary>What is wrong with what a claim says; null: nothing.</summary>
    public static string? FormRefusal(scoped in LockForm form)
    {
        if (form.Mode is not (LockMode.Exclusive or LockMode.Shared or LockMode.Permit))
        {
            return string.Create(CultureInfo.InvariantCulture, $"mode is {(byte)form.Mode}; it must be 1 (exclusive), 2 (shared) or 3 (permit)");
        }

        if (form.Mode == LockMode.Permit ? form.Permits is < 1 or > Limits.PermitsMax : form.Permits != 0)
        {
            return form.Mode == LockMode.Permit
                ? string.Create(CultureInfo.InvariantCulture, $"permits is {form.Permits:N0}; it must be 1 to {Limits.PermitsMax:N0}")
                : "permits is no option of a lock; it belongs to a semaphore";
        }

        return form.Note.Length > Limits.NoteBytesMax
            ? string.Create(CultureInfo.InvariantCulture, $"note is {form.Note.Length:N0} bytes; the limit is {Limits.NoteBytesMax:N0}")
            : OwnerRefusal(form.Owner);
    }

    private static string? OwnerRefusal(ReadOnlySpan<byte> owner) =>
        owner.IsEmpty ? string.Create(CultureInfo.InvariantCulture, $"owner is empty; it must have 1 to {Limits.OwnerBytesMax} bytes")
        : owner.Length > Limits.OwnerBytesMax ? string.Create(CultureInfo.InvariantCulture, $"owner is {owner.Length:N0} bytes; the limit is {Limits.OwnerBytesMax}")
        : Utf8.IsValid(owner) ? null : "owner is not valid UTF-8";

    private static string? LeaseRefusal(scoped in Command command) =>
        !command.Has(CommandFlags.Ttl) ? "lease_ms is not set"
        : command.TtlMs is < 1 or > Limits.LeaseMsMax ? string.Create(CultureInfo.InvariantCulture, $"lease_ms is {command.TtlMs:N0}; it must be 1 to {Limits.LeaseMsMax:N0}")
        : null;

    private static string? WaitRefusal(scoped in Command command) =>
        command.Has(CommandFlags.Number) && command.Number is < 1 or > Limits.LockWaitMsMax
            ? string.Create(CultureInfo.InvariantCulture, $"wait_ms is {command.Number:N0}; it must be 1 to {Limits.LockWaitMsMax:N0}, or not set in order not to wait")
            : null;

    private static string? HoldRefusal(scoped in Command command) =>
        !command.Has(CommandFlags.Number) || command.Number is < 0 or > Limits.LockHoldMsMax
            ? string.Create(CultureInfo.InvariantCulture, $"hold_ms is {command.Number:N0}; it must be 0 to {Limits.LockHoldMsMax:N0}")
            : null;

    private static string? TokenRefusal(scoped in Command command) =>
        !command.Has(CommandFlags.IfRevision) ? "token is not set"
        : command.ComparedRevision < 1 ? Negative("token", command.ComparedRevision) : null;

    private static string Negative(string field, long value) => string.Create(CultureInfo.InvariantCulture, $"{field} is {value:N0}; it must be 1 or greater");

    private static string? ValueRefusal(scoped in Command command) =>
        command.Value.IsEmpty ? null : string.Create(CultureInfo.InvariantCulture, $"value is {command.Value.Length:N0} bytes; this operation carries none");
}
