namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// What is stored cannot be used, or nothing can be stored; the message is for the operator: what, where, why, and what
/// to do. Immutable.
/// </summary>
internal class StorageException(string message, Exception? inner = null) : Exception(message, inner)
{
    /// <summary>What to do about stored data that is not as it was; the end of each such message.</summary>
    public const string WayOut =
        "If the majority of the other nodes is intact, start this node with --rebuild; it then comes back from them. "
        + "A cluster of one node has no others, and starts only with its files as they were.";
}
