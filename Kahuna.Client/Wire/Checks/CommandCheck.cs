using System.Globalization;
using System.Text;
using System.Text.Unicode;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Scripts;

namespace Kahuna.Wire.Checks;

/// <summary>Validates the meaning of clients' commands; no other place does. Stateless, any thread.</summary>
internal static class CommandCheck
{
    private const CommandFlags Conditions =
        CommandFlags.IfPresent | CommandFlags.IfValue | CommandFlags.IfRevision | CommandFlags.NullCompared;

    /// <summary>
    /// True when the command may be proposed or read. Otherwise returns the status (InvalidArgument or Unimplemented)
    /// and a sentence with field, limit and value. Allocates only when it refuses.
    /// </summary>
    public static bool IsGood(
        scoped in Command command, int valueBytesMax, out OutcomeStatus status, out string? sentence)
    {
        status = OutcomeStatus.InvalidArgument;
        CommandKindRow row = CommandKinds.Of(command.Kind);
        if (!row.Has(CommandTraits.FromClients))
        {
            sentence = KindRefusal(command.Kind);
            return false;
        }

        sentence = DurabilityRefusal(command.Durability)
            ?? KeyRefusal(row, command.Key)
            ?? ((command.Flags & ~row.Flags) != 0 ? FlagRefusal(row, command.Flags & ~row.Flags) : null)
            ?? MeaningRefusal(row.Table, in command, valueBytesMax)
            ?? LockCheck.FenceRefusal(in command)
            ?? SessionRefusal(in command);
        if (sentence is not null)
        {
            return false;
        }

        status = default;
        return true;
    }

    /// <summary>Why an item of a transaction is refused, apart from its flags and its durability.</summary>
    public static string? ItemRefusal(scoped in Command item, int valueBytesMax) =>
        RangeCondition.Is(in item)
            ? RangeConditionCheck.WholeRefusal(in item)
            : KeyRefusal(CommandKinds.Of(item.Kind), item.Key)
                ?? MeaningRefusal(CommandTable.KeyValues, in item, valueBytesMax);

    private static string? MeaningRefusal(CommandTable table, scoped in Command command, int valueBytesMax) =>
        table switch
        {
            CommandTable.Sequences => SequenceCheck.Refusal(in command),
            CommandTable.Locks => LockCheck.Refusal(in command),
            _ when CommandKinds.Has(command.Kind, CommandTraits.IsList) => RangeRefusal(in command),
            _ when command.Kind is CommandKind.TransactionHold or CommandKind.TransactionRelease =>
                HoldCheck.Refusal(in command),
            _ when command.Kind == CommandKind.Script => ScriptBody.Refusal(command.Value),
            _ when CommandKinds.Has(command.Kind, CommandTraits.HasItems) =>
                TransactionCheck.Refusal(in command, valueBytesMax),
            _ when command.Kind is >= CommandKind.TransactionDecide and <= CommandKind.TransactionForget =>
                PrepareCheck.DecisionRefusal(in command),
            _ => ValueRefusal(in command, carriesValue: command.Kind == CommandKind.Set, valueBytesMax)
                ?? ConditionRefusal(in command, valueBytesMax)
                ?? NumberRefusal(in command),
        };

    private static string? RangeRefusal(scoped in Command command)
    {
        RangeRequest asked = new(in command);
        RangeFlags known = command.Kind switch
        {
            CommandKind.CutOpen => RangeFlags.All | RangeFlags.Hold,
            CommandKind.KeyRangeDelete => RangeFlags.AfterStart,
            _ => RangeFlags.All,
        };
        if (command.Value.Length > 0 || command.Partition < 0 || (asked.Flags & ~known) != 0)
        {
            return "the range is malformed";
        }

        bool needsCut = command.Kind is CommandKind.CutConfirm or CommandKind.CutEnd;
        if ((needsCut || command.Has(CommandFlags.IfRevision)) && asked.Cut < 1)
        {
            return "the cut of the range did not come from a server";
        }

        if (command.Has(CommandFlags.Positioned) && command.Has(CommandFlags.IfRevision))
        {
            return "a page of a cut has no position; it shows an earlier moment";
        }

        if (asked.Limit is < 1 or > Limits.RangeKeysMax)
        {
            return string.Create(
                CultureInfo.InvariantCulture, $"limit is {asked.Limit:N0}; it must be 1 to {Limits.RangeKeysMax:N0}");
        }

        if (asked.End.Length > Limits.KeyBytesMax)
        {
            return string.Create(
                CultureInfo.InvariantCulture,
                $"to is {asked.End.Length:N0} bytes; the limit is {Limits.KeyBytesMax:N0}");
        }

        return asked.HasEnd && asked.End.SequenceCompareTo(asked.Start) < 0
            ? "to comes before from; a range ends behind its beginning"
            : null;
    }

    private static string KindRefusal(CommandKind kind) => (byte)kind switch
    {
        0 => "kind is not set; it must name an operation",
        >= 0x40 and <= 0x7F =>
            string.Create(
                CultureInfo.InvariantCulture, $"kind is {(byte)kind}, which only servers use among themselves"),
        _ =>
            string.Create(
                CultureInfo.InvariantCulture,
                $"kind is {(byte)kind}, which is not an operation of wire version {Limits.WireVersion}"),
    };

