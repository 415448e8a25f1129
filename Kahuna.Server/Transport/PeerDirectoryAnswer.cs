namespace Kahuna.Server.Transport;

/// <summary>What a node says of the data directory that another one has shown it. Values are part of the handshake.</summary>
internal enum PeerDirectoryAnswer : byte
{
    /// <summary>It is another one than the one that is known here; there will be no link.</summary>
    AnotherDirectory = 1,

    /// <summary>It is the one that is known here, but there may have been others before.</summary>
    Known = 2,

    /// <summary>It is known here, durably, and there never was another one of this node.</summary>
    OnlyDirectory = 3,
}
