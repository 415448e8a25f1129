namespace Kahuna.Server.Transport;

/// <summary>Reason why a node refuses a link. Values are part of the handshake.</summary>
internal enum PeerRefusal : byte
{
    None = 0,

    /// <summary>The message is no handshake.</summary>
    Malformed = 1,

    /// <summary>The other node speaks another version.</summary>
    Version = 2,

    /// <summary>The other node belongs to another cluster.</summary>
    ClusterId = 3,

    /// <summary>The other node's id is not in the cluster, or is this node's own.</summary>
    UnknownNode = 4,

    /// <summary>The other node expected another node at this address.</summary>
    WrongNode = 5,

    /// <summary>The node with the greater id must connect to the one with the smaller id.</summary>
    WrongDirection = 6,

    /// <summary>The other node was started with another number of partitions.</summary>
    Partitions = 7,

    /// <summary>The other node does not know the cluster's secret.</summary>
    Secret = 8,

    /// <summary>
    /// The other node's data directory differs from the known one. Sent only in an answer, which is authenticated,
    /// never in a refusal, which is not.
    /// </summary>
    Directory = 9,

    /// <summary>
    /// The other node was started with other voters. The refusal lists those of its sender: u16 each.
    /// </summary>
    Voters = 10,

    /// <summary>
    /// The other node does not support the cluster's feature level, or this one does not. Never sent: both sides know
    /// it from the hellos, and it counts only once these are proven.
    /// </summary>
    FeatureLevel = 11,

    /// <summary>
    /// The certificate of the side that connected is missing, or does not prove that it is the node that it says it is.
    /// </summary>
    Certificate = 12,
}

/// <summary>
/// A node link was refused: by the other side if <paramref name="byOther"/>, else by this one. The message is for the
/// log. Immutable.
/// </summary>
internal sealed class PeerHandshakeException(PeerRefusal reason, string message, bool byOther = false)
    : Exception(message)
{
    public PeerRefusal Reason => reason;

    public bool ByOther => byOther;
}
