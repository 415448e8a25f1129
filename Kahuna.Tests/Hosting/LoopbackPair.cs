using System.Net;
using System.Net.Sockets;

namespace Kahuna.Tests.Hosting;

/// <summary>Two ends of one TCP connection on loopback.</summary>
internal static class LoopbackPair
{
    public static async Task<(Stream Server, Stream Client)> ConnectAsync()
    {
        using Socket listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen();
        Socket client = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        await client.ConnectAsync(listener.LocalEndPoint!);
        return (
            new NetworkStream(await listener.AcceptAsync(), ownsSocket: true),
            new NetworkStream(client, ownsSocket: true));
    }
}
