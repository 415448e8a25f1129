using System.Diagnostics;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Text;
using Kahuna.Client.Wire.Grpc;
using Kahuna.Client.Wire.Protos;
using Kahuna.Server.Api.Grpc;
using Kahuna.Server.Transport;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>More connections and more streams than there is room for: some are refused or wait, and the endpoint lives on.</summary>
public sealed class FloodTests
{
    private const string Describe = "/kahuna.v1.Cluster/DescribeCluster";
    private const string Echo = "/kahuna.v1.Cluster/Echo";

    private static readonly TimeSpan s_patience = TimeSpan.FromSeconds(60);

    [Fact]
    public async Task A_process_of_256_descriptors_outlives_400_held_connections()
    {
        using Process endpoint = EndpointProgram.Start(descriptors: 256);
        try
        {
            Uri address = new((await endpoint.StandardOutput.ReadLineAsync().WaitAsync(s_patience))!);
            await using GrpcChannel early = ChannelTo(address);
            await DescribeAsync(early);

            Task<SslStream?>[] held = [.. Enumerable.Range(0, 400).Select(_ => ConnectAsync(address))];
            SslStream?[] connections = await Task.WhenAll(held).WaitAsync(s_patience);
            int kept = connections.Count(connection => connection is not null);
            Assert.InRange(kept, 10, 255);

            // Who was there before is served during the flood.
            await DescribeAsync(early);
            Assert.False(endpoint.HasExited);
            foreach (SslStream? connection in connections)
            {
                connection?.Dispose();
            }

            await ServesAgainAsync(address);
            endpoint.StandardInput.Close();
            await endpoint.WaitForExitAsync().WaitAsync(s_patience);
            Assert.Equal(0, endpoint.ExitCode);
        }
        finally
        {
            if (!endpoint.HasExited)
            {
                endpoint.Kill();
            }
        }
    }

    [Fact]
    public async Task Streams_past_the_limit_of_a_connection_wait_for_their_turn()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        await using GrpcChannel channel = new(host.Address, new GrpcChannelOptions { Tls = TestCertificate.Trust, EnableMultipleHttp2Connections = false });
        DuplexStreamingCall<EchoMessage, EchoMessage>[] calls =
            [.. Enumerable.Range(0, KestrelLimits.StreamsPerConnectionMax + 500).Select(_ => channel.DuplexStreaming<EchoMessage, EchoMessage>(Echo, EchoMessage.Parser))];
        await DescribeAsync(host.Channel);
        await Task.WhenAll(calls.Select(async call =>
        {
            using (call)
            {
                await call.WriteAsync(new EchoMessage());
                Assert.NotNull(await call.ReadAsync());
                call.CompleteRequests();
                Assert.Null(await call.ReadAsync());
            }
        })).WaitAsync(s_patience);
        await DescribeAsync(host.Channel);
    }

    [Fact]
    public async Task Streams_that_do_not_wait_for_their_turn_are_refused_and_others_are_served()
    {
        await using GrpcTestHost host = await GrpcTestHost.StartAsync();
        using SslStream rude = (await ConnectAsync(host.Address))!;
        Task answers = ReadToRefusalAsync(rude);
        await rude.WriteAsync("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"u8.ToArray());
        await rude.WriteAsync(new byte[] { 0, 0, 0, 4, 0, 0, 0, 0, 0 });
        byte[] block = HeaderBlock(host.Address.Authority);
        try
        {
            for (int stream = 1; stream < 40_001; stream += 2)
            {
                byte[] frame = [0, (byte)(block.Length >> 8), (byte)block.Length, 1, 4, (byte)(stream >> 24), (byte)(stream >> 16), (byte)(stream >> 8), (byte)stream, .. block];
                await rude.WriteAsync(frame);
            }
        }
        catch (IOException)
        {
            // Cut already.
        }

        await DescribeAsync(host.Channel);
        await answers.WaitAsync(s_patience);
        await DescribeAsync(host.Channel);
    }

    [Theory]
    [InlineData(256, 224)]
    [InlineData(1024, 896)]
    [InlineData(1_048_576, 1_047_552)]
    public void A_part_of_the_descriptors_is_kept_back(long limit, long ceiling)
    {
        DescriptorLimit descriptors = new(limit);
        Assert.Equal(ceiling, descriptors.Ceiling);
        Assert.True(descriptors.Admits((nint)ceiling - 1));
        Assert.False(descriptors.Admits((nint)ceiling));
    }

    /// <summary>HPACK: :method POST, :scheme https, and :path, :authority and content-type as literals that are not indexed.</summary>
    private static byte[] HeaderBlock(string authority) =>
        [0x83, 0x87, .. Literal(4, Echo), .. Literal(1, authority), 0x0f, 0x10, .. Text("application/grpc")];

    private static byte[] Literal(byte name, string value) => [name, .. Text(value)];

    private static byte[] Text(string value) => [(byte)value.Length, .. Encoding.ASCII.GetBytes(value)];

    /// <summary>Reads frames until a stream is refused (RST_STREAM with REFUSED_STREAM or ENHANCE_YOUR_CALM) or the connection is closed, which refuses all.</summary>
    private static async Task ReadToRefusalAsync(SslStream stream)
    {
        byte[] frame = new byte[64 * 1024];
        try
        {
            while (true)
            {
                await stream.ReadExactlyAsync(frame.AsMemory(0, 9));
                int length = (frame[0] << 16) | (frame[1] << 8) | frame[2];
                byte type = frame[3];
                await stream.ReadExactlyAsync(frame.AsMemory(0, length));
                if (type == 3 && frame[3] is 7 or 11)
                {
                    return;
                }
            }
        }
        catch (IOException)
        {
            // Closed.
        }
    }

    private static async Task<SslStream?> ConnectAsync(Uri address)
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

    private static async Task ServesAgainAsync(Uri address)
    {
        long until = Environment.TickCount64 + (long)s_patience.TotalMilliseconds;
        while (true)
        {
            try
            {
                await using GrpcChannel channel = ChannelTo(address);
                await DescribeAsync(channel);
                return;
            }
            catch (GrpcException e) when (e.Code == GrpcStatusCode.Unavailable && Environment.TickCount64 < until)
            {
                await Task.Yield();
            }
        }
    }

    private static GrpcChannel ChannelTo(Uri address) =>
        new(address, new GrpcChannelOptions { Tls = new SslClientAuthenticationOptions { RemoteCertificateValidationCallback = static (_, _, _, _) => true } });

    private static Task<DescribeClusterResponse> DescribeAsync(GrpcChannel channel) =>
        channel.UnaryAsync(Describe, new DescribeClusterRequest(), DescribeClusterResponse.Parser, new CallOptions { Deadline = s_patience });
}
