using Microsoft.AspNetCore.Server.Kestrel.Core;

namespace Kahuna.Server.Api.Calls;

/// <summary>The limits of the HTTP endpoint. Used at start-up.</summary>
internal static class KestrelLimits
{
    /// <summary>Maximum of connections, unless descriptors run out earlier: 0.6 GB at about 60 KB each.</summary>
    public const int ConnectionsMax = 10_000;

    /// <summary>
    /// Concurrent calls per connection; further ones wait in the client. The connection's window bounds their unread
    /// bytes.
    /// </summary>
    public const int StreamsPerConnectionMax = 1_000;

    /// <summary>Flow-control window of a stream: sustains 2 GB/s at a delay of one millisecond.</summary>
    public const int StreamWindowBytes = 2 << 20;

    /// <summary>Flow-control window of a connection with all its streams.</summary>
    public const int ConnectionWindowBytes = 8 << 20;

    /// <summary>
    /// Sets the limits of connections, streams, headers and idle time. Must run before the endpoints are configured.
    /// </summary>
    public static void ConfigureKahunaLimits(this KestrelServerOptions kestrel)
    {
        kestrel.AddServerHeader = false;
        KestrelServerLimits limits = kestrel.Limits;
        limits.MaxConcurrentConnections = ConnectionsMax;

        // Calls reset callers that do not read (CallLimits.ReplyTimeout), and pings detect dead peers. A minimum rate
        // would not do: it closes the whole connection, and every ping or byte on any of its streams postpones that.
        limits.MinResponseDataRate = null;
        limits.Http2.MaxStreamsPerConnection = StreamsPerConnectionMax;
        limits.Http2.InitialStreamWindowSize = StreamWindowBytes;
        limits.Http2.InitialConnectionWindowSize = ConnectionWindowBytes;
        limits.Http2.KeepAlivePingDelay = TimeSpan.FromSeconds(15);
        limits.Http2.KeepAlivePingTimeout = TimeSpan.FromSeconds(15);
        kestrel.ConfigureEndpointDefaults(static listen => listen.Use(static next => connection =>
        {
            connection.Features.Set(new ConnectionQuota(connection));
            return next(connection);
        }));
    }
}
