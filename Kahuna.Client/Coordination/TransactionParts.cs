using System.Text;
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
    private readonly List<(int Place, ReadOnlyMemory<byte> Item)> _ranges = [];
    private TransactionPart? _anchor;

    private TransactionParts()
    {
    }

    /// <summary>A list of operations names a key twice.</summary>
    public bool NamesTwice { get; private set; }

    /// <summary>The items of the longest list.</summary>
    public int CountMax { get; private set; }

    /// <summary>Conditions that are about ranges. Each is in the part of every partition.</summary>
    public int Ranges => _ranges.Count;

    /// <summary>The parts that have items.</summary>
    public IReadOnlyList<TransactionPart> All => _all;

    /// <summary>
    /// The part whose group keeps the decision: that of the fence's lock, so that the decision depends on the lock;
    /// without a fence the first one of persistent keys. When all keys are ephemeral, it is a part without items in the
    /// partition of the first key, since ephemeral groups keep nothing for good.
    /// </summary>
    public TransactionPart Anchor => _anchor!;

    /// <summary>The parts that are prepared: those that have items, and the anchor.</summary>
    public IEnumerable<TransactionPart> Prepared => _anchor!.IsEmpty ? _all.Append(_anchor) : _all;

    /// <summary>Splits a <see cref="TransactionBody"/>.</summary>
    /// <param name="body">The conditions and lists.</param>
    /// <param name="slots">Where keys lie.</param>
    /// <param name="fence">The name of the persistent lock that the decision depends on; null for none.</param>
    public static TransactionParts OfTransaction(ReadOnlyMemory<byte> body, SlotMap slots, byte[]? fence = null)
    {
        if (!TransactionBody.TryRead(body.Span, out TransactionBody header))
        {
            throw new InvalidOperationException("The transaction has no header.");
        }

        TransactionParts parts = new();
        if (fence is not null)
        {
            parts.AnchorAt(fence, slots);
        }

        ReadOnlyMemory<byte> rest = body[TransactionBody.HeaderBytes..];
        parts.Take(ref rest, 0, header.Conditions, slots);
        parts.Take(ref rest, 1, header.Then, slots);
        parts.Take(ref rest, 2, header.Else, slots);
        foreach ((int place, ReadOnlyMemory<byte> item) in parts._ranges)
        {
            parts.AddRange(place, item, body.Span, slots);
        }

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
    /// True when all items are of one bucket and durability, and so lie in one group however the slots are spread. A
    /// range may have keys of any bucket.
    /// </summary>
    public static bool AreOneBucket(ReadOnlySpan<byte> items)
    {
        if (!CommandList.TryTake(ref items, out Command first))
        {
            return true;
        }

        if (RangeCondition.Is(in first))
        {
            return false;
        }

        ReadOnlySpan<byte> bucket = KeyRouting.Bucket(first.Key);
        while (CommandList.TryTake(ref items, out Command item))
        {
            if (RangeCondition.Is(in item)
                || item.Durability != first.Durability
                || !KeyRouting.Bucket(item.Key).SequenceEqual(bucket))
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
        ReadOnlyMemory<byte>[] inOrder = new ReadOnlyMemory<byte>[
            _all.Max(part => part.Places[list].DefaultIfEmpty(-1).Max()) + 1];
        foreach (TransactionPart part in _all)
        {
            ReadOnlyMemory<byte> rest = outcomesOf(part);
            foreach (int place in part.Places[list])
            {
                ReadOnlySpan<byte> after = rest.Span;
                OutcomeList.TryTake(ref after, out _);
                inOrder[place] = Together(inOrder[place], rest[..^after.Length]);
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

    /// <summary>
    /// The outcome of a range of several partitions: it holds if it does in each, and has all their keys.
    /// </summary>
    private static ReadOnlyMemory<byte> Together(ReadOnlyMemory<byte> first, ReadOnlyMemory<byte> second)
    {
        if (first.IsEmpty || second.IsEmpty)
        {
            return first.IsEmpty ? second : first;
        }

        ReadOnlySpan<byte> one = first.Span;
        ReadOnlySpan<byte> other = second.Span;
        OutcomeList.TryTake(ref one, out Outcome joined);
        OutcomeList.TryTake(ref other, out Outcome added);
        joined.Status = joined.Status == OutcomeStatus.Applied ? added.Status : joined.Status;
        joined.Number += added.Number;
        ByteBuffer target = ByteBuffer.Rent();
        int at = OutcomeList.Begin(target);
        joined.Write(target);
        OutcomeList.End(target, at);
        byte[] bytes = target.Written.ToArray();
        target.Return();
        return bytes;
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

            CountMax = Math.Max(CountMax, place + 1);
            if (RangeCondition.Is(in item))
            {
                _ranges.Add((place, items[..^rest.Length]));
                items = items[^rest.Length..];
                continue;
            }

            TransactionPart part = PartOf(slots.PartitionOf(item.Key), item.Durability, item.Key);
            part.Add(list, place, items[..^rest.Length], item.IsRead);
            NamesTwice |= list > 0 && !_named.Add((list, item.Durability, XxHash64.Hash(item.Key)));
            items = items[^rest.Length..];
        }
    }

    /// <summary>The part in the partition of a key is the anchor, and is found by that key.</summary>
    private void AnchorAt(byte[] key, SlotMap slots)
    {
        _anchor = new TransactionPart(slots.PartitionOf(key), Durability.Persistent, key);
        _byGroup.Add((_anchor.Partition, Durability.Persistent), _anchor);
    }

    private TransactionPart PartOf(int partition, Durability durability, ReadOnlySpan<byte> key)
    {
        if (!_byGroup.TryGetValue((partition, durability), out TransactionPart? part))
        {
            part = new TransactionPart(partition, durability, key.ToArray());
            _byGroup.Add((partition, durability), part);
        }

        if (part.IsEmpty)
        {
            // It is about to get an item.
            _all.Add(part);
        }

        return part;
    }

    /// <summary>
    /// Divides a range among the partitions: each must have as many keys of it as the transaction's conditions name. A
    /// partition without slots has no keys; if it has got some since, another one refuses the map's version.
    /// </summary>
    private void AddRange(int place, ReadOnlyMemory<byte> encoded, ReadOnlySpan<byte> body, SlotMap slots)
    {
        ReadOnlySpan<byte> rest = encoded.Span;
        CommandList.TryTake(ref rest, out Command whole);
        int[] counts = CountsOf(in whole, body, slots);
        for (int partition = 0; partition < counts.Length; partition++)
        {
            if (slots.KeyIn(partition) is { } key)
            {
                Command item = RangeCondition.ToPart(in whole, counts[partition], partition, slots.Version);
                ByteBuffer target = ByteBuffer.Rent();
                CommandList.Append(target, in item);
                PartOf(partition, whole.Durability, key).AddRange(place, target.Written.ToArray());
                target.Return();
            }
        }
    }

    /// <summary>
    /// How many keys of the range each partition must have: those that conditions say to exist. Several conditions may
    /// be about one of them; only a range that has as many keys as are named is asked for in such a transaction.
    /// </summary>
    private static int[] CountsOf(scoped in Command whole, ReadOnlySpan<byte> body, SlotMap slots)
    {
        RangeCondition range = new(in whole);
        int[] counts = new int[slots.Partitions];
        TransactionBody.TryRead(body, out TransactionBody header);
        ReadOnlySpan<byte> items = header.Items;
        bool isAsNamed = range.Count == RangeCondition.AsNamed;
        HashSet<string>? named = isAsNamed ? new HashSet<string>(StringComparer.Ordinal) : null;
        long left = range.Count;
        for (int i = 0; i < header.Conditions && left > 0 && CommandList.TryTake(ref items, out Command item); i++)
        {
            if (!RangeCondition.Is(in item)
                && item.Durability == whole.Durability
                && !item.Has(CommandFlags.IfAbsent)
                && range.Contains(item.Key)
                && named?.Add(Encoding.UTF8.GetString(item.Key)) is not false)
            {
                counts[slots.PartitionOf(item.Key)]++;
                left--;
            }
        }

        return left == 0 || isAsNamed
            ? counts
            : throw new InvalidOperationException("A range has more keys than the conditions name.");
    }

    private TransactionParts WithAnchor(SlotMap slots)
    {
        _anchor ??= _all.Find(static part => part.Durability == Durability.Persistent)
            ?? new TransactionPart(slots.PartitionOf(_all[0].Key), Durability.Persistent, _all[0].Key);
        return this;
    }
}
