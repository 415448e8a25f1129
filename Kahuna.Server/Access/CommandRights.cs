using Kahuna.Wire.Commands;
using Kahuna.Wire.Routing;

namespace Kahuna.Server.Access;

/// <summary>
/// Which rights a command needs: the one place that says it. Stateless, any thread. Allocates only when it refuses.
/// </summary>
/// <remarks>
/// A write's answer says whether its key existed, so <see cref="Permissions.Write"/> reveals that much. Conditions and
/// the previous value need <see cref="Permissions.Read"/>. The locks of a group are of its durability, and so is the
/// lock of a fence that of its command.
/// </remarks>
internal static class CommandRights
{
    private const CommandFlags ReadsKey = TransactionBody.ConditionFlags | CommandFlags.ReturnPrevious;
    private const string Malformed = "The command is malformed, so no permission is known to allow it.";
    private const string Unknown = "No permission is known that allows this kind of command.";

    /// <summary>
    /// Why the command is not allowed, as a sentence that names the missing permission and the caller's own name of
    /// what it is missing on; null: it is allowed. The command has passed <c>CommandCheck</c>. A kind that is not known
    /// here is refused.
    /// </summary>
    public static string? Refusal(Rights rights, scoped in Command command) =>
        FenceRefusal(rights, in command) ?? command.Kind switch
        {
            CommandKind.Set
                or CommandKind.Delete
                or CommandKind.Extend
                or CommandKind.Increment
                or CommandKind.Get
                or CommandKind.Exists => OnKey(rights, PermissionsOf(in command), in command),
            CommandKind.TransactionHold => OnKey(rights, Permissions.Transaction | Permissions.Read, in command),
            CommandKind.GetMany => ItemsRefusal(rights, Permissions.Read, command.Value),
            CommandKind.KeyRange
                or CommandKind.CutOpen
                or CommandKind.CutConfirm
                or CommandKind.CutEnd => OnRange(rights, Permissions.Read, in command),
            CommandKind.KeyRangeDelete => OnRange(rights, Permissions.Read | Permissions.Write, in command),
            CommandKind.Transaction => TransactionRefusal(rights, command.Value),
            CommandKind.TransactionPrepare => PrepareBody.TryRead(command.Value, out PrepareBody body)
                ? TransactionRefusal(rights, body.Part)
                : Malformed,

            // What allows these is the transaction's id, which is random and which only its coordinator knows. Their
            // key leads to a group and need not be one of the transaction: it may be a fence, or any key of the group.
            CommandKind.TransactionDecide
                or CommandKind.TransactionFinish
                or CommandKind.TransactionForget
                or CommandKind.TransactionRelease => NeededRights.Somewhere(rights, Permissions.Transaction),
            CommandKind.Script => OnBucket(rights, Permissions.Script, in command)
                ?? OnBucket(rights, Permissions.Read | Permissions.Write, in command),
            CommandKind.SequenceCreate
                or CommandKind.SequenceUpdate
                or CommandKind.SequenceDelete
                or CommandKind.SequenceNext
                or CommandKind.SequenceGet => OnName(rights, Permissions.Sequence, in command, "sequence"),
            CommandKind.SequenceList => OnPrefix(rights, Permissions.Sequence, in command, "sequence"),
            CommandKind.LockAcquire
                or CommandKind.LockExtend
                or CommandKind.LockRelease
                or CommandKind.LockGet
                or CommandKind.LockAwait
                or CommandKind.LockObserve => OnName(rights, Permissions.Lock, in command, "lock"),
            CommandKind.LockList => OnPrefix(rights, Permissions.Lock, in command, "lock"),
            _ => Unknown,
        };

    /// <summary>
    /// A refused script may be run as a transaction instead, of which each read and write is checked: its user may run
    /// scripts with its key, but its permissions do not cover the whole bucket. A fence needs the partition.
    /// </summary>
    public static bool MayBeTransaction(Rights rights, scoped in Command command) =>
        command.Kind == CommandKind.Script
        && !command.Has(CommandFlags.Fenced)
        && rights.Covers(Permissions.Script, command.Durability, command.Key);

