using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Coordination;

/// <summary>
/// One group's part of a transaction over several groups: the items whose keys lie in one partition and have one
/// durability, its share of the ranges, and what the group answered. Owned by one call; not thread-safe.
/// </summary>
/// <param name="partition">The partition, as the client knows it.</param>
/// <param name="durability">The durability of the keys.</param>
/// <param name="key">
/// The key by which the part is routed: that of the first item about a key; without one, any of the partition.
/// </param>
internal sealed class TransactionPart(int partition, Durability durability, byte[] key)
{
    private readonly List<ReadOnlyMemory<byte>> _items = [];
    private int _ranges;

    public int Partition => partition;

    public Durability Durability => durability;

    public byte[] Key => key;

    /// <summary>The key as text.</summary>
    public string KeyText { get; } = Utf8Text.Strict.GetString(key);

    /// <summary>
    /// Where its items are in the lists of the transaction, from 0 on: those of its conditions, of its first and of its
    /// second list.
    /// </summary>
    public IReadOnlyList<List<int>> Places { get; } = [[], [], []];

    /// <summary>Which of the lists change something, in the same order.</summary>
    public bool[] Writes { get; } = new bool[3];

    /// <summary>It only keeps the decision.</summary>
    public bool IsEmpty => _items.Count == 0;

    /// <summary>How the group answered.</summary>
    public PartState State { get; private set; }

    /// <summary>The command that prepares the part failed before it could have an effect.</summary>
    public bool IsAbsent { get; set; }

    /// <summary>The part is not prepared, and will not be.</summary>
    public bool IsNotPrepared => State == PartState.Refused || IsAbsent;

    /// <summary>Why the group refused the part.</summary>
    public PrepareRefusal Refusal { get; private set; }

    /// <summary>What the group says about the part, if it has prepared it or a condition does not hold.</summary>
    public PrepareVote Vote { get; private set; }

    /// <summary>The outcomes of the conditions as an <see cref="OutcomeList"/>; empty without any.</summary>
    public ReadOnlyMemory<byte> Conditions { get; private set; }

    /// <summary>
    /// The outcomes of the list that was carried out; null until the group has said them, and when it cannot.
    /// </summary>
    public ReadOnlyMemory<byte>? Outcomes { get; set; }

    /// <summary>The group has finished the part, or has none.</summary>
    public bool IsFinished { get; set; }

    /// <summary>Adds an item.</summary>
    /// <param name="list">0: the conditions, 1: the first list, 2: the second list. They come in this order.</param>
    /// <param name="place">Where it is in the transaction's list.</param>
    /// <param name="item">The encoded item with its length.</param>
    /// <param name="isRead">It changes nothing.</param>
    public void Add(int list, int place, ReadOnlyMemory<byte> item, bool isRead)
    {
        Places[list].Add(place);
        Writes[list] |= !isRead;
        _items.Add(item);
    }

    /// <summary>Adds a condition about a range, behind those about keys.</summary>
    /// <param name="place">Where it is among the transaction's conditions.</param>
    /// <param name="item">The encoded item with its length.</param>
    public void AddRange(int place, ReadOnlyMemory<byte> item)
    {
        _items.Insert(Places[0].Count, item);
        Places[0].Add(place);
        _ranges++;
    }

    /// <summary>The group has answered.</summary>
    public void Answered(in PrepareReply reply) =>
        (State, Refusal, Vote, Conditions) = (
            reply.IsPrepared ? PartState.Prepared : PartState.Refused, reply.Refusal, reply.Vote, reply.Conditions);

    /// <summary>How the list would end.</summary>
    public ListForecast ForecastOf(bool holds) => holds ? Vote.Then : Vote.Else;

    /// <summary>Appends the items as a <see cref="TransactionBody"/>.</summary>
    public void Write(ByteBuffer target)
    {
        TransactionBody.WriteHeader(target, Places[0].Count, Places[1].Count, Places[2].Count, _ranges);
        WriteItems(target);
    }

    /// <summary>The items as a <see cref="TransactionBody"/>.</summary>
    public byte[] Encode()
    {
        ByteBuffer target = ByteBuffer.Rent();
        Write(target);
        byte[] bytes = target.Written.ToArray();
        target.Return();
        return bytes;
    }

    /// <summary>Appends the items as a <see cref="CommandList"/>.</summary>
    public void WriteItems(ByteBuffer target)
    {
        foreach (ReadOnlyMemory<byte> item in _items)
        {
            target.Append(item.Span);
        }
    }
}

/// <summary>How a group answered to a part. Not stored.</summary>
internal enum PartState
{
    /// <summary>It has not, or nothing of use: the part may be prepared.</summary>
    Unknown,

    /// <summary>The part is prepared.</summary>
    Prepared,

    /// <summary>The part is not prepared.</summary>
    Refused,
}
