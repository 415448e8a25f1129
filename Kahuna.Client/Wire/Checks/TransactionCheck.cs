using System.Globalization;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Routing;

namespace Kahuna.Wire.Checks;

/// <summary>The part of <see cref="CommandCheck"/> for commands that have items. Stateless, any thread.</summary>
internal static class TransactionCheck
{
    /// <summary>Part of the sentence with which a node refuses keys of several partitions.</summary>
    public const string DifferentPartitions = "lie in different partitions";

    /// <summary>The sentence for a list with a key that it names before.</summary>
    public const string NamedTwice =
        "the same key is named twice; an atomic batch or a transaction takes each key once";

    private const string Malformed = "the transaction is malformed";

    /// <summary>Why items of this size are refused; null when they are within the limit.</summary>
    public static string? SizeRefusal(int bytes) => bytes <= Limits.TransactionBytesMax
        ? null
        : string.Create(
            CultureInfo.InvariantCulture,
            $"the items have {bytes:N0} bytes together; the limit is {Limits.TransactionBytesMax:N0}");

    /// <summary>Why a list of this length is refused; null when it is within the limit.</summary>
    public static string? CountRefusal(int count) => count <= Limits.TransactionItemsMax
        ? null
        : TooMany("items", count.ToString("N0", CultureInfo.InvariantCulture));

    /// <summary>Why this number of ranges is refused; null when it is within the limit.</summary>
    public static string? RangeCountRefusal(int count) => count <= Limits.TransactionRangesMax
        ? null
        : string.Create(
            CultureInfo.InvariantCulture,
            $"the transaction depends on {count:N0} ranges; the limit is {Limits.TransactionRangesMax:N0}");

    /// <summary>Why the command is refused, apart from its name and flags; null when it is valid.</summary>
    public static string? Refusal(scoped in Command command, int valueBytesMax)
    {
        if ((SizeRefusal(command.Value.Length) ?? HoldCheck.HolderRefusal(in command)) is { } wrong)
        {
            return wrong;
        }

        ReadOnlySpan<byte> items = command.Value;
        TransactionBody body = default;
        bool isAnchor = false;
        if (command.Kind != CommandKind.GetMany)
        {
            ReadOnlySpan<byte> part = command.Value;
            if (command.Kind == CommandKind.TransactionPrepare)
            {
                if (PrepareCheck.Refusal(in command, out PrepareBody prepare) is { } malformed)
                {
                    return malformed;
                }

                part = prepare.Part;
                isAnchor = prepare.Has(PrepareFlags.Anchor);
            }

            if (!TransactionBody.TryRead(part, out body))
            {
                return Malformed;
            }

            items = body.Items;
            if (!isAnchor && !IsFirst(in command, items))
            {
                return Malformed;
            }
        }

        ItemCounter counter = new(command.Durability, valueBytesMax);
        string? refusal = command.Kind == CommandKind.GetMany
            ? GetManyRefusal(in command, ref items, in counter)
            : ListRefusal("condition", body.Conditions - body.Ranges, ref items, in counter)
                ?? RangesRefusal(in body, ref items, in counter)
                ?? ListRefusal("operation", body.Then, ref items, in counter)
                ?? ListRefusal("operation", body.Else, ref items, in counter)
                ?? (body.Then + body.Else == 0 && command.Kind == CommandKind.Transaction
                    ? "the transaction has no operations"
                    : null);
        return refusal ?? (items.IsEmpty ? null : Malformed);
    }

    private static string? GetManyRefusal(
        scoped in Command command, ref ReadOnlySpan<byte> items, in ItemCounter counter)
    {
        if (!IsFirst(in command, items))
        {
            return Malformed;
        }

        int count = 0;
        while (!items.IsEmpty)
        {
            if (++count > Limits.TransactionItemsMax)
            {
                return TooMany("items", "more");
            }

            if (!CommandList.TryTake(ref items, out Command item))
            {
                return Malformed;
            }

            string? refusal = item.Kind is CommandKind.Get or CommandKind.Exists
                ? counter.Refusal("item", count, in item, CommandFlags.AtRevision)
                : "an atomic batch of reads has only get and exists";
            if (refusal is not null)
            {
                return refusal;
            }
        }

        return null;
    }

