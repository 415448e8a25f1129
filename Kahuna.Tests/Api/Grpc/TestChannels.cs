using System.Net.Security;
using System.Net.Sockets;
using Grpc.Net.Client;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>
/// Channels of the official gRPC client, as any caller in .NET has them: each over one connection, which the next call
/// makes again after a loss. Stateless.
/// </summary>
internal static class TestChannels
{
    /// <summary>A channel to an address; the caller disposes it.</summary>
    /// <param name="address">With https over TLS, with http over HTTP/2 without it.</param>
    /// <param name="tls">What the channel trusts; null: <see cref="TestCertificate"/>.</param>
    /// <param name="connectTimeout">How long making a connection may take; null: ten seconds.</param>
    public static GrpcChannel To(
        Uri address, SslClientAuthenticationOptions? tls = null, TimeSpan? connectTimeout = null)
    {
        SocketsHttpHandler handler = new()
        {
            ActivityHeadersPropagator = null,
            ConnectCallback = DialAsync,
            ConnectTimeout = connectTimeout ?? TimeSpan.FromSeconds(10),
            EnableMultipleHttp2Connections = false,
            PooledConnectionIdleTimeout = Timeout.InfiniteTimeSpan,
            SslOptions = tls ?? TestCertificate.Trust,
            UseProxy = false,
        };
        return GrpcChannel.ForAddress(
            address, new GrpcChannelOptions { HttpHandler = handler, DisposeHttpClient = true });
    }

    /// <summary>
    /// Without it the channel would pause after a connection that failed, and refuse calls meanwhile.
    /// </summary>
    private static async ValueTask<Stream> DialAsync(SocketsHttpConnectionContext context, CancellationToken ct)
    {
        Socket socket = new(SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        try
        {
            await socket.ConnectAsync(context.DnsEndPoint, ct);
            return new NetworkStream(socket, ownsSocket: true);
        }
        catch
        {
            socket.Dispose();
            throw;
        }
    }
}
