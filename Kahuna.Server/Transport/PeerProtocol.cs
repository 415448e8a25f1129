using System.Net.Security;
using Kahuna.Wire;

namespace Kahuna.Server.Transport;

/// <summary>
/// Constants of the protocol between nodes (docs/adr/0006-peer-links.md). Any thread.
/// <code>
/// link:   TLS with the application protocol kahuna-peer/1, then the handshake (PeerHandshake), then frames
/// frame:  u32 length of the payload, little-endian, payload; length 0 is a keep-alive
/// </code>
/// </summary>
internal static class PeerProtocol
{
    /// <summary>
    /// The versions of handshake and frames that this build speaks. Two nodes agree on the highest that both speak;
    /// from 6 on a hello names its sender's range and feature levels.
    /// </summary>
    public static readonly PeerVersions Versions = new(5, 6);

    /// <summary>Size of the length prefix of each frame.</summary>
    public const int FramePrefixBytes = 4;

    /// <summary>
    /// Largest payload of a frame: the largest frame of a client, in one log entry, with its envelope.
    /// </summary>
    public const int FrameBytesMax = Limits.FrameBytesMax + (1 << 20);

    /// <summary>Application protocol in the ClientHello by which the listener recognizes a node.</summary>
    public static readonly SslApplicationProtocol ApplicationProtocol = new("kahuna-peer/1");
}
