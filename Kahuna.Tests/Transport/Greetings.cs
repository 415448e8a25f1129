using System.Net.Security;
using System.Text;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Transport;

/// <summary>First bytes of TLS connections. Stateless.</summary>
internal static class Greetings
{
    /// <summary>The whole greeting of a client that offers these protocols.</summary>
    public static async Task<byte[]> RealAsync(string protocols)
    {
        (Stream server, Stream client) = await LoopbackPair.ConnectAsync();
        await using Stream serverEnd = server;
        await using SslStream tls = new(client);
        SslClientAuthenticationOptions options = new() { TargetHost = "localhost" };
        if (protocols.Length > 0)
        {
            options.ApplicationProtocols =
                [.. protocols.Split(',').Select(name => new SslApplicationProtocol(Encoding.ASCII.GetBytes(name)))];
        }

        Task dialling = tls.AuthenticateAsClientAsync(options);
        byte[] header = new byte[5];
        await serverEnd.ReadExactlyAsync(header);
        byte[] body = new byte[(header[3] << 8) | header[4]];
        await serverEnd.ReadExactlyAsync(body);
        await serverEnd.DisposeAsync();
        await Assert.ThrowsAnyAsync<Exception>(() => dialling);
        return [.. header, .. body];
    }
}
