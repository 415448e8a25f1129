using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Text;
using Grpc.Core;
using Grpc.Net.Client;
using Kahuna.Wire.Protos;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>
/// What a flood is made of: bare TLS connections, streams that wait for nobody, and a polite call that shows whether
/// others are served. Stateless.
/// </summary>
internal static class FloodClient
{
    private static readonly TimeSpan s_deadline = LastNet.Span;

    /// <summary>A TLS connection that says nothing more; null when it was refused.</summary>
    public static async Task<SslStream?> ConnectAsync(Uri address)
    {
        Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        SslStream? tls = null;
        try
        {
            await socket.ConnectAsync(IPAddress.Loopback, address.Port);
            tls = new SslStream(new NetworkStream(socket, ownsSocket: true));
            await tls.AuthenticateAsClientAsync(new SslClientAuthenticationOptions
            {
                TargetHost = "localhost",
                ApplicationProtocols = [SslApplicationProtocol.Http2],
                RemoteCertificateValidationCallback = static (_, _, _, _) => true,
            });
            return tls;
        }
        catch (Exception e) when (e is SocketException or IOException)
        {
            socket.Dispose();
            tls?.Dispose();
            return null;
        }
    }

    /// <summary>
    /// Opens streams on one connection without regard to what the server allows; ends when one was refused or the
    /// connection cut.
    /// </summary>
    /// <exception cref="IOException">The connection itself was refused.</exception>
    public static async Task OpenStreamsRudelyAsync(Uri address, string path, int streams)
    {
        using SslStream connection = await GreetAsync(address);
        Task refused = ReadToRefusalAsync(connection);
        byte[] block = HeaderBlock(address.Authority, path);
        try
        {
            for (int i = 0; i < streams; i++)
            {
                int stream = (2 * i) + 1;
                await connection.WriteAsync(Frame(type: 1, flags: 4, stream, block));
            }
        }
        catch (IOException)
        {
            // Cut already.
        }

        await refused;
    }

    /// <summary>
    /// Opens streams on one connection and takes each back at once; ends when the server has read all of them, or, with
    /// false, has cut the connection.
    /// </summary>
    public static async Task<bool> ResetStreamsAsync(Uri address, string path, int streams)
    {
        using SslStream connection = await GreetAsync(address);
        Task<bool> answered = ReadToAnswerAsync(connection);
        byte[] block = HeaderBlock(address.Authority, path);
        List<byte> flood = [];
        for (int i = 0; i < streams; i++)
        {
            flood.AddRange(OpenAndReset((2 * i) + 1, block));
        }

        try
        {
            await connection.WriteAsync((byte[])[.. flood, .. Frame(type: 6, flags: 0, stream: 0, new byte[8])]);
        }
        catch (IOException)
        {
            // Cut already.
        }

        return await answered;
    }

    /// <summary>
    /// Opens streams on one connection and resets each in the same packet, until the connection is cut. Returns how
    /// many were reset.
    /// </summary>
    /// <exception cref="IOException">The connection itself was refused.</exception>
    public static async Task<int> ResetStreamsUntilCutAsync(Uri address, string path, int streams)
    {
        using SslStream connection = await GreetAsync(address);
        Task closed = ReadUntilAsync(connection, static _ => false);
        byte[] block = HeaderBlock(address.Authority, path);
        int reset = 0;
        try
        {
            for (; reset < streams && !closed.IsCompleted; reset++)
            {
                await connection.WriteAsync(OpenAndReset((2 * reset) + 1, block));
            }
        }
        catch (IOException)
        {
            // Cut, as it should be.
        }

        return reset;
    }

    /// <summary>Calls on new connections until one is served.</summary>
    public static async Task ServesAgainAsync(Uri address)
    {
        long until = Environment.TickCount64 + (long)s_deadline.TotalMilliseconds;
        while (true)
        {
            try
            {
                using GrpcChannel channel = ChannelTo(address);
                await DescribeAsync(channel);
                return;
            }
            catch (RpcException e) when (e.StatusCode == StatusCode.Unavailable && Environment.TickCount64 < until)
            {
                await Task.Yield();
            }
        }
    }

