using System.Net.Security;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;

namespace Kahuna.Server.Transport;

/// <summary>Serves clients and nodes on the same port of a Kestrel host. Stateless.</summary>
internal static class PeerHosting
{
    /// <summary>Timeout of a client's TLS handshake.</summary>
    private static readonly TimeSpan s_tlsTimeout = TimeSpan.FromSeconds(10);

    /// <summary>
    /// HTTP/1.1 and HTTP/2 over TLS, with the current certificate at the time of connecting, and a limit on concurrent
    /// handshakes.
    /// </summary>
    /// <param name="listen">The end point.</param>
    /// <param name="tls">The node's certificate.</param>
    /// <param name="certificates">Asks clients for certificates; null: they are not asked.</param>
    public static ListenOptions UseKahunaTls(
        this ListenOptions listen, TlsSource tls, ClientCertificates? certificates = null)
    {
        listen.Protocols = HttpProtocols.Http1AndHttp2;
        ILogger logger = listen.ApplicationServices.GetRequiredService<ILoggerFactory>()
            .CreateLogger("Kahuna.Transport");
        HandshakeLimiter limiter = new(error => logger.HandshakeFailed(error.Message));
        listen.Use(limiter.Waiting);
        listen.UseHttps(new TlsHandshakeCallbackOptions
        {
            HandshakeTimeout = s_tlsTimeout,
            OnConnection = context => ValueTask.FromResult(OptionsOf(tls, certificates, context.Connection)),
        });
        listen.Use(HandshakeLimiter.Done);
        return listen;
    }

    private static SslServerAuthenticationOptions OptionsOf(
        TlsSource tls, ClientCertificates? certificates, ConnectionContext connection)
    {
        TlsMaterial own = tls.Current;
        SslServerAuthenticationOptions options = new()
        {
            ServerCertificateContext = own.Certificate,
            AllowRenegotiation = false,
        };
        certificates?.AskFor(options, own, connection);
        return options;
    }

    /// <summary>Routes connections of other nodes, on every address that the host listens on, to these links.</summary>
    /// <param name="services">The host's services.</param>
    /// <param name="links">The links of this node.</param>
    /// <param name="failed">Called when a listener ended although it was not closed; null to ignore it.</param>
    /// <param name="addresses">Limits the connections of each address; null: there is no limit.</param>
    /// <param name="direct">Takes clients' direct links; null: there are none.</param>
    public static IServiceCollection AddKahunaPeers(
        this IServiceCollection services,
        PeerLinks links,
        Action<Exception>? failed = null,
        AddressLimiter? addresses = null,
        DirectLinks? direct = null)
    {
        ListenerCallbacks owner = new(links.Accept, links.CannotAccept, failed ?? (static _ => { }))
        {
            TakeLink = direct is null ? null : direct.Accept,
        };
        addresses ??= new AddressLimiter(0);
        return services.AddSingleton<IConnectionListenerFactory>(
            provider => new PeerListenerFactory(owner, addresses, provider.GetRequiredService<ILoggerFactory>()));
    }
}
