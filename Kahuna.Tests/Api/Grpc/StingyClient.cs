using System.Buffers.Binary;
using System.Net.Security;
using Google.Protobuf;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>
/// An HTTP/2 connection that makes unary calls and takes no reply: the window of its streams is zero, while it answers
/// pings. It counts what the server says of its calls. Owned by one test; one sender, and its own reader.
/// </summary>
internal sealed class StingyClient : IAsyncDisposable
{
    private const byte Data = 0;
    private const byte Headers = 1;
    private const byte Reset = 3;
    private const byte Settings = 4;
    private const byte Ping = 6;
    private const byte WindowUpdate = 8;
    private const byte EndStream = 1;
    private const byte EndHeaders = 4;

    private readonly SslStream _connection;
    private readonly byte[] _headers;
    private readonly SemaphoreSlim _sending = new(1);
    private Task _reading = Task.CompletedTask;
    private int _stream = 1;
    private int _resets;
    private int _refusals;
    private int _replies;

    private StingyClient(SslStream connection, byte[] headers)
    {
        (_connection, _headers) = (connection, headers);
    }

    /// <summary>Calls that the server has reset.</summary>
    public int Resets => Volatile.Read(ref _resets);

    /// <summary>Calls that ended with a status alone.</summary>
    public int Refusals => Volatile.Read(ref _refusals);

    /// <summary>Calls whose status followed a reply.</summary>
    public int Replies => Volatile.Read(ref _replies);

    /// <summary>
    /// Connects. With <paramref name="reads"/> false it has the largest windows instead, and reads nothing at all from
    /// the socket.
    /// </summary>
    public static async Task<StingyClient> ConnectAsync(Uri address, string path, bool reads = true)
    {
        SslStream connection = await FloodClient.ConnectAsync(address)
            ?? throw new IOException($"{address} has refused the connection");
        StingyClient client = new(connection, FloodClient.HeaderBlock(address.Authority, path));
        await client.SendAsync("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"u8.ToArray());
        await client.GrantAsync(reads ? 0 : int.MaxValue);
        if (reads)
        {
            client._reading = client.ReadAsync();
        }
        else
        {
            await client.SendAsync(FloodClient.Frame(WindowUpdate, 0, 0, BigEndian(int.MaxValue - 65_535)));
        }

        return client;
    }

    /// <summary>Sets the window of all streams, those open included.</summary>
    public Task GrantAsync(int bytes) => SendAsync(FloodClient.Frame(Settings, 0, 0, [0, 4, .. BigEndian(bytes)]));

    /// <summary>Sends something that asks for nothing: an answer to a ping that nobody sent.</summary>
    public Task LiveAsync() => SendAsync(FloodClient.Frame(Ping, EndStream, 0, new byte[8]));

    /// <summary>Begins a number of calls with the same request.</summary>
    public async Task CallAsync(int calls, IMessage request)
    {
        byte[] body = [0, .. BigEndian(request.CalculateSize()), .. request.ToByteArray()];
        for (int i = 0; i < calls; i++, _stream += 2)
        {
            await SendAsync(
                [
                    .. FloodClient.Frame(Headers, EndHeaders, _stream, _headers),
                    .. FloodClient.Frame(Data, EndStream, _stream, body),
                ]);
        }
    }

    public async ValueTask DisposeAsync()
    {
        await _connection.DisposeAsync();
        await _reading;
        _sending.Dispose();
    }

    private static byte[] BigEndian(int number)
    {
        byte[] bytes = new byte[4];
        BinaryPrimitives.WriteInt32BigEndian(bytes, number);
        return bytes;
    }

    private async Task SendAsync(byte[] bytes)
    {
        await _sending.WaitAsync();
        try
        {
            await _connection.WriteAsync(bytes);
        }
        finally
        {
            _sending.Release();
        }
    }

    private async Task ReadAsync()
    {
        byte[] frame = new byte[64 * 1024];
        HashSet<int> begun = [];
        try
        {
            while (true)
            {
                await _connection.ReadExactlyAsync(frame.AsMemory(0, 9));
                int length = (frame[0] << 16) | (frame[1] << 8) | frame[2];
                (byte type, byte flags, int stream) =
                    (frame[3], frame[4], BinaryPrimitives.ReadInt32BigEndian(frame.AsSpan(5)));
                await _connection.ReadExactlyAsync(frame.AsMemory(0, length));
                if (type == Ping && flags == 0)
                {
                    await SendAsync(FloodClient.Frame(Ping, EndStream, 0, frame[..8]));
                }

                Count(type, flags, isFirst: type == Headers && begun.Add(stream));
            }
        }
        catch (Exception closed) when (closed is IOException or ObjectDisposedException)
        {
            // Closed.
        }
    }

    private void Count(byte type, byte flags, bool isFirst)
    {
        if (type == Reset)
        {
            Interlocked.Increment(ref _resets);
        }
        else if (type == Headers && (flags & EndStream) != 0)
        {
            Interlocked.Increment(ref isFirst ? ref _refusals : ref _replies);
        }
    }
}
