using System.Net;
using System.Net.Sockets;
using System.Text;
using Kahuna.Benchmark.Targets.Sdk;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Benchmark;

/// <summary>A node that is silent or away does not keep the others from being measured.</summary>
public sealed class ServerStoreTests : IDisposable
{
    private readonly ManualTime _time = new();
    private readonly TcpListener _silent = Listener();
    private readonly TcpListener _serving = Listener();

    public void Dispose()
    {
        _silent.Dispose();
        _serving.Dispose();
    }

    [Fact]
    public async Task The_first_node_that_answers_says_it()
    {
        TcpListener away = Listener();
        Uri[] nodes = [UriOf(away), UriOf(_silent), UriOf(_serving)];
        away.Dispose();
        Task<string?> reading = ServerStore.ReadAsync(
            nodes, isInsecure: false, _time, authorization: null, CancellationToken.None);
        using TcpClient held = await _silent.AcceptTcpClientAsync().WaitAsync(Wait.Longest);
        _time.Advance(TimeSpan.FromSeconds(3));
        await AnswerAsync("""{"storage":{"stateStore":"rocksdb"}}""");
        Assert.Equal("rocksdb", await reading.WaitAsync(Wait.Longest));
    }

    [Fact]
    public async Task Without_an_answer_it_is_not_known()
    {
        Task<string?> reading = ServerStore.ReadAsync(
            [UriOf(_silent), UriOf(_serving)], isInsecure: false, _time, authorization: null, CancellationToken.None);
        using TcpClient held = await _silent.AcceptTcpClientAsync().WaitAsync(Wait.Longest);
        _time.Advance(TimeSpan.FromSeconds(3));
        await AnswerAsync("[]");
        Assert.Null(await reading.WaitAsync(Wait.Longest));
    }

    [Fact]
    public async Task Who_stops_the_run_stops_the_search()
    {
        using CancellationTokenSource stop = new();
        Task<string?> reading = ServerStore.ReadAsync(
            [UriOf(_silent)], isInsecure: false, _time, authorization: null, stop.Token);
        using TcpClient held = await _silent.AcceptTcpClientAsync().WaitAsync(Wait.Longest);
        await stop.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => reading.WaitAsync(Wait.Longest));
    }

    private static TcpListener Listener()
    {
        TcpListener listener = new(IPAddress.Loopback, 0);
        listener.Start();
        return listener;
    }

    private static Uri UriOf(TcpListener listener) => new($"http://127.0.0.1:{((IPEndPoint)listener.LocalEndpoint).Port}");

    private async Task AnswerAsync(string body)
    {
        using TcpClient client = await _serving.AcceptTcpClientAsync().WaitAsync(Wait.Longest);
        NetworkStream stream = client.GetStream();
        await stream.ReadAsync(new byte[4096]).AsTask().WaitAsync(Wait.Longest);
        await stream.WriteAsync(Encoding.ASCII.GetBytes(
            $"HTTP/1.1 200 OK\r\nContent-Length: {body.Length}\r\nConnection: close\r\n\r\n{body}"));
    }
}
