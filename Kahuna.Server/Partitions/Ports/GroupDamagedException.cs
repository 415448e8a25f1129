namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// What is stored of one group cannot be used. Other groups are not concerned: the group stops, and they go on. Any
/// thread.
/// </summary>
internal abstract class GroupDamagedException(string message, Exception? inner = null)
    : StorageException(message, inner);
