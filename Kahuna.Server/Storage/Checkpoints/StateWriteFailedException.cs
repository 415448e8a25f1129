using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Server.Storage.Checkpoints;

/// <summary>
/// A write to a state store failed. The message names file or directory and reason. The previous checkpoint is intact.
/// Immutable.
/// </summary>
internal sealed class StateWriteFailedException(string message, bool noSpace, Exception? inner = null)
    : StateWriteException(message, inner)
{
    /// <inheritdoc/>
    public override bool NoSpace { get; } = noSpace;
}