    private static string? ListRefusal(
        string noun, int count, ref ReadOnlySpan<byte> items, in ItemCounter counter)
    {
        if (count > Limits.TransactionItemsMax)
        {
            return TooMany(noun + "s", count.ToString("N0", CultureInfo.InvariantCulture));
        }

        bool isCondition = noun[0] == 'c';
        Span<ulong> hashes = isCondition ? default : stackalloc ulong[count];
        for (int i = 0; i < count; i++)
        {
            if (!CommandList.TryTake(ref items, out Command item))
            {
                return Malformed;
            }

            string? refusal = isCondition
                ? ConditionRefusal(i + 1, in item, in counter)
                : counter.Refusal(noun, i + 1, in item, FlagsOf(item.Kind));
            if (refusal is not null)
            {
                return refusal;
            }

            if (!isCondition)
            {
                hashes[i] = XxHash64.Hash(item.Key, 0);
            }
        }

        hashes.Sort();
        for (int i = 1; i < hashes.Length; i++)
        {
            if (hashes[i] == hashes[i - 1])
            {
                return NamedTwice;
            }
        }

        return null;
    }

    /// <summary>Looks at the conditions about ranges, which come behind those about keys.</summary>
    private static string? RangesRefusal(
        scoped in TransactionBody body, ref ReadOnlySpan<byte> items, in ItemCounter counter)
    {
        if ((RangeCountRefusal(body.Ranges) ?? CountRefusal(body.Conditions)) is { } tooMany)
        {
            return tooMany;
        }

        for (int i = body.Conditions - body.Ranges; i < body.Conditions; i++)
        {
            if (!CommandList.TryTake(ref items, out Command item))
            {
                return Malformed;
            }

            if (counter.RangeRefusal(i + 1, in item) is { } refusal)
            {
                return refusal;
            }
        }

        return null;
    }

    private static string? ConditionRefusal(int number, scoped in Command item, in ItemCounter counter) =>
        item.Kind != CommandKind.Exists || (item.Flags & TransactionBody.ConditionFlags) == 0
            ? Malformed
            : counter.Refusal("condition", number, in item, TransactionBody.ConditionFlags);

    /// <summary>The flags that an operation may have; none for kinds that are no operation of a transaction.</summary>
    private static CommandFlags? FlagsOf(CommandKind kind) => kind switch
    {
        CommandKind.Get or CommandKind.Exists => CommandFlags.AtRevision,
        CommandKind.Set => CommandFlags.Ttl
            | CommandFlags.WithoutHistory
            | CommandFlags.ReturnPrevious
            | CommandFlags.NullValue,
        CommandKind.Delete => CommandFlags.WithoutHistory | CommandFlags.ReturnPrevious,
        CommandKind.Extend => CommandFlags.Ttl,
        CommandKind.Increment => CommandFlags.Number | CommandFlags.WithoutHistory,
        _ => null,
    };

    /// <summary>
    /// The command is routed by the key of its first item. A range names its partition itself; any key of that one
    /// leads there.
    /// </summary>
    private static bool IsFirst(scoped in Command command, ReadOnlySpan<byte> items) =>
        CommandList.TryTake(ref items, out Command first)
            && (RangeCondition.Is(in first) || first.Key.SequenceEqual(command.Key));

    private static string TooMany(string what, string count) => string.Create(
        CultureInfo.InvariantCulture,
        $"{count} {what} are given; the limit of an atomic batch or a transaction is {Limits.TransactionItemsMax:N0}");

    /// <summary>Checks one item after the other. Used by one check.</summary>
    private readonly ref struct ItemCounter(Durability durability, int valueBytesMax)
    {
        private const string OtherDurability =
            "its durability is another one; all keys of a transaction have the same";

        /// <summary>Why the condition about a range is refused; null when it is valid.</summary>
        public string? RangeRefusal(int number, scoped in Command item)
        {
            string? refusal = !RangeCondition.Is(in item) ? Malformed
                : item.Durability != durability ? OtherDurability
                : RangeConditionCheck.Refusal(in item);
            return refusal is null
                ? null
                : string.Create(CultureInfo.InvariantCulture, $"condition {number:N0}: {refusal}");
        }

        /// <summary>Why the item is refused; null when it is valid.</summary>
        public string? Refusal(string noun, int number, scoped in Command item, CommandFlags? flags)
        {
            string? refusal = flags is not { } allowed
                ? "it is no operation of a transaction"
                : (item.Flags & ~allowed) != 0
                ? "it has an option that it cannot have inside of a transaction"
                : item.Durability != durability
                ? OtherDurability
                : CommandCheck.ItemRefusal(in item, valueBytesMax);
            return refusal is null
                ? null
                : string.Create(CultureInfo.InvariantCulture, $"{noun} {number:N0}: {refusal}");
        }
    }
}
