using System.Globalization;
using System.Numerics;

namespace Kahuna.Tests.Linearizability;

/// <summary>
/// The rules of one key once more, written down without any thought of speed, to compare the checker with and to make
/// up histories. Immutable.
/// </summary>
/// <param name="Exists">There is a key.</param>
/// <param name="Value">Its value.</param>
/// <param name="Revision">Goes on counting when there is none.</param>
/// <param name="Lease">The operation that gave it a time to live.</param>
internal sealed record PlainRegister(bool Exists, string? Value, long Revision, HistoryOperation? Lease)
{
    public static PlainRegister Empty { get; } = new(false, null, 0, null);

    public PlainRegister Expired() => new(false, null, Revision + 1, null);

    /// <summary>The register after an operation, and the whole answer.</summary>
    public (PlainRegister After, OperationResult Answer) Apply(HistoryOperation operation)
    {
        OperationArguments asked = operation.Arguments;
        HistoryOperation? lease = asked.TtlMs > 0 ? operation : null;
        switch (operation.Kind)
        {
            case OperationKind.Get:
                return (
                    this,
                    new OperationResult { Affirmed = Exists, HasValue = Exists, Value = Value, Revision = Revision });
            case OperationKind.Exists:
                return (this, new OperationResult { Affirmed = Exists, Revision = Revision });
            case OperationKind.Set:
                return Holds(asked) ? Changed(new PlainRegister(true, asked.Value, Revision + 1, lease)) : Refused();
            case OperationKind.Delete:
                return Exists && Holds(asked) ? Changed(Expired()) : Refused();
            case OperationKind.Extend:
                return Exists && Holds(asked) ? Changed(this with { Lease = lease }) : Refused();
            default:
                return Sum(asked.By) is { } sum && Holds(asked)
                    ? Changed(this with { Exists = true, Value = sum, Revision = Revision + 1 }, sum)
                    : Refused();
        }
    }

    /// <summary>What was recorded leaves room for this answer.</summary>
    public static bool Agrees(HistoryOperation operation, OperationResult recorded, OperationResult answer) =>
        (recorded.Affirmed is null || recorded.Affirmed == answer.Affirmed)
        && (recorded.Revision is null
            || recorded.Revision == answer.Revision
            || (recorded.Revision == 0 && operation.IsRead && answer.Affirmed == false))
        && (!recorded.HasValue || (answer.HasValue && recorded.Value == answer.Value));

    private bool Holds(OperationArguments asked) =>
        !(asked.OnlyIfAbsent && Exists)
        && !(asked.OnlyIfPresent && !Exists)
        && !(asked.OnlyIfValue && !(Exists && asked.ComparedValue == Value))
        && !(asked.OnlyIfRevision is { } revision && !(Exists && revision == Revision));

    private string? Sum(long by)
    {
        string text = !Exists ? "0" : Value ?? "null";
        if (!BigInteger.TryParse(
            text, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out BigInteger before)
            || before.ToString(CultureInfo.InvariantCulture) != text
                || before < long.MinValue
                || before > long.MaxValue)
        {
            return null;
        }

        BigInteger sum = before + by;
        return sum < long.MinValue || sum > long.MaxValue ? null : sum.ToString(CultureInfo.InvariantCulture);
    }

    private static (PlainRegister, OperationResult) Changed(PlainRegister after, string? sum = null) =>
        (after, new OperationResult
        {
            Affirmed = true,
            Revision = after.Revision,
            HasValue = sum is not null,
            Value = sum,
        });

    private (PlainRegister, OperationResult) Refused() =>
        (this, new OperationResult { Affirmed = false, Revision = Exists ? Revision : 0 });
}
