using Kahuna.Server.Partitions;

namespace Kahuna.Server.Storage.States;

/// <summary>A store of states cannot be used: the message names directory, place and reason. Nothing was changed.</summary>
internal sealed class StateDamagedException(string message, Exception? inner = null) : StorageException(message, inner);
