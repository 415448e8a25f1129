using Kahuna.Client.Connection;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Commands;

namespace Kahuna.Client.Transactions;

/// <summary>
/// One condition of a transaction, about one key, or about all keys of a range. Immutable. Several conditions may be
/// about the same key.
/// </summary>
public sealed class KeyCondition
{
    private readonly KahunaValue? _value;
    private readonly Revision? _revision;
    private readonly CommandFlags _flags;
    private readonly KeyRange? _range;
    private readonly int _count;
    private Durability? _durability;

    private KeyCondition(
        string key, CommandFlags flags = CommandFlags.None, KahunaValue? value = null, Revision? revision = null)
    {
        ArgumentNullException.ThrowIfNull(key);
        Key = key;
        _flags = flags;
        _value = value;
        _revision = revision;
    }

    private KeyCondition(string name, KeyRange range, int count, Durability? durability)
        : this(name)
    {
        _range = range;
        _count = count;
        _durability = durability;
    }

    /// <summary>The key; of a condition about a range, the prefix.</summary>
    public string Key { get; }

    /// <summary>It is about a range.</summary>
    internal bool IsRange => _range is not null;

    /// <summary>
    /// No key begins with the prefix, in any partition; an empty one stands for all keys. A transaction takes up to 64
    /// such conditions, and is committed in two phases unless the cluster has one partition.
    /// </summary>
    /// <exception cref="KahunaException">The prefix cannot be written as UTF-8.</exception>
    public static KeyCondition NoKeys(string prefix)
    {
        ArgumentNullException.ThrowIfNull(prefix);
        return new KeyCondition(prefix, RangeBounds.Of(prefix, null, null), 0, null);
    }

    /// <summary>
    /// No key begins with the prefix, in any partition, besides those that other conditions of the transaction say to
    /// exist (<see cref="Exists"/>, <see cref="HasValue"/>, <see cref="HasRevision"/>). Together with them it says
    /// which keys there are, and how many. It does not hold either when one of those keys is missing. It counts as
    /// <see cref="NoKeys"/> does, which it equals when no such key is named.
    /// </summary>
    /// <exception cref="KahunaException">The prefix cannot be written as UTF-8.</exception>
    public static KeyCondition NoOtherKeys(string prefix)
    {
        ArgumentNullException.ThrowIfNull(prefix);
        return new KeyCondition(prefix, RangeBounds.Of(prefix, null, null), RangeCondition.AsNamed, null);
    }

    /// <summary>The key exists.</summary>
    public static KeyCondition Exists(string key) => new(key, CommandFlags.IfPresent);

    /// <summary>The key does not exist.</summary>
    public static KeyCondition Absent(string key) => new(key, CommandFlags.IfAbsent);

    /// <summary>
    /// The key exists and holds exactly this value; <see cref="KahunaValue.Null"/> compares with the null value.
    /// </summary>
    public static KeyCondition HasValue(string key, KahunaValue value) => new(key, value: value);

    /// <summary>The key exists at exactly this revision, 1 or greater.</summary>
    public static KeyCondition HasRevision(string key, Revision revision) => new(key, revision: revision);

    /// <summary>
    /// The same condition on the key of this durability, which is part of the key's name; else it is the transaction's.
    /// </summary>
    public KeyCondition WithDurability(Durability durability)
    {
        KeyCondition copy = (KeyCondition)MemberwiseClone();
        copy._durability = durability;
        return copy;
    }

    /// <summary>A range has as many keys as a transaction found there.</summary>
    internal static KeyCondition OfRange(TransactionRange looked) =>
        new(looked.Name, looked.Keys, looked.Count, looked.Durability);

    /// <summary>The condition about a range, in encoded form.</summary>
    internal Command ToItem(Durability durability) =>
        RangeCondition.ToItem(_durability ?? durability, _range!.Value.Start, _range.Value.End, _count);

    /// <summary>The condition about a key in the form of a read, which is only encoded.</summary>
    internal Operation<ExistsResult> ToOperation(Durability durability)
    {
        Operation<ExistsResult> operation = Operation<ExistsResult>.Rent();
        operation.Request.Begin(CommandKind.Exists, _durability ?? durability, Key);
        operation.Request.AddFlag(_flags, true);
        operation.Request.AddComparison(_value, _revision);
        return operation;
    }
}
