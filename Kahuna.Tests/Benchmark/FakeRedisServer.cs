using System.Net;
using System.Net.Sockets;
using System.Text;

namespace Kahuna.Tests.Benchmark;

/// <summary>
/// A server that speaks as much of RESP2 as the tool needs: SET and GET over a dictionary, INFO, and EVAL of scripts
/// that it does not read: it writes the argument to the key. One connection is served at a time each. Owned by a test.
/// </summary>
internal sealed class FakeRedisServer : IAsyncDisposable
{
    private readonly TcpListener _listener;
    private readonly CancellationTokenSource _closing = new();
    private readonly Dictionary<string, string> _values = [];
    private readonly List<TcpClient> _clients = [];
    private readonly Task _accepting;
    private int _commands;

    public FakeRedisServer(int port = 0)
    {
        _listener = new TcpListener(IPAddress.Loopback, port);
        _listener.Start();
        _accepting = AcceptAsync();
    }

    public string Endpoint => $"127.0.0.1:{((IPEndPoint)_listener.LocalEndpoint).Port}";

    /// <summary>Replies with an error to every command after this many.</summary>
    public int FailAfter { get; set; } = int.MaxValue;

    /// <summary>Stays silent to every command after this many.</summary>
    public int SilentAfter { get; set; } = int.MaxValue;

    /// <summary>How long the first reply takes.</summary>
    public TimeSpan FirstReplyAfter { get; set; }

    /// <summary>What every script returns, as a reply.</summary>
    public string ScriptReply { get; set; } = "+OK\r\n";

    /// <summary>The words of the script call before.</summary>
    public string[] LastScript { get; private set; } = [];

    public int Commands => Volatile.Read(ref _commands);

    public int Connections { get; private set; }

    /// <summary>Breaks all connections, as a crash does.</summary>
    public void BreakConnections()
    {
        lock (_clients)
        {
            _clients.ForEach(client => client.Dispose());
            _clients.Clear();
        }
    }

    public async ValueTask DisposeAsync()
    {
        await _closing.CancelAsync();
        _listener.Stop();
        BreakConnections();
        await _accepting;
        _closing.Dispose();
    }

    private async Task AcceptAsync()
    {
        try
        {
            while (true)
            {
                TcpClient client = await _listener.AcceptTcpClientAsync(_closing.Token);
                lock (_clients)
                {
                    _clients.Add(client);
                }

                Connections++;
                _ = ServeAsync(client);
            }
        }
        catch (Exception failure) when (failure is OperationCanceledException or SocketException)
        {
            // Closed.
        }
    }

    private async Task ServeAsync(TcpClient client)
    {
        try
        {
            using BufferedStream output = new(client.GetStream());
            using StreamReader input = new(client.GetStream(), Encoding.Latin1);
            while (await input.ReadLineAsync() is { } head)
            {
                string[] parts = new string[int.Parse(head[1..])];
                for (int i = 0; i < parts.Length; i++)
                {
                    char[] text = new char[int.Parse((await input.ReadLineAsync())![1..])];
                    await input.ReadBlockAsync(text);
                    await input.ReadLineAsync();
                    parts[i] = new string(text);
                }

                string reply = Reply(parts);
                await Task.Delay(Commands == 1 ? FirstReplyAfter : TimeSpan.Zero, _closing.Token);
                await output.WriteAsync(Encoding.Latin1.GetBytes(reply));
                await output.FlushAsync();
            }
        }
        catch (Exception failure) when (failure is IOException or ObjectDisposedException or InvalidOperationException
            or OperationCanceledException)
        {
            // The client went away, or the test broke the connection.
        }
    }

    private string Reply(string[] parts)
    {
        int number = Interlocked.Increment(ref _commands);
        if (number > SilentAfter)
        {
            return string.Empty;
        }

        if (number > FailAfter)
        {
            return "-MISCONF the disk is full\r\n";
        }

        lock (_values)
        {
            switch (parts[0])
            {
                case "SET":
                    _values[parts[1]] = parts[2];
                    return "+OK\r\n";
                case "GET":
                    return _values.TryGetValue(parts[1], out string? value)
                        ? $"${value.Length}\r\n{value}\r\n"
                        : "$-1\r\n";
                case "EVAL":
                    LastScript = parts;
                    _values[parts[3]] = parts[4];
                    return ScriptReply;
                default:
                    const string Text = "# Server\r\nredis_version:7.9.9\r\n";
                    return $"${Text.Length}\r\n{Text}\r\n";
            }
        }
    }
}
