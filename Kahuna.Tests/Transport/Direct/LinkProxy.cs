using System.Net;
using System.Net.Sockets;
using Kahuna.Server.Transport;

namespace Kahuna.Tests.Transport.Direct;

/// <summary>
/// Something between a client and a node that passes connections on, and does with direct links what a test wants.
/// Owned by one test.
/// </summary>
internal sealed class LinkProxy : IDisposable
{
    private readonly Socket _listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
    private readonly List<(Socket Socket, bool IsLink)> _open = [];
    private int _links;

    public LinkProxy()
    {
        _listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        _listener.Listen();
        Port = ((IPEndPoint)_listener.LocalEndPoint!).Port;
        _ = AcceptAsync();
    }

    public int Port { get; }

    /// <summary>The node's port.</summary>
    public int Target { get; set; }

    /// <summary>Where links go; null: nowhere, so that they hang. <see cref="Cut"/>: they are cut.</summary>
    public int? LinkTarget { get; set; } = Cut;

    /// <summary>No port.</summary>
    public const int Cut = 0;

    /// <summary>Links that clients have dialled.</summary>
    public int Links => Volatile.Read(ref _links);

    /// <summary>Cuts connections.</summary>
    public void CutOff(bool links, bool others)
    {
        lock (_open)
        {
            foreach ((Socket socket, bool isLink) in _open)
            {
                if (isLink ? links : others)
                {
                    socket.Dispose();
                }
            }

            _open.RemoveAll(one => one.IsLink ? links : others);
        }
    }

    public void Dispose()
    {
        _listener.Dispose();
        CutOff(links: true, others: true);
    }

    private async Task AcceptAsync()
    {
        try
        {
            while (true)
            {
                _ = ServeAsync(await _listener.AcceptAsync());
            }
        }
        catch (Exception error) when (error is SocketException or ObjectDisposedException)
        {
            // The test is over.
        }
    }

    private async Task ServeAsync(Socket client)
    {
        try
        {
            byte[] first = new byte[16 * 1024];
            int count = 0;
            ClientHelloKind kind;
            do
            {
                count += await client.ReceiveAsync(first.AsMemory(count)) is var more and > 0
                    ? more : throw new IOException("closed");
                kind = ClientHello.Classify(first.AsSpan(0, count));
            }
            while (kind == ClientHelloKind.Incomplete);

            bool isLink = kind == ClientHelloKind.Link;
            Keep(client, isLink);
            if (isLink)
            {
                Interlocked.Increment(ref _links);
            }

            if (isLink && LinkTarget is null)
            {
                return;
            }

            if ((isLink ? LinkTarget!.Value : Target) is var port and not Cut)
            {
                Socket node = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
                Keep(node, isLink);
                await node.ConnectAsync(IPAddress.Loopback, port);
                await node.SendAsync(first.AsMemory(0, count));
                await Task.WhenAny(CopyAsync(client, node), CopyAsync(node, client));
                node.Dispose();
            }
        }
        catch (Exception error) when (error is SocketException or IOException or ObjectDisposedException)
        {
            // An end of either.
        }

        client.Dispose();
    }

    private void Keep(Socket socket, bool isLink)
    {
        lock (_open)
        {
            _open.Add((socket, isLink));
        }
    }

    private static async Task CopyAsync(Socket from, Socket to)
    {
        byte[] buffer = new byte[64 * 1024];
        try
        {
            while (await from.ReceiveAsync(buffer) is var count and > 0)
            {
                await to.SendAsync(buffer.AsMemory(0, count));
            }
        }
        catch (Exception error) when (error is SocketException or ObjectDisposedException)
        {
            // Cut.
        }
    }
}
