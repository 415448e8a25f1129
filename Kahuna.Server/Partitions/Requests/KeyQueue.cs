using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// A key that pessimistic transactions hold, with those that wait for it in order. Owned by one <see cref="KeyHolds"/>.
/// </summary>
/// <param name="name">The name; of a probe, its room.</param>
internal sealed class KeyQueue(byte[] name)
{
    /// <summary>Behind every key: no UTF-8 text has this byte.</summary>
    private const byte Behind = 0xFF;

    private byte[] _name = name;
    private int _length = name.Length;

    /// <summary>Orders keys by the bytes of their names.</summary>
    public static IComparer<KeyQueue> ByName { get; } =
        Comparer<KeyQueue>.Create(static (one, other) => one.Name.SequenceCompareTo(other.Name));

    /// <summary>What was taken before this may still change the key.</summary>
    public long Since { get; set; }

    /// <summary>The holders: one that is exclusive, or any number that are not.</summary>
    public List<KeyHold> Holds { get; } = [];

    /// <summary>Those that wait, in order.</summary>
    public List<HoldWaiter> Waiters { get; } = [];

    private ReadOnlySpan<byte> Name => _name.AsSpan(0, _length);

    /// <summary>A key to look others up by.</summary>
    public static KeyQueue Probe() => new(new byte[Wire.Limits.KeyBytesMax + 1]);

    /// <summary>A bound of a range: the first key behind it; empty: none is.</summary>
    public static KeyQueue Probe(ReadOnlySpan<byte> end) => new(end.IsEmpty ? [Behind] : end.ToArray());

    /// <summary>Changes the name of a probe.</summary>
    public void SetName(ReadOnlySpan<byte> text)
    {
        _name = text.Length > _name.Length ? new byte[text.Length] : _name;
        text.CopyTo(_name);
        _length = text.Length;
    }

    /// <summary>The hold of a transaction; null when it has none.</summary>
    public KeyHold? HoldOf(HoldingTransaction owner) => Holds.Find(hold => hold.Owner == owner);

    /// <summary>Another transaction than this one holds the key.</summary>
    public bool IsOfOther(TransactionId? own) => Holds.Exists(hold => hold.Owner.Id != own);

    /// <summary>A transaction may hold the key beside those that do.</summary>
    public bool Fits(HoldingTransaction? owner, bool isExclusive) =>
        Holds.TrueForAll(hold => hold.Owner == owner || (!isExclusive && !hold.IsExclusive));

    /// <summary>A transaction may hold the key at once. Nobody overtakes, except one that holds it already.</summary>
    public bool IsFree(HoldingTransaction? owner, bool isExclusive, bool isUpgrade) =>
        (isUpgrade || Waiters.Count == 0) && Fits(owner, isExclusive);

    /// <summary>
    /// All that hold the key, or wait for it before, are younger than a transaction. One that holds the key itself
    /// comes before those that wait.
    /// </summary>
    public bool AreAllYounger(long begun, TransactionId id, bool isUpgrade) =>
        Holds.TrueForAll(hold => hold.Owner.Id == id || hold.Owner.IsYoungerThan(begun, id))
            && (isUpgrade || Waiters.TrueForAll(waiter => waiter.Owner.IsYoungerThan(begun, id)));
}

/// <summary>One transaction's hold of a key. Owned by a <see cref="KeyQueue"/>.</summary>
/// <param name="owner">The transaction.</param>
internal sealed class KeyHold(HoldingTransaction owner)
{
    public HoldingTransaction Owner => owner;

    /// <summary>Nobody else may hold the key.</summary>
    public bool IsExclusive { get; set; }
}

/// <summary>A transaction that holds keys, or waits for one. Owned by one <see cref="KeyHolds"/>.</summary>
/// <param name="id">Its id.</param>
/// <param name="begun">Its age: when it was first tried.</param>
/// <param name="end">When it loses what it holds.</param>
internal sealed class HoldingTransaction(TransactionId id, long begun, NodeTime end)
{
    /// <summary>Orders transactions by their ends.</summary>
    public static IComparer<HoldingTransaction> ByEnd { get; } = Comparer<HoldingTransaction>.Create(
        static (one, other) => one.End == other.End ? one.Id.CompareTo(other.Id) : one.End < other.End ? -1 : 1);

    public TransactionId Id => id;

    public NodeTime End => end;

    /// <summary>The keys that it holds.</summary>
    public List<KeyQueue> Keys { get; } = [];

    /// <summary>What it waits for.</summary>
    public HoldWaiter? Waiting { get; set; }

    public bool IsYoungerThan(long otherBegun, TransactionId otherId) =>
        begun == otherBegun ? id.CompareTo(otherId) > 0 : begun > otherBegun;
}

/// <summary>
/// A transaction's place in a key's queue. It keeps it for a while when nobody asks. Owned by one
/// <see cref="KeyHolds"/>.
/// </summary>
internal sealed class HoldWaiter
{
    public HoldWaiter(HoldingTransaction owner, KeyQueue key, bool isExclusive)
    {
        Owner = owner;
        Key = key;
        IsExclusive = isExclusive;
        Place = new LinkedListNode<HoldWaiter>(this);
    }

    public HoldingTransaction Owner { get; }

    public KeyQueue Key { get; }

    public bool IsExclusive { get; }

    /// <summary>Its place among all that wait.</summary>
    public LinkedListNode<HoldWaiter> Place { get; }

    /// <summary>The request whose answer is held back; null when there is none now.</summary>
    public HeldAnswer? Answer { get; set; }

    /// <summary>Since when there is none.</summary>
    public NodeTime Left { get; set; }
}
