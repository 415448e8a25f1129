using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Server.Storage.Checkpoints;

/// <summary>
/// A state store cannot be used. The message names file or directory, place, reason and remedy. Nothing was changed.
/// Immutable.
/// </summary>
/// <param name="message">Whole sentences: file or directory, place, reason.</param>
/// <param name="inner">The cause.</param>
internal sealed class StateDamagedException(string message, Exception? inner = null)
    : StorageException($"{message} {WayOut}", inner);
