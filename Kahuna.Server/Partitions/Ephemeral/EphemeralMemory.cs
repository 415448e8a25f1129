using System.Globalization;

namespace Kahuna.Server.Partitions.Ephemeral;

/// <summary>What the ephemeral keys of a node take up, states and logs together, and how much they may. Each partition says what is its part; any thread.</summary>
/// <param name="bytesMax">At this size writes that may take up more are refused.</param>
internal sealed class EphemeralMemory(long bytesMax)
{
    private long _bytes;

    /// <summary>Bytes as of the partitions' last ticks.</summary>
    public long Bytes => Interlocked.Read(ref _bytes);

    /// <summary>Why a write that may take up more is refused, or null.</summary>
    public string? RefuseWrites => Bytes < bytesMax
        ? null
        : string.Create(CultureInfo.InvariantCulture, $"The node's memory for ephemeral keys has reached its limit of {bytesMax:N0} bytes (--ephemeral-limit); nothing was changed. Delete keys, or let them expire.");

    /// <summary>A partition's part has grown or shrunk.</summary>
    public void Changed(long bytes) => Interlocked.Add(ref _bytes, bytes);
}
