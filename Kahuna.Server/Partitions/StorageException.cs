namespace Kahuna.Server.Partitions;

/// <summary>What is stored cannot be used, or nothing can be stored; the message is for the operator: what, where, why, and what to do.</summary>
internal class StorageException(string message, Exception? inner = null) : Exception(message, inner);
