using Kahuna.Server.Primitives;

namespace Kahuna.Server.Transport;

/// <summary>A node's answer about the data directory of another node. Values are part of the handshake.</summary>
internal enum PeerDirectoryAnswer : byte
{
    /// <summary>It differs from the known one; the link is refused.</summary>
    AnotherDirectory = 1,

    /// <summary>It is the known one, but there may have been others before.</summary>
    Known = 2,

    /// <summary>It is durably known, and the node never had another one.</summary>
    OnlyDirectory = 3,
}

/// <summary>
/// Port: the known data directories of the other nodes, and this node's own (docs/adr/0009-who-may-vote.md). Called by
/// the threads of the links; any thread.
/// </summary>
internal interface IPeerDirectory
{
    /// <summary>Random id of this node's data directory; never 0, and constant while the links live.</summary>
    ulong OwnDirectoryId { get; }

    /// <summary>
    /// Whether this node's directory was rebuilt and is not restored yet. The other nodes then accept it in place of
    /// the known one.
    /// </summary>
    bool Rebuilt { get; }

    /// <summary>
    /// Judges the directory of a proven node, and records it if it is new. The answer is sent to the node, so the
    /// record is on stable storage when this returns.
    /// </summary>
    /// <exception cref="IOException">It could not be recorded; no answer is sent.</exception>
    PeerDirectoryAnswer Meet(NodeId peer, ulong directoryId, bool rebuilt);

    /// <summary>Receives a proven node's answer about this node's directory.</summary>
    void Heard(NodeId peer, PeerDirectoryAnswer answer);

    /// <summary>
    /// A link to a node with this directory begins: frames of older links are no longer delivered, those of this one
    /// not yet. False when another directory was met since; the link must not begin then.
    /// </summary>
    bool Linked(NodeId peer, ulong directoryId);
}
