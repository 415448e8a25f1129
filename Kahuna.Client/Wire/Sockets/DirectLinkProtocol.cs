using System.Net.Security;

namespace Kahuna.Wire.Sockets;

/// <summary>
/// The protocol of direct links: the connection that carries the frames of one stream, instead of the HTTP/2 connection
/// on which the stream was opened (docs/adr/0054-direct-links.md). Any thread.
/// <code>
/// call:   Exchange with the header kahuna-link: 1; the node's headers have kahuna-link: ticket, if it has a place
/// link:   TLS with the application protocol kahuna-link/1, the ticket, one byte of the node, then messages both ways
/// byte:   1: the link carries the stream, if the first Hello comes on it; anything else: it does not
/// </code>
/// The messages are those of the call, each with its five-byte prefix. The call stays open: it says who the client is,
/// and how the stream ended.
/// </summary>
internal static class DirectLinkProtocol
{
    /// <summary>The header by which a client asks for a link, and the node names the ticket.</summary>
    public const string Header = "kahuna-link";

    /// <summary>What the client says in <see cref="Header"/>.</summary>
    public const string Wanted = "1";

    /// <summary>Characters of a ticket: 128 bits in hexadecimal.</summary>
    public const int TicketChars = 32;

    /// <summary>The node takes the link.</summary>
    public const byte Taken = 1;

    /// <summary>Largest time from connecting to the node's byte; the node ends it then.</summary>
    public static readonly TimeSpan OpenTimeout = TimeSpan.FromSeconds(10);

    /// <summary>The application protocol in the ClientHello.</summary>
    public static readonly SslApplicationProtocol ApplicationProtocol = new("kahuna-link/1");

    /// <summary>Whether this system can send without waiting, which links need.</summary>
    public static bool IsSupported => OperatingSystem.IsLinux();
}
