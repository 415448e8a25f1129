using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Server.Storage;

/// <summary>
/// Data that was on stable storage is missing or changed. The node must not continue with it. Immutable.
/// </summary>
internal sealed class LogDamagedException(string file, long offset, string what)
    : Exception($"The log is not what was on stable storage: file {file}, offset {offset}: {what}. "
        + "This node's copy can no longer be trusted; nothing was changed. " + StorageException.WayOut)
{
    public string File => file;

    public long Offset => offset;
}
