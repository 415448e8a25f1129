using System.Globalization;
using System.Text.Unicode;
using Kahuna.Wire.Commands;

namespace Kahuna.Wire.Checks;

/// <summary>The part of <see cref="TransactionCheck"/> for conditions about ranges. Stateless, any thread.</summary>
internal static class RangeConditionCheck
{
    private const CommandFlags Required = CommandFlags.AtRevision | CommandFlags.Number | CommandFlags.IfRevision;

    /// <summary>Why a range of one partition is refused; null when it is valid.</summary>
    public static string? Refusal(scoped in Command item) =>
        (item.Flags & Required) != Required || item.Number < 0 || item.ComparedRevision < 1
            ? "the range names no partition, or no map of slots"
            : WholeRefusal(in item) ?? CountRefusal(new RangeCondition(in item).Count);

    /// <summary>Why a range is refused that is not divided among the partitions; null when it is valid.</summary>
    public static string? WholeRefusal(scoped in Command item)
    {
        RangeCondition asked = new(in item);
        if (item.Value.Length > 0
            || (item.Flags & ~(Required | CommandFlags.IfValue)) != 0
            || item.AtRevision >> 32 != (long)RangeFlags.CountOnly
            || item.Has(CommandFlags.IfValue) == asked.End.IsEmpty)
        {
            return "the range is malformed";
        }

        if (asked.Count != RangeCondition.AsNamed && CountRefusal(asked.Count) is { } tooMany)
        {
            return tooMany;
        }

        if (asked.Start.Length > Limits.KeyBytesMax || asked.End.Length > Limits.KeyBytesMax + 1)
        {
            return string.Create(
                CultureInfo.InvariantCulture,
                $"a bound of the range is longer than a key, which has at most {Limits.KeyBytesMax:N0} bytes");
        }

        if (!Utf8.IsValid(asked.Start))
        {
            return "the start of the range is not valid UTF-8";
        }

        return !asked.End.IsEmpty && asked.End.SequenceCompareTo(asked.Start) <= 0
            ? "to does not come after from; a range of a transaction has room for a key"
            : null;
    }

    private static string? CountRefusal(long count) =>
        count > Limits.TransactionItemsMax
            ? string.Create(
                CultureInfo.InvariantCulture,
                $"the range must have {count:N0} keys; the limit of a transaction is {Limits.TransactionItemsMax:N0}")
            : null;
}
