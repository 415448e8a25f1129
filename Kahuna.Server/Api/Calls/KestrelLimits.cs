using Microsoft.AspNetCore.Server.Kestrel.Core;

namespace Kahuna.Server.Api.Calls;

/// <summary>The limits of the endpoint, in one place. Used at start-up.</summary>
internal static class KestrelLimits
{
    /// <summary>Connections at a time, where descriptors do not end earlier: at some 60 KB each, 0.6 GB.</summary>
    public const int ConnectionsMax = 10_000;

    /// <summary>Calls at a time on one connection; further ones wait in the client. What they send but nobody has read is bounded by the connection's window.</summary>
    public const int StreamsPerConnectionMax = 1_000;

    /// <summary>What a peer may send on one stream before it is read: keeps a stream full at 2 GB/s and a millisecond of delay.</summary>
    public const int StreamWindowBytes = 2 << 20;

    /// <summary>As above for a connection with all its streams.</summary>
    public const int ConnectionWindowBytes = 8 << 20;

    /// <summary>Sets the limits of connections, streams, headers and silence. To be called before the endpoints are listed.</summary>
    public static void ConfigureKahunaLimits(this KestrelServerOptions kestrel)
    {
        kestrel.AddServerHeader = false;
        KestrelServerLimits limits = kestrel.Limits;
        limits.MaxConcurrentConnections = ConnectionsMax;

        // Calls cut off callers that do not take their answers (GrpcServerOptions.ReplyPatience); pings find dead peers. A rate would not do: it closes the whole connection,
        // and every ping or byte that leaves on any stream of it puts the end off for all of them.
        limits.MinResponseDataRate = null;
        limits.Http2.MaxStreamsPerConnection = StreamsPerConnectionMax;
        limits.Http2.InitialStreamWindowSize = StreamWindowBytes;
        limits.Http2.InitialConnectionWindowSize = ConnectionWindowBytes;
        limits.Http2.KeepAlivePingDelay = TimeSpan.FromSeconds(15);
        limits.Http2.KeepAlivePingTimeout = TimeSpan.FromSeconds(15);
        kestrel.ConfigureEndpointDefaults(static listen => listen.Use(static next => connection =>
        {
            connection.Features.Set(new ConnectionShare(connection));
            return next(connection);
        }));
    }
}
