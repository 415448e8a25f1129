using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// Port: links to the other nodes. There are two lanes to a peer: frames of one lane arrive in order or not at all, and
/// urgent frames pass those of the other lane that still wait. Any frame may be lost.
/// </summary>
internal interface IPeerTransport
{
    /// <summary>
    /// An empty buffer for a frame, with the room in front that the transport needs for its own header already taken.
    /// </summary>
    ByteBuffer BeginFrame();

    /// <summary>
    /// Queues a frame for a peer; takes over the buffer in any case. False when it was dropped (link down, queue full).
    /// Never blocks. Any thread.
    /// </summary>
    bool TrySend(NodeId peer, ByteBuffer frame, bool isUrgent = false);

    /// <summary>
    /// Frames wait for this peer, so that only urgent ones are sure to leave soon. Cheap; any thread.
    /// </summary>
    bool HasWaiting(NodeId peer);
}

/// <summary>Port: where frames from peers go. Called from the links' own threads; must not block for long.</summary>
internal interface IPeerReceiver
{
    /// <summary>A frame from a proven peer. The payload is valid during the call only.</summary>
    void Receive(NodeId from, ReadOnlySpan<byte> payload);

    /// <summary>The link to a peer is up (true) or down (false).</summary>
    void LinkChanged(NodeId peer, bool up);
}