    private static string? DurabilityRefusal(Durability durability) => durability switch
    {
        Durability.Persistent or Durability.Ephemeral => null,
        0 => "durability is not set; it must be persistent or ephemeral",
        _ =>
            string.Create(
                CultureInfo.InvariantCulture,
                $"durability is {(byte)durability}; it must be 1 (persistent) or 2 (ephemeral)"),
    };

    private static string? KeyRefusal(CommandKindRow row, ReadOnlySpan<byte> key)
    {
        string field = row.KeyField;
        if (key.IsEmpty)
        {
            return row.Has(CommandTraits.IsList) ? null : $"{field} is empty; it must have 1 to 1,024 bytes";
        }

        if (key.Length > Limits.KeyBytesMax)
        {
            return string.Create(
                CultureInfo.InvariantCulture,
                $"{field} is {key.Length:N0} bytes; the limit is {Limits.KeyBytesMax:N0}");
        }

        if (!Utf8.IsValid(key))
        {
            return string.Create(
                CultureInfo.InvariantCulture,
                $"{field} is not valid UTF-8: the byte at offset {FirstInvalidOffset(key):N0} starts no character");
        }

        return key.StartsWith(Limits.ReservedPrefix)
            ? $"{field} begins with __kahuna, which is reserved for the system"
            : null;
    }

    private static int FirstInvalidOffset(ReadOnlySpan<byte> key)
    {
        int at = 0;
        while (at < key.Length
            && Rune.DecodeFromUtf8(key[at..], out _, out int taken) == System.Buffers.OperationStatus.Done)
        {
            at += taken;
        }

        return at;
    }

    private static string FlagRefusal(CommandKindRow row, CommandFlags refused)
    {
        if ((refused & CommandFlags.IfAbsent) != 0
            && row.Kind is CommandKind.Delete or CommandKind.Extend or CommandKind.Increment)
        {
            return row.Kind == CommandKind.Increment
                ? "if_absent is not an option of increment; set with if_absent creates a key"
                : $"if_absent contradicts {row.Name}: it acts only on a key that exists";
        }

        uint lowest = (uint)refused & (uint)-(int)refused;
        string option = (CommandFlags)lowest switch
        {
            CommandFlags.IfAbsent => "if_absent",
            CommandFlags.IfPresent => "if_present",
            CommandFlags.IfValue => "if_value",
            CommandFlags.IfRevision => "if_revision",
            CommandFlags.Ttl => "ttl_ms",
            CommandFlags.AtRevision => "at_revision",
            CommandFlags.Number => "amount",
            CommandFlags.WithoutHistory => "without_history",
            CommandFlags.ReturnPrevious => "return_previous",
            CommandFlags.NullValue => "value",
            CommandFlags.NullCompared => "if_value",
            CommandFlags.Session or CommandFlags.Opening => "session",
            CommandFlags.Keyed => "keyed",
            CommandFlags.Fenced => "fence",
            CommandFlags.Positioned => "with_position",
            _ => string.Create(CultureInfo.InvariantCulture, $"flag {lowest}"),
        };
        return $"{option} is not an option of {row.Name}";
    }

    private static string? ValueRefusal(scoped in Command command, bool carriesValue, int valueBytesMax)
    {
        int length = command.Value.Length;
        if (length == 0)
        {
            return null;
        }

        if (!carriesValue)
        {
            return string.Create(CultureInfo.InvariantCulture, $"value is {length:N0} bytes; only set carries a value");
        }

        if (length > valueBytesMax)
        {
            return string.Create(
                CultureInfo.InvariantCulture, $"value is {length:N0} bytes; the limit is {valueBytesMax:N0}");
        }

        return command.Has(CommandFlags.NullValue)
            ? string.Create(CultureInfo.InvariantCulture, $"value is declared null but has {length:N0} bytes")
            : null;
    }

    private static string? ConditionRefusal(scoped in Command command, int valueBytesMax)
    {
        const CommandFlags Any = Conditions | CommandFlags.IfAbsent;
        int compared = command.ComparedValue.Length;
        if ((command.Flags & Any) == 0 && compared == 0)
        {
            return null;
        }

        if (command.Has(CommandFlags.IfAbsent) && command.Has(Conditions))
        {
            return command.Has(CommandFlags.IfPresent) ? "if_absent and if_present contradict each other"
                : command.Has(CommandFlags.IfRevision) ? "if_absent and if_revision contradict each other"
                : "if_absent and if_value contradict each other";
        }

        if (command.Has(CommandFlags.IfRevision) && command.ComparedRevision < 1)
        {
            return string.Create(
                CultureInfo.InvariantCulture, $"if_revision is {command.ComparedRevision:N0}; it must be 1 or greater");
        }

        if (!command.Has(CommandFlags.IfValue) && (compared > 0 || command.Has(CommandFlags.NullCompared)))
        {
            return "if_value is carried, but its condition is not set";
        }

        if (compared > valueBytesMax)
        {
            return string.Create(
                CultureInfo.InvariantCulture, $"if_value is {compared:N0} bytes; the limit is {valueBytesMax:N0}");
        }

        return compared > 0 && command.Has(CommandFlags.NullCompared)
            ? string.Create(CultureInfo.InvariantCulture, $"if_value is declared null but has {compared:N0} bytes")
            : null;
    }

