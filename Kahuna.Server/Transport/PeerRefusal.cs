namespace Kahuna.Server.Transport;

/// <summary>Why a node does not accept another one. Values are part of the handshake.</summary>
internal enum PeerRefusal : byte
{
    None = 0,

    /// <summary>What came is no handshake.</summary>
    Malformed = 1,

    /// <summary>The other speaks another version.</summary>
    Version = 2,

    /// <summary>The other belongs to another cluster.</summary>
    ClusterId = 3,

    /// <summary>The other's id is none of the cluster's, or is the own one.</summary>
    UnknownNode = 4,

    /// <summary>The other looked for another node at this address.</summary>
    WrongNode = 5,

    /// <summary>The node with the greater id connects to the one with the smaller id, not the other way.</summary>
    WrongDirection = 6,

    /// <summary>The other was started with another number of partitions.</summary>
    Partitions = 7,

    /// <summary>The other does not know the cluster's secret.</summary>
    Secret = 8,

    /// <summary>The other's data directory is another one than the one that is known here. Said in an answer, which is proven, and never in a refusal, which is not.</summary>
    Directory = 9,

    /// <summary>The other was started for other nodes. The refusal names those of its sender: u16 each.</summary>
    Voters = 10,
}
