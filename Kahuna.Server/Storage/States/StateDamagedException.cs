using Kahuna.Server.Partitions;

namespace Kahuna.Server.Storage.States;

/// <summary>A stored state cannot be used: the message names file or directory, place and reason. Nothing was changed.</summary>
internal sealed class StateDamagedException(string message, Exception? inner = null) : StorageException(message, inner);
