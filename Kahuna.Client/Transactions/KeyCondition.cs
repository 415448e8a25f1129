using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Commands;

namespace Kahuna.Client.Transactions;

/// <summary>
/// One condition of a transaction, about one key. Immutable. Several conditions may be about the same key.
/// </summary>
public sealed class KeyCondition
{
    private readonly KahunaValue? _value;
    private readonly Revision? _revision;
    private readonly CommandFlags _flags;
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

    /// <summary>The key.</summary>
    public string Key { get; }

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

    /// <summary>The condition in the form of a read, which is only encoded.</summary>
    internal Operation<ExistsResult> ToOperation(Durability durability)
    {
        Operation<ExistsResult> operation = Operation<ExistsResult>.Rent();
        operation.Request.Begin(CommandKind.Exists, _durability ?? durability, Key);
        operation.Request.AddFlag(_flags, true);
        operation.Request.AddComparison(_value, _revision);
        return operation;
    }
}
