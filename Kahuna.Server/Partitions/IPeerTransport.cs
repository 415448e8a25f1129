using Kahuna.Client.Wire.Buffers;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions;

/// <summary>Port: links to the other nodes. Frames to one peer arrive in order or not at all; any frame may be lost.</summary>
internal interface IPeerTransport
{
    /// <summary>An empty buffer for a frame, with the room in front that the transport needs for its own header already taken.</summary>
    ByteBuffer BeginFrame();

    /// <summary>
    /// Queues a frame for a peer; takes over the buffer in any case. False when it was dropped (link down, queue full). Never
    /// blocks. Any thread.
    /// </summary>
    bool TrySend(NodeId peer, ByteBuffer frame);
}

/// <summary>Port: where frames from peers go. Called from the links' own threads; must not block for long.</summary>
internal interface IPeerReceiver
{
    /// <summary>A frame from a proven peer. The payload is valid during the call only.</summary>
    void Receive(NodeId from, ReadOnlySpan<byte> payload);

    /// <summary>The link to a peer is up (true) or down (false).</summary>
    void LinkChanged(NodeId peer, bool up);
}
