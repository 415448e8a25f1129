using Kahuna.Server.Partitions;

namespace Kahuna.Server.Storage;

/// <summary>What was on stable storage is there no more, or not as it was. The node must not go on with it. Immutable.</summary>
internal sealed class LogDamagedException(string file, long offset, string what)
    : Exception($"The log is not what was on stable storage: file {file}, offset {offset}: {what}. "
        + "This node's copy can no longer be trusted; nothing was changed. " + StorageException.WayOut)
{
    public string File => file;

    public long Offset => offset;
}
