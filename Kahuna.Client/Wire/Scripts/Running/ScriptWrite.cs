using Kahuna.Wire.Commands;

namespace Kahuna.Wire.Scripts.Running;

/// <summary>What a write does.</summary>
internal enum ScriptWriteKind
{
    /// <summary>Gives the key a value, and the time to live of the write.</summary>
    Set,

    /// <summary>Deletes the key, which need not exist.</summary>
    Delete,

    /// <summary>Gives an existing key another remaining time.</summary>
    Extend,
}

/// <summary>One write of a finished script. Immutable.</summary>
/// <param name="Key">The key.</param>
/// <param name="IsEphemeral">Its level.</param>
/// <param name="Kind">What is done.</param>
/// <param name="Value">The value of a set; null for a null value.</param>
/// <param name="TtlMs">Milliseconds to live, or 0 for ever.</param>
/// <param name="WithoutHistory">The replaced revision is not kept.</param>
internal readonly record struct ScriptWrite(
    ReadOnlyMemory<byte> Key,
    bool IsEphemeral,
    ScriptWriteKind Kind,
    ReadOnlyMemory<byte>? Value,
    long TtlMs,
    bool WithoutHistory)
{
    /// <summary>The write as a command. Its spans point into this write.</summary>
    public Command ToCommand()
    {
        Command item = new()
        {
            Kind = Kind switch
            {
                ScriptWriteKind.Set => CommandKind.Set,
                ScriptWriteKind.Delete => CommandKind.Delete,
                _ => CommandKind.Extend,
            },
            Durability = IsEphemeral ? Durability.Ephemeral : Durability.Persistent,
            Key = Key.Span,
        };
        if (Kind == ScriptWriteKind.Set)
        {
            item.Value = Value is { } value ? value.Span : default;
            item.Flags |= Value is null ? CommandFlags.NullValue : 0;
        }

        // An extension always says for how long; 0 is for ever.
        if (TtlMs > 0)
        {
            item.Flags |= CommandFlags.Ttl;
            item.TtlMs = TtlMs;
        }

        item.Flags |= WithoutHistory && Kind != ScriptWriteKind.Extend ? CommandFlags.WithoutHistory : 0;
        return item;
    }
}
