using Kahuna.Server.Partitions;

namespace Kahuna.Server.Storage.States;

/// <summary>A write to a state store failed; the message names file or directory and reason. What was stored before is unharmed.</summary>
internal sealed class StateWriteFailedException(string message, bool noSpace, Exception? inner = null) : StateWriteException(message, inner)
{
    /// <inheritdoc/>
    public override bool NoSpace { get; } = noSpace;
}
