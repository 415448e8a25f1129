using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.State.KeyValues;

/// <summary>
/// The decisions about transactions over several partitions that this group keeps. The first decision counts. A
/// transaction that is not known here was never prepared, or is over: it is aborted. Owned by a
/// <see cref="PreparedTransactions"/>; not thread-safe.
/// </summary>
internal sealed class DecisionRecords
{
    /// <summary>Records of a group, about 150 bytes each.</summary>
    public const int RecordsMax = 262_144;

    /// <summary>
    /// Above this, no transaction that is not known is aborted: somebody asks at random, and the room is for those that
    /// are prepared.
    /// </summary>
    public const int UnknownAbortsMax = RecordsMax / 2;

    /// <summary>
    /// A decision is remembered for this long, unless the coordinator says earlier that nobody needs it: ten minutes. A
    /// command lives for less, so that a part that comes late still meets the decision that it is over.
    /// </summary>
    public const long RecordMs = 600_000;

    private readonly KeyStore _store;

    /// <summary>Takes what the store has.</summary>
    public DecisionRecords(KeyStore store)
    {
        _store = store;
        RowSet rows = store.System.Of(SystemRowKind.Decision);
        for (Row row = rows.Next(Row.First); !row.IsNone; row = rows.Next(row.Next))
        {
            Count(DecisionRow.Read(store.Keys.Value(in store.Keys[row])).Decision, 1);
        }
    }

    /// <summary>Transactions that wait for their decision.</summary>
    public int Undecided { get; private set; }

    /// <summary>Decisions that are remembered.</summary>
    public int Decided { get; private set; }

    /// <summary>No further record is taken.</summary>
    public bool IsFull => Undecided + Decided >= RecordsMax;

    /// <summary>There is a record of the transaction.</summary>
    public bool Knows(ReadOnlySpan<byte> id) => !Find(id).IsNone;

    /// <summary>Adds a record.</summary>
    /// <param name="id">The transaction.</param>
    /// <param name="decision">Pending, or Abort of one that is not known.</param>
    /// <param name="anchorKey">The key that leads here.</param>
    /// <param name="participants">How many groups have to carry out the decision.</param>
    /// <param name="list">These groups.</param>
    /// <param name="at">When somebody looks after it.</param>
    public void Create(
        ReadOnlySpan<byte> id,
        TransactionDecision decision,
        ReadOnlySpan<byte> anchorKey,
        int participants,
        ReadOnlySpan<byte> list,
        ClusterTime at)
    {
        Span<byte> name = stackalloc byte[PreparedTransactions.NameBytes];
        PreparedTransactions.Name(SystemRowKind.Decision, id, name);
        ByteBuffer value = ByteBuffer.Rent();
        DecisionRow.Write(value, decision, anchorKey, participants, list);
        Row row = _store.System.Create(SystemRowKind.Decision, name, value.Written);
        _store.System.SetTime(row, at);
        value.Return();
        Count(decision, 1);
    }

    /// <summary>
    /// Decides, unless that was done before. Returns the decision that counts; null: a transaction that is not known
    /// was to be aborted, and there is no room to remember it.
    /// </summary>
    public TransactionDecision? Decide(scoped in Command command, ClusterTime time)
    {
        TransactionDecision wanted = (TransactionDecision)command.Number;
        Row row = Find(command.Value);
        if (row.IsNone)
        {
            if (wanted == TransactionDecision.Abort)
            {
                if (Undecided + Decided >= UnknownAbortsMax)
                {
                    return null;
                }

                // A part that comes late must find that it is over.
                Create(command.Value, TransactionDecision.Abort, command.Key, 0, default, time + RecordMs);
            }

            return TransactionDecision.Abort;
        }

        TransactionDecision decision = DecisionOf(row);
        if (decision != TransactionDecision.Pending)
        {
            return decision;
        }

        _store.System.Open(row)[0] = (byte)wanted;
        _store.System.Close(row);
        _store.System.SetTime(row, time + RecordMs);
        Count(TransactionDecision.Pending, -1);
        Count(wanted, 1);
        return wanted;
    }

    /// <summary>Forgets a decision. False when there is none.</summary>
    public bool Forget(ReadOnlySpan<byte> id)
    {
        Row row = Find(id);
        if (row.IsNone || DecisionOf(row) is var decision && decision == TransactionDecision.Pending)
        {
            return false;
        }

        Count(decision, -1);
        _store.System.Free(row);
        return true;
    }

    private TransactionDecision DecisionOf(Row row) =>
        DecisionRow.Read(_store.Keys.Value(in _store.Keys[row])).Decision;

    private Row Find(ReadOnlySpan<byte> id)
    {
        Span<byte> name = stackalloc byte[PreparedTransactions.NameBytes];
        PreparedTransactions.Name(SystemRowKind.Decision, id, name);
        return _store.System.Find(name);
    }

    private void Count(TransactionDecision decision, int by)
    {
        if (decision == TransactionDecision.Pending)
        {
            Undecided += by;
        }
        else
        {
            Decided += by;
        }
    }
}
