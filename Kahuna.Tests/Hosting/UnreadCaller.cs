using System.Net.Security;
using System.Net.Sockets;
using System.Text;

namespace Kahuna.Tests.Hosting;

/// <summary>A caller over TLS and HTTP/1.1 that asks and reads nothing, or a byte now and then. Owned by one test.
/// </summary>
internal sealed class UnreadCaller : IAsyncDisposable
{
    private readonly Socket _socket;
    private readonly SslStream _stream;

    private UnreadCaller(Socket socket, SslStream stream) => (_socket, _stream) = (socket, stream);

    /// <summary>Connects and asks.</summary>
    /// <param name="node">The server.</param>
    /// <param name="path">What it asks for.</param>
    /// <param name="times">How often, without waiting for answers.</param>
    public static async Task<UnreadCaller> AskAsync(Uri node, string path, int times)
    {
        // A small buffer, so that the server notices soon.
        Socket socket = new(SocketType.Stream, ProtocolType.Tcp) { ReceiveBufferSize = 4_096 };
        await socket.ConnectAsync(node.Host, node.Port);
        SslStream stream = new(new NetworkStream(socket, ownsSocket: true), false, static (_, _, _, _) => true);
        await stream.AuthenticateAsClientAsync(node.Host);
        StringBuilder requests = new();
        for (int i = 0; i < times; i++)
        {
            requests.Append("GET ").Append(path).Append(" HTTP/1.1\r\nhost: node\r\n\r\n");
        }

        await stream.WriteAsync(Encoding.ASCII.GetBytes(requests.ToString()));
        return new UnreadCaller(socket, stream);
    }

    /// <summary>Reads one byte each time this much time has passed, until either side ends the connection.</summary>
    public async Task ReadSlowlyAsync(TimeSpan pause)
    {
        byte[] one = new byte[1];
        try
        {
            while (await _socket.ReceiveAsync(one) > 0)
            {
                await Task.Delay(pause);
            }
        }
        catch (Exception error) when (error is SocketException or ObjectDisposedException)
        {
            // The server has reset the connection, or the test is over.
        }
    }

    public ValueTask DisposeAsync()
    {
        // Without a farewell, which would wait for the server.
        _socket.Dispose();
        return _stream.DisposeAsync();
    }
}
