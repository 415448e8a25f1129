using System.Net.Security;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;

namespace Kahuna.Server.Transport;

/// <summary>Puts clients and nodes on the same port of a Kestrel host. Stateless.</summary>
internal static class PeerHosting
{
    /// <summary>A client that connects must have said its greeting by then.</summary>
    private static readonly TimeSpan s_tlsTimeout = TimeSpan.FromSeconds(10);

    /// <summary>HTTP/1.1 and HTTP/2 over TLS with this certificate.</summary>
    public static ListenOptions UseKahunaTls(this ListenOptions listen, SslStreamCertificateContext certificate)
    {
        listen.Protocols = HttpProtocols.Http1AndHttp2;
        return listen.UseHttps(new TlsHandshakeCallbackOptions
        {
            HandshakeTimeout = s_tlsTimeout,
            OnConnection = _ => ValueTask.FromResult(new SslServerAuthenticationOptions
            {
                ServerCertificateContext = certificate,
                AllowRenegotiation = false,
            }),
        });
    }

    /// <summary>Gives connections of other nodes, on every address that the host listens on, to these links.</summary>
    public static IServiceCollection AddKahunaPeers(this IServiceCollection services, PeerLinks links) =>
        services.AddSingleton<IConnectionListenerFactory>(provider => new PeerListenerFactory(links, provider.GetRequiredService<ILoggerFactory>()));
}
