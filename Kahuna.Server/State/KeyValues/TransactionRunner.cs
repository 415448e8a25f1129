using Kahuna.Server.Primitives;
using Kahuna.Server.State.Dispatch;
using Kahuna.Server.State.Rows;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.State.KeyValues;

/// <summary>
/// Carries out transactions whose keys lie in this partition: all operations of a list, or none. What could fail is
/// looked at before anything is changed. Owned by one <see cref="KeyValueTable"/>; not thread-safe.
/// </summary>
internal sealed class TransactionRunner(KeyStore store, KeyValueTable table) : IOutcomeMemory
{
    private readonly RangeCounter _ranges = new(store);
    private CommandAnswer? _item;

    /// <inheritdoc cref="RangeCounter.Expiring"/>
    public IReadOnlyList<Row> ExpiringInRanges => _ranges.Expiring;

    /// <summary>Carries out a transaction.</summary>
    public void Apply(scoped in Command command, ClusterTime time, CommandAnswer answer)
    {
        bool decodes = TransactionBody.TryRead(command.Value, out TransactionBody body);
        InvariantException.Require(decodes, "a transaction that passed the door decodes");
        if (!TryCountRanges(in body, time))
        {
            answer.Give(new Outcome(OutcomeStatus.RangeTooLarge));
            return;
        }

        ByteBuffer? outcomes = answer.IsWanted ? ByteBuffer.Rent() : null;
        ReadOnlySpan<byte> items = body.Items;
        bool holds = Compare(ref items, in body, time, outcomes);
        if (!holds)
        {
            Skip(ref items, body.Then);
        }

        int count = holds ? body.Then : body.Else;
        Outcome refusal = Foresee(items, count, time, out _);
        if (refusal.Status == OutcomeStatus.Applied)
        {
            Execute(items, count, time, outcomes);
        }

        if (outcomes is null)
        {
            return;
        }

        if (refusal.Status != OutcomeStatus.Applied)
        {
            answer.Give(in refusal);
        }
        else
        {
            answer.Give(new Outcome(holds ? OutcomeStatus.Applied : OutcomeStatus.ConditionFailed, 0, count)
            {
                HasValue = true,
                Value = outcomes.Written,
            });
        }

        outcomes.Return();
    }

    /// <summary>Reads several keys of one state.</summary>
    public static void ReadMany(
        KeyStore store, scoped in Command command, ClusterTime time, ClusterTime now, ByteBuffer outcome)
    {
        // Before any is copied: a small request must not cost the copies of large values that are then refused.
        long bytes = 0;
        ReadOnlySpan<byte> items = command.Value;
        while (CommandList.TryTake(ref items, out Command item))
        {
            bytes += item.Kind == CommandKind.Get
                ? AnsweredBytes(store, in item, store.Keys.Find(item.Key, store.Keys.HashOf(item.Key)))
                : 0;
        }

        if (bytes > Limits.TransactionBytesMax)
        {
            new Outcome(OutcomeStatus.ReplyTooLarge, 0, bytes).Write(outcome);
            return;
        }

        ByteBuffer outcomes = ByteBuffer.Rent();
        items = command.Value;
        int count = 0;
        while (CommandList.TryTake(ref items, out Command item))
        {
            Read(store, in item, time, now, outcomes);
            count++;
        }

        new Outcome(OutcomeStatus.Found, 0, count) { HasValue = true, Value = outcomes.Written }.Write(outcome);
        outcomes.Return();
    }

    /// <summary>An item's outcome is remembered as a part of the transaction's.</summary>
    void IOutcomeMemory.Remember(scoped in Outcome outcome) =>
        throw new InvariantException("Invariant broken: an item of a transaction has no number of its own.");

    /// <inheritdoc cref="RangeCounter.TryCount"/>
    public bool TryCountRanges(scoped in TransactionBody body, ClusterTime time) => _ranges.TryCount(in body, time);

    /// <inheritdoc cref="RangeCounter.RowsOf"/>
    public int RangeRowsOf(scoped in TransactionBody body) => _ranges.RowsOf(in body);

    /// <summary>
    /// Looks at the conditions of a prepared part, whose ranges were counted, and at how each of its lists would end.
    /// </summary>
    /// <param name="body">The part.</param>
    /// <param name="time">Cluster time of the entry.</param>
    /// <param name="outcomes">Takes the outcomes of the conditions; null: nobody asks for them.</param>
    public PrepareVote Vote(scoped in TransactionBody body, ClusterTime time, ByteBuffer? outcomes)
    {
        ReadOnlySpan<byte> items = body.Items;
        bool holds = Compare(ref items, in body, time, outcomes);
        ListForecast then = Forecast(items, body.Then, time);
        Skip(ref items, body.Then);
        return new PrepareVote(holds, then, Forecast(items, body.Else, time));
    }

    /// <summary>Carries out a list of a prepared part, whose keys nobody has changed since.</summary>
    /// <param name="body">The part.</param>
    /// <param name="isThen">The first list; otherwise the second one.</param>
    /// <param name="time">Cluster time of the entry.</param>
    /// <param name="outcomes">Takes the outcomes; null: nobody asks for them.</param>
    /// <returns>Operations that were carried out.</returns>
    public int CarryOut(scoped in TransactionBody body, bool isThen, ClusterTime time, ByteBuffer? outcomes)
    {
        ReadOnlySpan<byte> items = body.Items;
        Skip(ref items, body.Conditions + (isThen ? 0 : body.Then));
        int count = isThen ? body.Then : body.Else;
        Execute(items, count, time, outcomes);
        return count;
    }

