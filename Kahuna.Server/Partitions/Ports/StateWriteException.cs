namespace Kahuna.Server.Partitions.Ports;

/// <summary>What a write to a state store fails with.</summary>
internal abstract class StateWriteException(string message, Exception? inner) : StorageException(message, inner)
{
    /// <summary>
    /// There was no room on the disk: the store is whole, and takes a new write as soon as there is room.
    /// </summary>
    public abstract bool NoSpace { get; }
}
