using System.Text.Json.Nodes;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Hosting.Page;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Hosting.Page;

/// <summary>The status of all nodes: nodes that fail or hang, and many callers.</summary>
public sealed class ClusterStatusTests
{
    private readonly ManualTime _time = new();
    private int _asked;

    [Fact]
    public async Task A_node_that_fails_is_shown_with_the_reason()
    {
        using ClusterStatus status = Of(
            Good, static _ => Task.FromException<byte[]>(new HttpRequestException("Connection\nrefused")));

        JsonArray nodes = (await ReadAsync(status))["nodes"]!.AsArray();
        Assert.Null(nodes[0]!["problem"]);
        Assert.True((bool)nodes[0]!["status"]!["ready"]!);
        Assert.Equal("Connection refused", (string?)nodes[1]!["problem"]);
        Assert.Null(nodes[1]!["status"]);
    }

    [Fact]
    public async Task A_node_that_hangs_and_ignores_the_token_holds_nothing_up()
    {
        using ClusterStatus status = Of(Good, static _ => new TaskCompletionSource<byte[]>().Task);

        Task<byte[]> gathering = status.GetAsync();
        await Wait.UntilAsync(_time, () => gathering.IsCompleted);
        JsonArray nodes = JsonNode.Parse(await gathering)!["nodes"]!.AsArray();
        Assert.NotNull(nodes[0]!["status"]);
        Assert.Equal("No answer in time.", (string?)nodes[1]!["problem"]);
    }

    [Fact]
    public async Task Many_callers_cost_one_gathering_a_second()
    {
        TaskCompletionSource gate = new();
        using ClusterStatus status = Of(async ct =>
        {
            await gate.Task;
            return await Good(ct);
        });

        Task<byte[]>[] callers = [.. Enumerable.Range(0, 100).Select(_ => status.GetAsync())];
        gate.SetResult();
        await Task.WhenAll(callers).WaitAsync(Wait.Longest);
        await ReadAsync(status);
        Assert.Equal(1, _asked);

        _time.Advance(TimeSpan.FromSeconds(1));
        await ReadAsync(status);
        Assert.Equal(2, _asked);
    }

    [Fact]
    public async Task An_unexpected_failure_is_not_kept()
    {
        bool isBroken = true;
        using ClusterStatus status = Of(
            ct => isBroken ? throw new InvalidOperationException("a bug") : Good(ct));
        _time.Advance(TimeSpan.FromSeconds(1));
        await Assert.ThrowsAsync<InvalidOperationException>(() => ReadAsync(status));

        isBroken = false;
        _time.Advance(TimeSpan.FromSeconds(1));
        Assert.NotNull((await ReadAsync(status))["nodes"]![0]!["status"]);
    }

    private Task<byte[]> Good(CancellationToken ct)
    {
        Interlocked.Increment(ref _asked);
        return Task.FromResult("{\"ready\": true}"u8.ToArray());
    }

    private ClusterStatus Of(params Func<CancellationToken, Task<byte[]>>[] asks) => new(
        new NodeId(1),
        [
            .. asks.Select(static (ask, i) =>
                (new PeerNode(new NodeId((ushort)(i + 1)), new Uri($"https://127.0.0.1:{9_000 + i}")), ask)),
        ],
        _time,
        TimeSpan.FromSeconds(1));

    private static async Task<JsonNode> ReadAsync(ClusterStatus status) =>
        JsonNode.Parse(await status.GetAsync().WaitAsync(Wait.Longest))!;
}
