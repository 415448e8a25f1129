using System.Net.Security;
using Kahuna.Client.Wire;

namespace Kahuna.Server.Transport;

/// <summary>
/// Names and limits of the links between nodes (docs/adr/0006-peer-links.md). Constants; any thread.
/// <code>
/// link:   TLS with the application protocol kahuna-peer/1, then the handshake (PeerHandshake), then frames
/// frame:  u32 length of the payload, little-endian, payload; length 0 only shows that the sender lives
/// </code>
/// </summary>
internal static class PeerProtocol
{
    /// <summary>Version of handshake and frames; both sides must have the same one.</summary>
    public const ushort Version = 5;

    /// <summary>The length in front of each frame.</summary>
    public const int FramePrefixBytes = 4;

    /// <summary>Largest payload of a frame: room for the largest frame that a client may send, in one log entry, with its envelope.</summary>
    public const int FrameBytesMax = Limits.FrameBytesMax + (1 << 20);

    /// <summary>By this name in the TLS greeting a node tells the listener that it is not an HTTP client.</summary>
    public static readonly SslApplicationProtocol ApplicationProtocol = new("kahuna-peer/1");
}
