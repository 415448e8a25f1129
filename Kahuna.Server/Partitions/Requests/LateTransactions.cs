using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.KeyValues;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// Hands transactions over several partitions to the settler when their time has passed: those of which this group has
/// a part or the decision. Owned by a group's <see cref="Housekeeping"/>; not thread-safe.
/// </summary>
internal sealed class LateTransactions(GroupId group, AppliedState applied, ITransactionSettler? settler)
{
    /// <summary>They are looked for this often.</summary>
    private const long PauseMs = 1_000;

    /// <summary>So many are told at a time, each time others: some may have to wait for a partition without a
    /// leader.</summary>
    private const int AtATime = 256;

    private readonly List<LateTransaction> _late = [];
    private NodeTime _looked;
    private int _next;

    /// <summary>A tick.</summary>
    public void Tick(NodeTime now, ClusterTime clusterNow)
    {
        OverdueTransactions overdue = applied.State.KeyValues.Prepared.Overdue;
        if (settler is null || now - _looked < PauseMs || !overdue.HasLate(clusterNow))
        {
            return;
        }

        _looked = now;
        _late.Clear();
        overdue.TakeLate(clusterNow, _next, AtATime, _late);
        _next = _late.Count < AtATime ? 0 : _next + AtATime;
        foreach (LateTransaction late in _late)
        {
            settler.Settle(late, group.IsEphemeral ? Durability.Ephemeral : Durability.Persistent);
        }
    }
}
