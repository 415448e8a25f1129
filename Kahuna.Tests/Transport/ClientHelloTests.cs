using System.Net.Security;
using System.Text;
using Kahuna.Server.Transport;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Transport;

/// <summary>Telling nodes from clients by their first bytes.</summary>
public sealed class ClientHelloTests
{
    [Theory]
    [InlineData("kahuna-peer/1", true)]
    [InlineData("h2,kahuna-peer/1", true)]
    [InlineData("h2,http/1.1", false)]
    [InlineData("kahuna-peer/10", false)]
    [InlineData("", false)]
    public async Task A_real_greeting_is_classified_and_every_part_of_it_is_incomplete(string protocols, bool peer)
    {
        byte[] greeting = await Greeting(protocols);
        ClientHelloKind expected = peer ? ClientHelloKind.Peer : ClientHelloKind.Other;

        Assert.Equal(expected, ClientHello.Classify(greeting));
        for (int length = 0; length < greeting.Length; length++)
        {
            ClientHelloKind kind = ClientHello.Classify(greeting.AsSpan(0, length));
            Assert.True(kind == ClientHelloKind.Incomplete || kind == expected, $"{length} bytes: {kind}");
        }
    }

    [Fact]
    public void Other_protocols_are_for_others()
    {
        Assert.Equal(ClientHelloKind.Other, ClientHello.Classify("GET / HTTP/1.1\r\n"u8));
        Assert.Equal(ClientHelloKind.Other, ClientHello.Classify("P"u8));
        Assert.Equal(ClientHelloKind.Incomplete, ClientHello.Classify([]));
        Assert.Equal(ClientHelloKind.Other, ClientHello.Classify([22, 3, 1, 0, 4, 2, 0, 0, 0]));
    }

    [Fact]
    public async Task Damaged_greetings_do_no_harm()
    {
        byte[] greeting = await Greeting("kahuna-peer/1");
        Random random = new(11);
        for (int i = 0; i < 20_000; i++)
        {
            byte[] damaged = [.. greeting];
            for (int flips = random.Next(1, 8); flips > 0; flips--)
            {
                damaged[random.Next(damaged.Length)] = (byte)random.Next(256);
            }

            Assert.True(Enum.IsDefined(ClientHello.Classify(damaged.AsSpan(0, random.Next(damaged.Length + 1)))));
        }
    }

    private static async Task<byte[]> Greeting(string protocols)
    {
        (Stream server, Stream client) = await LoopbackPair.ConnectAsync();
        await using Stream serverEnd = server;
        await using SslStream tls = new(client);
        SslClientAuthenticationOptions options = new() { TargetHost = "localhost" };
        if (protocols.Length > 0)
        {
            options.ApplicationProtocols = [.. protocols.Split(',').Select(name => new SslApplicationProtocol(Encoding.ASCII.GetBytes(name)))];
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
