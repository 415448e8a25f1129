using Kahuna.Server.Partitions;

namespace Kahuna.Server.Storage.States;

/// <summary>A store of states cannot be used: the message names file or directory, place, reason and the way out. Nothing was changed. Immutable.</summary>
/// <param name="message">Whole sentences: file or directory, place, reason.</param>
/// <param name="inner">The cause.</param>
internal sealed class StateDamagedException(string message, Exception? inner = null) : StorageException($"{message} {WayOut}", inner);
