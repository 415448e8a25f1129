using System.Net;
using System.Net.Sockets;
using Kahuna.Client.Wire.Grpc;
using Kahuna.Client.Wire.Protos;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>A server that ends the connection, frame by frame: what a call on it comes to.</summary>
public sealed class ClosingServerTests
{
    private static readonly TimeSpan s_patience = LastNet.Span;

    private static readonly byte[] s_settings = Frame(type: 4, []);

    /// <summary>"No error" is what a server says that stops (RFC 9113 §6.8); one that is stopping when the connection comes says nothing else. It may have carried out the call.</summary>
    [Theory]
    [InlineData(true, 0, "Unavailable", "closing the connection")]
    [InlineData(false, 0, "Unavailable", "closing the connection")]
    [InlineData(true, 1, "Internal", "HTTP/2 error 1")]
    [InlineData(false, 1, "Internal", "HTTP/2 error 1")]
    public async Task A_server_that_stops_is_unavailable_and_one_that_breaks_off_is_not(bool greets, int errorCode, string status, string text)
    {
        GrpcException failure = await CallAsync(greets ? s_settings : [], GoAway(lastStream: 0x7FFFFFFF, errorCode));
        Assert.Equal(status, failure.Code.ToString());
        Assert.False(failure.NeverProcessed);
        Assert.Contains(text, failure.Message, StringComparison.Ordinal);
    }

    /// <summary>Calls a server that greets with the first frames, waits for the request, answers with the last frames and closes the connection.</summary>
    private static async Task<GrpcException> CallAsync(byte[] first, byte[] last)
    {
        using TcpListener listener = new(IPAddress.Loopback, 0);
        listener.Start();
        Task serving = ServeOneAsync(listener, first, last);
        await using GrpcChannel channel = new(new Uri($"http://{listener.LocalEndpoint}"));
        Task call = channel.UnaryAsync("/kahuna.v1.KeyValues/GetKeyValue", new GetKeyValueRequest { Key = "k" }, GetKeyValueResponse.Parser);
        GrpcException failure = await Assert.ThrowsAsync<GrpcException>(() => call.WaitAsync(s_patience));
        await serving.WaitAsync(s_patience);
        return failure;
    }

    private static async Task ServeOneAsync(TcpListener listener, byte[] first, byte[] last)
    {
        using TcpClient client = await listener.AcceptTcpClientAsync();
        NetworkStream stream = client.GetStream();
        await stream.WriteAsync(first);

        // The request is there when its headers (type 1) are.
        byte[] preface = new byte[24];
        await stream.ReadExactlyAsync(preface);
        byte[] header = new byte[9];
        do
        {
            await stream.ReadExactlyAsync(header);
            await stream.ReadExactlyAsync(new byte[(header[0] << 16) | (header[1] << 8) | header[2]]);
        }
        while (header[3] != 1);

        await stream.WriteAsync(last);
        client.Client.Shutdown(SocketShutdown.Send);
        while (await stream.ReadAsync(preface) > 0)
        {
            // Closing earlier would reset the connection, and the frames could be lost.
        }
    }

    private static byte[] GoAway(int lastStream, int errorCode) => Frame(type: 7, [.. BigEndian(lastStream), .. BigEndian(errorCode)]);

    private static byte[] Frame(byte type, byte[] payload) => [.. BigEndian(payload.Length)[1..], type, 0, 0, 0, 0, 0, .. payload];

    private static byte[] BigEndian(int number) => [(byte)(number >> 24), (byte)(number >> 16), (byte)(number >> 8), (byte)number];
}
