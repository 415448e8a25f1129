namespace Kahuna.Server.Scripts;

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
    bool WithoutHistory);
