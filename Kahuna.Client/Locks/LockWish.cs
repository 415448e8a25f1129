using Kahuna.Client.Wire.Commands;

namespace Kahuna.Client.Locks;

/// <summary>Which lock a caller wants, and how. A value.</summary>
/// <param name="Resource">Its name.</param>
/// <param name="Durability">Its level.</param>
/// <param name="Lease">For how long.</param>
/// <param name="Mode">Alone, or shared with whom.</param>
internal readonly record struct LockWish(string Resource, CommandDurability Durability, TimeSpan Lease, LockMode Mode)
{
    /// <summary>Permits of a semaphore; 0 for other modes.</summary>
    public int Permits { get; init; }

    /// <summary>The caller's flow remembers it; null for claims that are not shared.</summary>
    public SharedHold? Hold { get; init; }

    /// <summary>What is left with the lock; null: what the options say.</summary>
    public ReadOnlyMemory<byte>? Note { get; init; }
}