    /// <summary>
    /// The name that a refused command was refused for: of a command with a list the key of the first item that is not
    /// allowed, else the command's key.
    /// </summary>
    public static ReadOnlySpan<byte> RefusedName(Rights rights, scoped in Command command)
    {
        Permissions wanted = command.Kind == CommandKind.GetMany ? Permissions.Read : Permissions.Transaction;
        ReadOnlySpan<byte> items = command.Kind switch
        {
            CommandKind.GetMany => command.Value,
            CommandKind.Transaction when TransactionBody.TryRead(command.Value, out TransactionBody body) => body.Items,
            CommandKind.TransactionPrepare when PrepareBody.TryRead(command.Value, out PrepareBody prepare)
                && TransactionBody.TryRead(prepare.Part, out TransactionBody part) => part.Items,
            _ => default,
        };
        while (!items.IsEmpty && CommandList.TryTake(ref items, out Command item))
        {
            if (ItemRefusal(rights, wanted, in item) is not null)
            {
                return item.Key;
            }
        }

        return command.Key;
    }

    /// <summary>What a command on one key needs, alone or in a list; nothing for other kinds.</summary>
    private static Permissions PermissionsOf(scoped in Command command) => command.Kind switch
    {
        CommandKind.Get or CommandKind.Exists => Permissions.Read,
        CommandKind.Increment => Permissions.Read | Permissions.Write,
        CommandKind.Set or CommandKind.Delete or CommandKind.Extend =>
            command.Has(ReadsKey) ? Permissions.Read | Permissions.Write : Permissions.Write,
        _ => Permissions.None,
    };

    private static string? FenceRefusal(Rights rights, scoped in Command command) =>
        command.Has(CommandFlags.Fenced)
            ? NeededRights.On(
                rights, Permissions.Lock, command.Durability, "lock", AskedNames.Name(command.FenceName))
            : null;

    private static string? TransactionRefusal(Rights rights, ReadOnlySpan<byte> value) =>
        !TransactionBody.TryRead(value, out TransactionBody body)
            ? Malformed
            : ItemsRefusal(rights, Permissions.Transaction, body.Items);

    /// <summary>
    /// Every item needs what it would need alone, and the permissions that the list needs. An empty list needs these on
    /// some name.
    /// </summary>
    private static string? ItemsRefusal(Rights rights, Permissions wanted, ReadOnlySpan<byte> items)
    {
        while (!items.IsEmpty)
        {
            if (!CommandList.TryTake(ref items, out Command item))
            {
                return Malformed;
            }

            if (ItemRefusal(rights, wanted, in item) is { } refusal)
            {
                return refusal;
            }
        }

        return NeededRights.Somewhere(rights, wanted);
    }

    private static string? ItemRefusal(Rights rights, Permissions wanted, scoped in Command item) =>
        RangeCondition.Is(in item)
            ? OnRangeCondition(rights, wanted | Permissions.Read, in item)
            : PermissionsOf(in item) is not Permissions.None and var own
                ? FenceRefusal(rights, in item) ?? OnKey(rights, wanted | own, in item)
                : Unknown;

    private static string? OnKey(Rights rights, Permissions wanted, scoped in Command command) =>
        OnName(rights, wanted, in command, "key");

    private static string? OnName(Rights rights, Permissions wanted, scoped in Command command, string noun) =>
        NeededRights.On(rights, wanted, command.Durability, noun, AskedNames.Name(command.Key));

    private static string? OnPrefix(Rights rights, Permissions wanted, scoped in Command command, string noun) =>
        NeededRights.On(rights, wanted, command.Durability, noun, AskedNames.Prefix(command.Key));

    private static string? OnBucket(Rights rights, Permissions wanted, scoped in Command command) =>
        NeededRights.OnBucket(rights, wanted, command.Durability, KeyRouting.Bucket(command.Key));

    private static string? OnRange(Rights rights, Permissions wanted, scoped in Command command)
    {
        RangeRequest asked = new(in command);
        if (command.Kind == CommandKind.KeyRange && asked.HasEnd && asked.Start.SequenceEqual(asked.End))
        {
            // It has no names. A watch asks so up to where a partition has changed.
            return NeededRights.Somewhere(rights, wanted);
        }

        return NeededRights.On(
            rights, wanted, command.Durability, "key", AskedNames.Range(asked.Start, asked.End, asked.HasEnd));
    }

    private static string? OnRangeCondition(Rights rights, Permissions wanted, scoped in Command item)
    {
        RangeCondition asked = new(in item);
        return NeededRights.On(
            rights, wanted, item.Durability, "key", AskedNames.Range(asked.Start, asked.End, !asked.End.IsEmpty));
    }
}
