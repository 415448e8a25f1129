using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.State.KeyValues;

/// <summary>
/// The transactions over several partitions that somebody has to settle: parts whose deadline has passed, and decisions
/// that were not made, or not forgotten, in time. Owned by a <see cref="PreparedTransactions"/>; not thread-safe.
/// </summary>
internal sealed class OverdueTransactions(KeyStore store)
{
    private readonly List<Row> _late = [];

    /// <summary>True when a transaction's time has passed.</summary>
    public bool HasLate(ClusterTime now) =>
        store.Heaps[RowHeap.PreparedParts].AnyPassed(now) || store.Heaps[RowHeap.Decisions].AnyPassed(now);

    /// <summary>
    /// Adds transactions whose time has passed, in no order: up to <paramref name="most"/> behind those that are
    /// skipped.
    /// </summary>
    public void TakeLate(ClusterTime now, int skipped, int most, List<LateTransaction> target)
    {
        _late.Clear();
        store.Heaps[RowHeap.PreparedParts].CollectPassed(now, skipped + most, _late);
        int parts = _late.Count;
        store.Heaps[RowHeap.Decisions].CollectPassed(now, skipped + most, _late);
        for (int i = skipped; i < Math.Min(_late.Count, skipped + most); i++)
        {
            ref readonly KeyEntry entry = ref store.Keys[_late[i]];
            TransactionId id = TransactionId.Read(store.Keys.Key(in entry)[SystemRowKind.PrefixBytes..]);
            target.Add(i < parts
                ? LateTransaction.OfPart(id, store.Keys.Value(in entry))
                : LateTransaction.OfRecord(id, store.Keys.Value(in entry)));
        }
    }
}