    public static GrpcChannel ChannelTo(Uri address) => TestChannels.To(address, AnyServer());

    public static Task<DescribeClusterResponse> DescribeAsync(GrpcChannel channel) =>
        channel.UnaryAsync(
            "/kahuna.v1.Cluster/DescribeCluster",
            new DescribeClusterRequest(),
            DescribeClusterResponse.Parser,
            TestCalls.Within(s_deadline));

    /// <summary>
    /// HPACK: :method POST, :scheme https, and :path, :authority and content-type as literals that are not indexed.
    /// </summary>
    internal static byte[] HeaderBlock(string authority, string path) =>
        [0x83, 0x87, .. Literal(4, path), .. Literal(1, authority), 0x0f, 0x10, .. Text("application/grpc")];

    private static SslClientAuthenticationOptions AnyServer() =>
        new() { RemoteCertificateValidationCallback = static (_, _, _, _) => true };

    /// <summary>A connection on which streams can be opened.</summary>
    private static async Task<SslStream> GreetAsync(Uri address)
    {
        SslStream connection = await ConnectAsync(address)
            ?? throw new IOException($"{address} has refused the connection");
        await connection.WriteAsync("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"u8.ToArray());
        await connection.WriteAsync(Frame(type: 4, flags: 0, stream: 0, []));
        return connection;
    }

    private static byte[] OpenAndReset(int stream, byte[] block) =>
        [.. Frame(type: 1, flags: 4, stream, block), .. Frame(type: 3, flags: 0, stream, [0, 0, 0, 8])];

    /// <summary>One frame of HTTP/2 (RFC 9113, section 4.1).</summary>
    internal static byte[] Frame(byte type, byte flags, int stream, byte[] payload) =>
        [
            0,
            (byte)(payload.Length >> 8),
            (byte)payload.Length,
            type,
            flags,
            (byte)(stream >> 24),
            (byte)(stream >> 16),
            (byte)(stream >> 8),
            (byte)stream,
            .. payload,
        ];

    private static byte[] Literal(byte name, string value) => [name, .. Text(value)];

    private static byte[] Text(string value) => [(byte)value.Length, .. Encoding.ASCII.GetBytes(value)];

    /// <summary>
    /// Reads frames until a stream is refused (RST_STREAM with REFUSED_STREAM or ENHANCE_YOUR_CALM) or the connection
    /// is closed, which refuses all.
    /// </summary>
    private static Task ReadToRefusalAsync(SslStream stream) =>
        ReadUntilAsync(stream, static frame => frame is { Type: 3, First: 7 or 11 });

    /// <summary>Reads frames until a ping is answered or the connection is closed.</summary>
    private static Task<bool> ReadToAnswerAsync(SslStream stream) =>
        ReadUntilAsync(stream, static frame => frame is { Type: 6, Flags: 1 });

    /// <param name="stream">The connection.</param>
    /// <param name="isLast">Type, flags, and the last byte of the first four of a frame: of an error the
    /// number.</param>
    private static async Task<bool> ReadUntilAsync(
        SslStream stream, Func<(byte Type, byte Flags, byte First), bool> isLast)
    {
        byte[] frame = new byte[64 * 1024];
        try
        {
            while (true)
            {
                await stream.ReadExactlyAsync(frame.AsMemory(0, 9));
                int length = (frame[0] << 16) | (frame[1] << 8) | frame[2];
                (byte type, byte flags) = (frame[3], frame[4]);
                await stream.ReadExactlyAsync(frame.AsMemory(0, length));
                if (isLast((type, flags, frame[3])))
                {
                    return true;
                }
            }
        }
        catch (Exception closed) when (closed is IOException or ObjectDisposedException)
        {
            return false;
        }
    }
}
