using Kahuna.Server.Primitives;

namespace Kahuna.Server.Transport;

/// <summary>
/// Port: which data directories of the other nodes are known, and what the own one is (docs/adr/0009-who-may-vote.md). Called by the threads of the links;
/// any thread.
/// </summary>
internal interface IPeerDirectory
{
    /// <summary>The id that this node's data directory drew; never 0, and the same for as long as the links live.</summary>
    ulong OwnDirectoryId { get; }

    /// <summary>Whether this node's directory was rebuilt and is not restored yet. The other nodes then take it in the place of the one that they know.</summary>
    bool Rebuilt { get; }

    /// <summary>
    /// A node has proven itself and shows this directory. Records it when it is new. The answer goes to the node, so it is on stable storage when this returns.
    /// </summary>
    /// <exception cref="IOException">It could not be recorded; nothing is answered.</exception>
    PeerDirectoryAnswer Meet(NodeId peer, ulong directoryId, bool rebuilt);

    /// <summary>A node that has proven itself, and whose own directory is accepted here or was not asked about, says this of the directory of this node.</summary>
    void Heard(NodeId peer, PeerDirectoryAnswer answer);

    /// <summary>
    /// A link with this directory of a node begins: no frame of an older link is delivered any more, and none of this one yet. False when another directory
    /// was met since, and the link must not begin.
    /// </summary>
    bool Linked(NodeId peer, ulong directoryId);
}
