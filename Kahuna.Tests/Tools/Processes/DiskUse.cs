namespace Kahuna.Tests.Tools.Processes;

/// <summary>Bytes that a node's log and the rest of its data directory take up on the disk. Immutable.</summary>
internal readonly record struct DiskUse(long Log, long State)
{
    public static DiskUse operator +(DiskUse x, DiskUse y) => new(x.Log + y.Log, x.State + y.State);
}
