using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Text;
using Kahuna.Client.Connection;
using Kahuna.Server.Transport;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Sockets;

namespace Kahuna.Tests.Transport.Direct;

/// <summary>A client's direct link that a test plays by hand, over loopback. Owned by one test.</summary>
internal sealed class RawLink : IDisposable
{
    private readonly FrameReader _frames = new();
    private readonly SslStream _stream;

    private RawLink(SslStream stream) => _stream = stream;

    /// <summary>A node's links with the certificate of tests.</summary>
    public static DirectLinks Links(int linksMax, LogRecorder? log = null) => new(
        new TlsSource(SslStreamCertificateContext.Create(TestCertificate.Instance, null), null), linksMax,
        (log ?? new LogRecorder()).CreateLogger(""));

    /// <summary>A connection that has just been made: the client's end, and the node's.</summary>
    public static (Socket Client, Socket Node) Pair()
    {
        using Socket listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen();
        Socket client = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        client.Connect(listener.LocalEndPoint!);
        return (client, listener.Accept());
    }

    /// <summary>Connects, as far as TLS.</summary>
    /// <exception cref="IOException">The links take no connection.</exception>
    public static async Task<RawLink> ConnectAsync(DirectLinks links)
    {
        (Socket client, Socket node) = Pair();
        links.Accept(node, null);
        return await GreetAsync(client);
    }

    /// <summary>Does TLS over a connection.</summary>
    public static async Task<RawLink> GreetAsync(Socket client)
    {
        SslStream stream = new(new NetworkStream(client, ownsSocket: true));
        await stream.AuthenticateAsClientAsync(new SslClientAuthenticationOptions
        {
            TargetHost = "localhost",
            ApplicationProtocols = [DirectLinkProtocol.ApplicationProtocol],
            RemoteCertificateValidationCallback = static (_, _, _, _) => true,
        }).WaitAsync(LastNet.Minute);
        return new RawLink(stream);
    }

    /// <summary>A link that the node has taken.</summary>
    public static async Task<RawLink> OpenAsync(DirectLinks links, string ticket)
    {
        RawLink link = await ConnectAsync(links);
        Assert.True(await link.IsTakenAsync(ticket));
        return link;
    }

    /// <summary>Shows a ticket; whether the node takes the link.</summary>
    public async Task<bool> IsTakenAsync(string ticket)
    {
        await SendAsync(Encoding.ASCII.GetBytes(ticket));
        byte[] answer = new byte[1];
        return await ReadAsync(answer) == 1 && answer[0] == DirectLinkProtocol.Taken;
    }

    public Task SendAsync(byte[] bytes) => _stream.WriteAsync(bytes).AsTask();

    /// <summary>Reads bytes; 0 at the end, also when the connection is reset.</summary>
    public async Task<int> ReadAsync(Memory<byte> buffer)
    {
        try
        {
            return await _stream.ReadAsync(buffer).AsTask().WaitAsync(LastNet.Minute);
        }
        catch (IOException)
        {
            return 0;
        }
    }

    /// <summary>Reads frames until one is as wanted; false at the end of the link.</summary>
    public async Task<bool> ReadUntilAsync(IsLast isLast)
    {
        while (true)
        {
            while (_frames.TryTake(out ReadOnlySpan<byte> payload))
            {
                if (Frame.TryReadHeader(payload, out FrameKind kind, out _, out _) && isLast(kind, payload))
                {
                    return true;
                }
            }

            int bytes = await ReadAsync(_frames.Space());
            if (bytes == 0)
            {
                return false;
            }

            _frames.Advance(bytes);
        }
    }

    public void Dispose()
    {
        _stream.Dispose();
        _frames.Dispose();
    }

    /// <summary>Whether a frame is the one to wait for.</summary>
    public delegate bool IsLast(FrameKind kind, ReadOnlySpan<byte> payload);
}
