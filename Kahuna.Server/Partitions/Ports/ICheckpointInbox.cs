using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>The checkpoint service, as loops and links reach it: by messages only. Any thread.</summary>
internal interface ICheckpointInbox
{
    /// <summary>Adds what a loop tells or asks for.</summary>
    void Post(CheckpointEvent message);

    /// <summary>
    /// Takes a peer's frame that belongs to a snapshot, read during the call; drops it when too many wait.
    /// </summary>
    void Receive(NodeId from, ReadOnlySpan<byte> frame);
}
