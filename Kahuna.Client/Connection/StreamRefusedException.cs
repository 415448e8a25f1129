namespace Kahuna.Client.Connection;

/// <summary>A stream was not opened, for the reason that the node gives. Immutable; any thread.</summary>
internal sealed class StreamRefusedException(StreamStatus status) : IOException(status.ToString())
{
    /// <summary>The node's reason.</summary>
    public StreamStatus Status => status;
}