    private ListForecast Forecast(ReadOnlySpan<byte> items, int count, ClusterTime time)
    {
        Outcome outcome = Foresee(items, count, time, out long bytes);
        return new ListForecast(
            outcome.Status,
            outcome.Status is OutcomeStatus.NotAnInteger or OutcomeStatus.Overflow ? (uint)outcome.Number : 0,
            (uint)Math.Min(bytes, uint.MaxValue));
    }

    /// <summary>True when all conditions hold. Takes them off the items.</summary>
    private bool Compare(
        ref ReadOnlySpan<byte> items, scoped in TransactionBody body, ClusterTime time, ByteBuffer? outcomes)
    {
        bool all = true;
        int keys = body.Conditions - body.Ranges;
        for (int i = 0; i < body.Conditions; i++)
        {
            Command item = Take(ref items);
            Outcome outcome = i < keys ? CompareKey(in item, time) : CompareRange(in item);
            all &= outcome.Status == OutcomeStatus.Applied;
            if (outcomes is not null)
            {
                int at = OutcomeList.Begin(outcomes);
                outcome.Write(outcomes);
                OutcomeList.End(outcomes, at);
            }
        }

        return all;
    }

    /// <summary>Whether a condition about a key holds. The revision is the key's, 0 when it is absent.</summary>
    private Outcome CompareKey(scoped in Command item, ClusterTime time)
    {
        Row key = FindAt(in item, time, out _);
        Revision revision = store.Exists(key) ? store.Keys[key].Revision : Revision.None;
        return new Outcome(StatusOf(KeyConditions.Hold(store, in item, key)), revision.Value);
    }

    /// <summary>Whether a range has as many keys as it must. The number says how many it has.</summary>
    private Outcome CompareRange(scoped in Command item)
    {
        int count = _ranges.Take();
        return new Outcome(StatusOf(count == new RangeCondition(in item).Count), 0, count);
    }

    private static OutcomeStatus StatusOf(bool holds) =>
        holds ? OutcomeStatus.Applied : OutcomeStatus.ConditionFailed;

    /// <summary>
    /// Whether all operations can be carried out: Applied, or why not; the number is then the operation's, from 0 on,
    /// or the size of the answer.
    /// </summary>
    private Outcome Foresee(ReadOnlySpan<byte> items, int count, ClusterTime time, out long bytes)
    {
        bytes = 0;
        for (int i = 0; i < count; i++)
        {
            Command item = Take(ref items);
            Row key = FindAt(in item, time, out _);
            if (item.Kind == CommandKind.Increment
                && table.TryAdd(key, item.Number, out _) is var status and not OutcomeStatus.Applied)
            {
                return new Outcome(status, 0, i);
            }

            if (item.Kind == CommandKind.Get || item.Has(CommandFlags.ReturnPrevious))
            {
                bytes += AnsweredBytes(store, in item, key);
            }
        }

        return bytes <= Limits.TransactionBytesMax
            ? new Outcome(OutcomeStatus.Applied)
            : new Outcome(OutcomeStatus.ReplyTooLarge, 0, bytes);
    }

    /// <summary>At most: the length of the value that the item's outcome carries.</summary>
    private static long AnsweredBytes(KeyStore store, scoped in Command item, Row key)
    {
        if (key.IsNone)
        {
            return 0;
        }

        ref readonly KeyEntry entry = ref store.Keys[key];
        long bytes = entry.ValueLength;
        if (item.Has(CommandFlags.AtRevision)
            && store.History.Find(in entry, new Revision(item.AtRevision)) is var index and not 0)
        {
            bytes = Math.Max(bytes, store.History[index].ValueLength);
        }

        return bytes;
    }

    private void Execute(ReadOnlySpan<byte> items, int count, ClusterTime time, ByteBuffer? outcomes)
    {
        _item ??= new CommandAnswer(this);
        store.Changes.BeginTransaction();
        for (int i = 0; i < count; i++)
        {
            // As before each command, so that many writes at once do not outrun what forgets.
            store.DropOld(time);
            Command item = Take(ref items);
            if (item.IsRead)
            {
                if (outcomes is not null)
                {
                    Read(store, in item, time, time, outcomes);
                }

                continue;
            }

            _item.Begin(outcomes);
            int at = outcomes is null ? 0 : OutcomeList.Begin(outcomes);
            table.ApplyToKey(in item, time, store.Keys.HashOf(item.Key), _item);
            if (outcomes is not null)
            {
                OutcomeList.End(outcomes, at);
            }
        }

        store.Changes.EndTransaction();
    }

    private static void Read(
        KeyStore store, scoped in Command item, ClusterTime time, ClusterTime now, ByteBuffer outcomes)
    {
        int at = OutcomeList.Begin(outcomes);
        KeyReader.Read(store, in item, time, now, outcomes, default);
        OutcomeList.End(outcomes, at);
    }

    /// <summary>The row of the item's key, after what time has done to it.</summary>
    private Row FindAt(scoped in Command item, ClusterTime time, out uint hash)
    {
        hash = store.Keys.HashOf(item.Key);
        Row key = store.Keys.Find(item.Key, hash);
        if (!key.IsNone)
        {
            store.Expire(key, time);
        }

        return key;
    }

    private static Command Take(ref ReadOnlySpan<byte> items)
    {
        bool decodes = CommandList.TryTake(ref items, out Command item);
        InvariantException.Require(decodes, "the items of a transaction that passed the door decode");
        return item;
    }

    private static void Skip(ref ReadOnlySpan<byte> items, int count)
    {
        for (int i = 0; i < count; i++)
        {
            Take(ref items);
        }
    }
}
