using System.Net;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Transport;

/// <summary>All log messages of the links. Stateless.</summary>
internal static partial class PeerLog
{
    [LoggerMessage(EventId = 300, Level = LogLevel.Information, Message = "The link to node {Peer} is up ({Remote}).")]
    public static partial void Up(this ILogger logger, NodeId peer, EndPoint? remote);

    [LoggerMessage(EventId = 301, Level = LogLevel.Information, Message = "The link to node {Peer} is down: {Reason}.")]
    public static partial void Down(this ILogger logger, NodeId peer, string reason);

    [LoggerMessage(
        EventId = 302,
        Level = LogLevel.Warning,
        Message =
            "Cannot connect to node {Peer} at {Address}: {Reason}. Retrying until it succeeds; this is "
                + "logged once a minute at most.")]
    public static partial void CannotConnect(this ILogger logger, NodeId peer, Uri address, string reason);

    [LoggerMessage(
        EventId = 303,
        Level = LogLevel.Warning,
        Message =
            "Node {Peer} at {Address} and this node do not link: {Reason}. Retrying until it succeeds; this is "
                + "logged once a minute at most.")]
    public static partial void Refused(this ILogger logger, NodeId peer, Uri address, string reason);

    [LoggerMessage(
        EventId = 304,
        Level = LogLevel.Warning,
        Message =
            "Refused a node link from {Remote}: {Reason}. This is logged once a minute at most; "
                + "{LeftOut} such lines were left out.")]
    public static partial void RefusedFrom(this ILogger logger, IPAddress? remote, string reason, long leftOut);

    [LoggerMessage(
        EventId = 305,
        Level = LogLevel.Warning,
        Message =
            "The queue to node {Peer} is full; frames are dropped until it reads again. This is "
                + "logged once a minute at most.")]
    public static partial void QueueFull(this ILogger logger, NodeId peer);

    [LoggerMessage(
        EventId = 306,
        Level = LogLevel.Warning,
        Message =
            "A connection could not be accepted: {Reason}. This is logged once a minute at most; "
                + "{LeftOut} such lines were left out.")]
    public static partial void CannotAccept(this ILogger logger, string reason, long leftOut);

    [LoggerMessage(
        EventId = 308,
        Level = LogLevel.Warning,
        Message =
            "The link to node {Peer} is up, but would be refused with --peer-tls mutual: {Reason}. This is logged once "
                + "a minute at most.")]
    public static partial void WouldBeRefused(this ILogger logger, NodeId peer, string reason);

    [LoggerMessage(
        EventId = 309,
        Level = LogLevel.Warning,
        Message =
            "Refused a connection from {Remote}: that address has as many open as --connections-per-address allows. "
                + "This is logged once a minute at most; {LeftOut} such lines were left out.")]
    public static partial void Crowded(this ILogger logger, IPAddress remote, long leftOut);

    [LoggerMessage(EventId = 307, Level = LogLevel.Debug, Message = "A TLS handshake with a client failed: {Reason}")]
    public static partial void HandshakeFailed(this ILogger logger, string reason);

    [LoggerMessage(EventId = 310, Level = LogLevel.Debug, Message = "A client's direct link failed: {Reason}")]
    public static partial void DirectLinkFailed(this ILogger logger, string reason);
}
