using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Commands;

namespace Kahuna.Client.Transactions;

/// <summary>
/// One operation of a transaction, on one key. Immutable; the bytes of its value are read until the transaction
/// completes. Conditions are those of the transaction.
/// </summary>
public sealed class KeyOperation
{
    private readonly KahunaValue _value;
    private readonly TimeSpan? _ttl;
    private readonly Revision? _atRevision;
    private readonly long? _amount;
    private readonly CommandFlags _flags;
    private Durability? _durability;

    private KeyOperation(CommandKind kind, string key)
    {
        ArgumentNullException.ThrowIfNull(key);
        Kind = kind;
        Key = key;
    }

    private KeyOperation(CommandKind kind, string key, KahunaValue value, TimeSpan? ttl, CommandFlags flags)
        : this(kind, key)
    {
        _value = value;
        _ttl = ttl;
        _flags = flags;
    }

    private KeyOperation(CommandKind kind, string key, Revision? atRevision, long? amount)
        : this(kind, key)
    {
        _atRevision = atRevision;
        _amount = amount;
    }

    /// <summary>The key.</summary>
    public string Key { get; }

    internal CommandKind Kind { get; }

    /// <summary>Reads the key.</summary>
    /// <param name="key">The key.</param>
    /// <param name="atRevision">The revision to read; null for the latest.</param>
    public static KeyOperation Get(string key, Revision? atRevision = null) =>
        new(CommandKind.Get, key, atRevision, null);

    /// <summary>Looks whether the key exists.</summary>
    /// <inheritdoc cref="Get"/>
    public static KeyOperation Exists(string key, Revision? atRevision = null) =>
        new(CommandKind.Exists, key, atRevision, null);

    /// <summary>Writes the key.</summary>
    /// <param name="key">The key.</param>
    /// <param name="value">The value; <see cref="KahunaValue.Null"/> writes the null value.</param>
    /// <param name="ttl">Time to live, 1 ms to 100 years; null: the key does not expire.</param>
    /// <param name="returnPrevious">Return the previous value in the result.</param>
    /// <param name="withoutHistory">Do not keep the replaced revision in the key's history.</param>
    public static KeyOperation Set(
        string key,
        KahunaValue value,
        TimeSpan? ttl = null,
        bool returnPrevious = false,
        bool withoutHistory = false) =>
        new(
            CommandKind.Set,
            key,
            value,
            ttl,
            (value.IsNull ? CommandFlags.NullValue : 0) | Options(returnPrevious, withoutHistory));

    /// <summary>Removes the key.</summary>
    /// <param name="key">The key.</param>
    /// <param name="returnPrevious">Return the value that it had in the result.</param>
    /// <param name="withoutHistory">Do not keep the deleted revision in the key's history.</param>
    public static KeyOperation Delete(string key, bool returnPrevious = false, bool withoutHistory = false) =>
        new(CommandKind.Delete, key, KahunaValue.Null, null, Options(returnPrevious, withoutHistory));

    /// <summary>Sets the key's time to live.</summary>
    /// <param name="key">The key.</param>
    /// <param name="ttl">1 ms to 100 years; zero removes it, so that the key does not expire.</param>
    public static KeyOperation Extend(string key, TimeSpan ttl) =>
        new(CommandKind.Extend, key, KahunaValue.Null, ttl, CommandFlags.None);

    /// <summary>
    /// Adds a signed amount to a value that is a decimal integer in ASCII. A missing key counts as 0. A value that is
    /// no integer, or a sum outside of 64 bits, fails the transaction as a whole.
    /// </summary>
    public static KeyOperation Increment(string key, long amount = 1) => new(CommandKind.Increment, key, null, amount);

    /// <summary>
    /// The same operation on the key of this durability, which is part of the key's name; else it is the transaction's.
    /// </summary>
    public KeyOperation WithDurability(Durability durability)
    {
        KeyOperation copy = (KeyOperation)MemberwiseClone();
        copy._durability = durability;
        return copy;
    }

    /// <summary>The operation in the form of a single one, which is only encoded.</summary>
    internal Operation<ExistsResult> ToOperation(Durability durability)
    {
        Operation<ExistsResult> operation = Operation<ExistsResult>.Rent();
        operation.Request.Begin(Kind, _durability ?? durability, Key);
        operation.Request.AddFlag(_flags, true);
        operation.Request.AddReadRevision(_atRevision);
        if (Kind == CommandKind.Set)
        {
            operation.Request.SetValue(_value.Memory);
        }

        if (_ttl is { } ttl)
        {
            operation.Request.AddTtl(ttl);
        }

        if (_amount is { } amount)
        {
            operation.Request.AddNumber(amount);
        }

        return operation;
    }

    private static CommandFlags Options(bool returnPrevious, bool withoutHistory) =>
        (returnPrevious ? CommandFlags.ReturnPrevious : 0) | (withoutHistory ? CommandFlags.WithoutHistory : 0);
}