    private static string? NumberRefusal(scoped in Command command)
    {
        if (command.Kind == CommandKind.Extend && !command.Has(CommandFlags.Ttl))
        {
            return "ttl_ms is not set; extend needs it (0 removes the time to live)";
        }

        if (command.Kind == CommandKind.Increment && !command.Has(CommandFlags.Number))
        {
            return "amount is not set; increment needs it";
        }

        if (command.Has(CommandFlags.Ttl))
        {
            int least = command.Kind == CommandKind.Extend ? 0 : 1;
            if (command.TtlMs < least || command.TtlMs > Limits.TtlMsMax)
            {
                return string.Create(
                    CultureInfo.InvariantCulture,
                    $"ttl_ms is {command.TtlMs:N0}; it must be {least} to {Limits.TtlMsMax:N0}");
            }
        }

        return command.Has(CommandFlags.AtRevision) && command.AtRevision < 1
            ? string.Create(
                CultureInfo.InvariantCulture, $"at_revision is {command.AtRevision:N0}; it must be 1 or greater")
            : null;
    }

    private static string? SessionRefusal(scoped in Command command)
    {
        if (!command.Has(CommandFlags.Session))
        {
            return command.Has(CommandFlags.Opening) ? "opening is set, but no session is named" : null;
        }

        if (command.Sequence == 0)
        {
            return "sequence is 0; a session numbers its commands from 1 on";
        }

        if (command.Sequence > long.MaxValue)
        {
            return string.Create(
                CultureInfo.InvariantCulture, $"sequence is {command.Sequence:N0}; the greatest is {long.MaxValue:N0}");
        }

        if (command.Lag >= Limits.SessionWindow)
        {
            return string.Create(
                CultureInfo.InvariantCulture,
                $"sequence is {command.Lag:N0} above the lowest that is not confirmed; the limit is "
                    + $"{Limits.SessionWindow - 1:N0}");
        }

        if (command.Epoch != 0 && command.Durability != Durability.Ephemeral)
        {
            return "epoch is set; only ephemeral keys have one";
        }

        return command.Lag >= command.Sequence ? "sequence is not above the number that it confirms" : null;
    }
}

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
                + "which is the part of the name before the last / (the whole name when there is none)";
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

/// <summary>The part of <see cref="CommandCheck"/> for sequences. Stateless, any thread.</summary>
internal static class SequenceCheck
{
    /// <summary>Why the command is refused, apart from its name and flags; null when it is valid.</summary>
    public static string? Refusal(scoped in Command command)
    {
        if (command.Durability == Durability.Ephemeral)
        {
            return "durability is ephemeral; sequences are persistent only";
        }

        if (command.Kind == CommandKind.SequenceNext)
        {
            return CountRefusal(in command);
        }

        if (command.Kind == CommandKind.SequenceList)
        {
            return command.Cursor < 0 || command.Partition < 0
                ? "the cursor of the list did not come from a server"
                : ValueRefusal(in command, 0);
        }

        if (command.Kind is not (CommandKind.SequenceCreate or CommandKind.SequenceUpdate))
        {
            return ValueRefusal(in command, 0);
        }

        if (command.Value.Length != SequenceBody.Bytes || !SequenceBody.TryRead(command.Value, out SequenceBody body))
        {
            return "the definition of the sequence is malformed";
        }

        if (command.Kind == CommandKind.SequenceCreate)
        {
            return body.Mask != 0 ? "the definition of the sequence is malformed" : body.Refusal();
        }

        if (body.Mask == 0)
        {
            return "nothing is changed; give increment, min, max or cycle";
        }

        if ((body.Mask & SequenceBody.ChangesIncrement) != 0 && body.Increment == 0)
        {
            return "increment is 0; a sequence must move";
        }

        const byte Both = SequenceBody.ChangesMin | SequenceBody.ChangesMax;
        return (body.Mask & Both) == Both && body.Min > body.Max
            ? string.Create(CultureInfo.InvariantCulture, $"min is {body.Min}, which is above max, {body.Max}")
            : null;
    }

    private static string? CountRefusal(scoped in Command command)
    {
        if (!command.Has(CommandFlags.Number))
        {
            return "count is not set; it must be 1 or greater";
        }

        if (command.Count < 1)
        {
            return string.Create(CultureInfo.InvariantCulture, $"count is {command.Count}; it must be 1 or greater");
        }

        return command.Has(CommandFlags.Keyed) && !command.Has(CommandFlags.Session)
            ? "keyed is set, but no key is given"
            : ValueRefusal(in command, 0);
    }

    private static string? ValueRefusal(scoped in Command command, int bytes) =>
        command.Value.Length == bytes
            ? null
            : string.Create(
                CultureInfo.InvariantCulture, $"value is {command.Value.Length:N0} bytes; this operation carries none");
}
