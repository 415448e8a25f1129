using System.Net;
using Kahuna.Server.Api.Access;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.RateLimits;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Transport;
using Microsoft.AspNetCore.Server.Kestrel.Core;

namespace Kahuna.Server.Hosting;

/// <summary>
/// The listening end points of a node: limits, TLS, and what tracks their connections. Owned by the node:
/// <see cref="Configure"/> once at start-up, <see cref="TrimMemory"/> from one thread at a time.
/// </summary>
/// <param name="addresses">The addresses to bind.</param>
/// <param name="tls">The node's certificate.</param>
/// <param name="certificates">Asks clients for certificates.</param>
internal sealed class NodeListener(IReadOnlyList<Uri> addresses, TlsSource tls, ClientCertificates certificates)
{
    private readonly ConnectionMemoryTrimmer _connections = new(ProcessMemory.Trim);
    private readonly UnreadConnections _unread = new(UnreadConnections.Patience);
    private readonly NodeRateLimiter _rateLimiter = new(TimeProvider.System);

    /// <summary>Open connections.</summary>
    public int Connections => _connections.Open;

    /// <summary>Adds the end points to the web server.</summary>
    public void Configure(KestrelServerOptions kestrel)
    {
        kestrel.ConfigureKahunaLimits();
        foreach (IPEndPoint endPoint in addresses.SelectMany(ListenEndPoints.Of))
        {
            kestrel.Listen(endPoint, listen =>
            {
                listen.Use(_connections.Middleware);
                listen.Use(_unread.Middleware);
                listen.Use(_rateLimiter.Middleware);
                listen.Use(ConnectionCaller.Middleware);
                listen.UseKahunaTls(tls, certificates);
            });
        }
    }

    /// <summary>Returns the memory of closed connections to the system, if there were many.</summary>
    public void TrimMemory() => _connections.Check();
}
