namespace Kahuna.Server.Partitions;

/// <summary>What is stored of one group cannot be used. Other groups are not concerned: the group stops, and they go on. Any thread.</summary>
internal abstract class GroupDamagedException(string message, Exception? inner = null) : StorageException(message, inner)
{
    /// <summary>What an operator can do.</summary>
    public const string WayOut = "If the majority of the other nodes is intact, start this node with --rebuild; it then comes back from them.";
}
