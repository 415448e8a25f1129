using System.Globalization;
using System.Text;
using Kahuna.Client.Outcomes;
using Kahuna.Wire;
using Kahuna.Wire.Commands;

namespace Kahuna.Client.Transactions;

/// <summary>
/// The ranges that an interactive transaction has looked at: its commit depends on that no key of them came or went.
/// Owned by one <see cref="TransactionBook"/>; not thread-safe.
/// </summary>
internal sealed class TransactionRanges
{
    private readonly List<TransactionRange> _ranges = [];

    /// <summary>The ranges, in the order in which they were looked at.</summary>
    public IReadOnlyList<TransactionRange> All => _ranges;

    /// <exception cref="KahunaException">InvalidArgument: there are as many as there may be.</exception>
    public void RequireRoom()
    {
        if (_ranges.Count == Limits.TransactionRangesMax)
        {
            throw OperationErrors.BadArgument(string.Create(
                CultureInfo.InvariantCulture,
                $"the transaction has looked at {Limits.TransactionRangesMax:N0} ranges, the limit; nothing was "
                    + $"written"));
        }
    }

    /// <summary>The transaction has looked at a range.</summary>
    public void Add(TransactionRange range)
    {
        if (!_ranges.Exists(other => range.IsSame(other)))
        {
            _ranges.Add(range);
        }
    }

    /// <summary>The ranges as conditions; those about the keys that were read go with them.</summary>
    /// <param name="read">The keys that the commit depends on.</param>
    /// <exception cref="KahunaException">
    /// TransactionConflict: the transaction has found other keys of a range by other reads, before or after it.
    /// </exception>
    public IEnumerable<KeyCondition> ToConditions(IReadOnlyList<TransactionKey> read)
    {
        (byte[] Name, Durability Durability)[] found = _ranges.Count == 0
            ? []
            : [.. read.Where(static key => key.WasFound)
                .Select(static key => (Encoding.UTF8.GetBytes(key.Name), key.Durability))];
        foreach (TransactionRange range in _ranges)
        {
            if (found.Count(key => key.Durability == range.Durability && range.Keys.Contains(key.Name)) != range.Count)
            {
                throw OperationErrors.RangeConflict(range.Name);
            }
        }

        return _ranges.Select(static range => KeyCondition.OfRange(range));
    }
}

/// <summary>A range that a transaction has looked at. Immutable.</summary>
/// <param name="Name">The prefix that the caller gave.</param>
/// <param name="Durability">The durability of its keys.</param>
/// <param name="Keys">The bounds of what was looked at. It has room for a key.</param>
/// <param name="Count">How many keys it had.</param>
internal sealed record TransactionRange(string Name, Durability Durability, KeyRange Keys, int Count)
{
    /// <summary>The other one says the same.</summary>
    public bool IsSame(TransactionRange other) =>
        Durability == other.Durability && Count == other.Count && Keys.IsSame(other.Keys);
}
