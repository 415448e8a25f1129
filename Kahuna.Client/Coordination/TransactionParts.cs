using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Routing;

namespace Kahuna.Client.Coordination;

/// <summary>
/// The parts of a transaction, in the order of their first items, and which of them keeps the decision. Owned by one
/// call; not thread-safe.
/// </summary>
internal sealed class TransactionParts
{
    private readonly Dictionary<(int Partition, Durability Durability), TransactionPart> _byGroup = [];
    private readonly List<TransactionPart> _all = [];
    private readonly HashSet<(int List, Durability Durability, ulong Hash)> _named = [];
    private TransactionPart? _anchor;

    private TransactionParts()
    {
    }

    /// <summary>A list of operations names a key twice.</summary>
    public bool NamesTwice { get; private set; }

    /// <summary>The items of the longest list.</summary>
    public int CountMax { get; private set; }

    /// <summary>The parts that have items.</summary>
    public IReadOnlyList<TransactionPart> All => _all;

    /// <summary>
    /// The part whose group keeps the decision: the first one of persistent keys. When all keys are ephemeral, it is a
    /// part without items in the partition of the first key, since ephemeral groups keep nothing for good.
    /// </summary>
    public TransactionPart Anchor => _anchor!;

    /// <summary>The parts that are prepared: those that have items, and the anchor.</summary>
    public IEnumerable<TransactionPart> Prepared => _anchor!.IsEmpty ? _all.Append(_anchor) : _all;

    /// <summary>Splits a <see cref="TransactionBody"/>.</summary>
    public static TransactionParts OfTransaction(ReadOnlyMemory<byte> body, SlotMap slots)
    {
        if (!TransactionBody.TryRead(body.Span, out TransactionBody header))
        {
            throw new InvalidOperationException("The transaction has no header.");
        }

        TransactionParts parts = new();
        ReadOnlyMemory<byte> rest = body[TransactionBody.HeaderBytes..];
        parts.Take(ref rest, 0, header.Conditions, slots);
        parts.Take(ref rest, 1, header.Then, slots);
        parts.Take(ref rest, 2, header.Else, slots);
        return parts.WithAnchor(slots);
    }

    /// <summary>Splits a <see cref="CommandList"/> of reads.</summary>
    public static TransactionParts OfReads(ReadOnlyMemory<byte> items, SlotMap slots)
    {
        TransactionParts parts = new();
        parts.Take(ref items, 1, int.MaxValue, slots);
        return parts.WithAnchor(slots);
    }

    /// <summary>
    /// True when all items are of one bucket and durability, and so lie in one group however the slots are spread.
    /// </summary>
    public static bool AreOneBucket(ReadOnlySpan<byte> items)
    {
        if (!CommandList.TryTake(ref items, out Command first))
        {
            return true;
        }

        ReadOnlySpan<byte> bucket = KeyRouting.Bucket(first.Key);
        while (CommandList.TryTake(ref items, out Command item))
        {
            if (item.Durability != first.Durability || !KeyRouting.Bucket(item.Key).SequenceEqual(bucket))
            {
                return false;
            }
        }

        return true;
    }

    /// <summary>The value of the command that prepares a part.</summary>
    public byte[] Encode(TransactionPart part, TransactionId id, uint timeoutMs, bool onlyIfHolds)
    {
        bool isAnchor = part == Anchor;
        ByteBuffer value = ByteBuffer.Rent();
        PrepareBody.WriteHeader(
            value,
            id,
            timeoutMs,
            (isAnchor ? PrepareFlags.Anchor : 0) | (onlyIfHolds ? PrepareFlags.OnlyIfHolds : 0),
            Anchor.Key,
            isAnchor ? _all.Count : 0);
        for (int i = 0; i < _all.Count && isAnchor; i++)
        {
            PrepareBody.WriteParticipant(value, _all[i].Durability, _all[i].Key);
        }

        part.Write(value);
        byte[] bytes = value.Written.ToArray();
        value.Return();
        return bytes;
    }

    /// <summary>
    /// Joins outcomes of the parts to those of one list of the transaction. Those of a part that has none are said to
    /// be <paramref name="missing"/>.
    /// </summary>
    /// <param name="target">Takes the outcomes.</param>
    /// <param name="list">Which list: see <see cref="TransactionPart.Add"/>.</param>
    /// <param name="outcomesOf">The outcomes of a part, as an <see cref="OutcomeList"/>.</param>
    /// <param name="missing">Stands for an outcome that a part does not have.</param>
    public void Join(
        ByteBuffer target, int list, Func<TransactionPart, ReadOnlyMemory<byte>> outcomesOf, OutcomeStatus missing)
    {
        ReadOnlyMemory<byte>[] inOrder = new ReadOnlyMemory<byte>[_all.Sum(part => part.Places[list].Count)];
        foreach (TransactionPart part in _all)
        {
            ReadOnlyMemory<byte> rest = outcomesOf(part);
            foreach (int place in part.Places[list])
            {
                ReadOnlySpan<byte> after = rest.Span;
                OutcomeList.TryTake(ref after, out _);
                inOrder[place] = rest[..^after.Length];
                rest = rest[^after.Length..];
            }
        }

        foreach (ReadOnlyMemory<byte> outcome in inOrder)
        {
            if (outcome.IsEmpty)
            {
                int at = OutcomeList.Begin(target);
                new Outcome(missing).Write(target);
                OutcomeList.End(target, at);
            }
            else
            {
                target.Append(outcome.Span);
            }
        }
    }

    /// <summary>The list changes something.</summary>
    public bool Writes(int list) => _all.Exists(part => part.Writes[list]);

    private void Take(ref ReadOnlyMemory<byte> items, int list, int count, SlotMap slots)
    {
        for (int place = 0; place < count; place++)
        {
            ReadOnlySpan<byte> rest = items.Span;
            if (!CommandList.TryTake(ref rest, out Command item))
            {
                return;
            }

            (int, Durability) group = (slots.PartitionOf(item.Key), item.Durability);
            if (!_byGroup.TryGetValue(group, out TransactionPart? part))
            {
                part = new TransactionPart(group.Item1, group.Item2, item.Key.ToArray());
                _byGroup.Add(group, part);
                _all.Add(part);
            }

            CountMax = Math.Max(CountMax, place + 1);
            part.Add(list, place, items[..^rest.Length], item.IsRead);
            NamesTwice |= list > 0 && !_named.Add((list, item.Durability, XxHash64.Hash(item.Key)));
            items = items[^rest.Length..];
        }
    }

    private TransactionParts WithAnchor(SlotMap slots)
    {
        _anchor = _all.Find(static part => part.Durability == Durability.Persistent)
            ?? new TransactionPart(slots.PartitionOf(_all[0].Key), Durability.Persistent, _all[0].Key);
        return this;
    }
}
