using Grpc.Core;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Protos;

namespace Kahuna.Tests.Api.Grpc;

/// <summary>
/// Requests that are not complete are counted, per connection and per node, and past a limit refused.
/// </summary>
public sealed class RequestBudgetTests
{
    private const string Set = "/kahuna.v1.KeyValues/SetKeyValue";
    private const int Mega = 1 << 20;

    [Fact]
    public void A_connection_that_leaves_large_requests_unfinished_gets_no_room_for_more()
    {
        RequestBudget connection = new(RequestBudget.ConnectionBytesMax);
        RequestBudget node = new(RequestBudget.NodeBytesMax);
        IncompleteMessage[] waits = [.. Enumerable.Range(0, 17).Select(_ => new IncompleteMessage(connection, node))];
        foreach (IncompleteMessage wait in waits.AsSpan(0, 16))
        {
            wait.Begin(Mega);
            wait.Begin(4 * Mega);
        }

        RpcException refused = Assert.Throws<RpcException>(() => waits[16].Begin(Mega));
        Assert.Equal(StatusCode.ResourceExhausted, refused.StatusCode);
        Assert.Equal(
            "The connection has 64 MiB of incomplete requests, its limit; this one was not executed. Complete the "
                + "others first, or send smaller ones.",
            refused.Status.Detail);
        waits[16].End();

        // Small ones always fit, and what is complete makes room.
        waits[16].Begin(RequestBudget.SmallBytes);
        waits[0].End();
        waits[16].Begin(4 * Mega - 1);
        Array.ForEach(waits, static wait => wait.End());
        Assert.Equal((0, 0), (connection.Used, node.Used));
    }

    [Fact]
    public void Many_connections_share_the_nodes_room()
    {
        RequestBudget node = new(RequestBudget.NodeBytesMax);
        for (int i = 0; i < 4; i++)
        {
            new IncompleteMessage(new RequestBudget(RequestBudget.ConnectionBytesMax), node).Begin(
                RequestBudget.ConnectionBytesMax);
        }

        RpcException refused = Assert.Throws<RpcException>(
            () => new IncompleteMessage(new RequestBudget(RequestBudget.ConnectionBytesMax), node).Begin(Mega));
        Assert.StartsWith(
            "The node has 256 MiB of incomplete requests", refused.Status.Detail, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Unfinished_calls_take_up_room_until_they_end()
    {
        RequestBudget node = new(3 * Mega);
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(
            options: new CallLimits { IncompleteRequests = node });
        using HttpMessageInvoker http = RawHttp.Invoker();
        using CancellationTokenSource leave = new();
        List<Task> unfinished = [];
        for (int i = 0; i < 3; i++)
        {
            unfinished.Add(http.SendAsync(Unfinished(host.Address, Mega), leave.Token));
        }

        await UntilAsync(() => node.Used == 3 * Mega);
        RpcException? refused = null;
        for (int i = 0; i < 100 && refused is null; i++)
        {
            // One that is there as a whole before it is looked at, on a slow machine, needs no room and is served.
            refused = (RpcException?)await Record.ExceptionAsync(() => SendAsync(host, Mega));
        }

        Assert.Equal(StatusCode.ResourceExhausted, refused?.StatusCode);
        await SendAsync(host, 16);
        await leave.CancelAsync();
        await UntilAsync(() => node.Used == 0);
        await SendAsync(host, Mega);
        await Assert.ThrowsAnyAsync<Exception>(() => Task.WhenAll(unfinished));
    }

    private static Task SendAsync(GrpcTestHost host, int bytes) => host.Channel.UnaryAsync(
        Set,
        new SetKeyValueRequest
        {
            Key = "a",
            Durability = Server.Api.Protos.Durability.Persistent,
            Value = new Value { Data = Google.Protobuf.ByteString.CopyFrom(new byte[bytes]) },
        },
        SetKeyValueResponse.Parser);

    /// <summary>A request that says it has one byte more than it sends.</summary>
    private static HttpRequestMessage Unfinished(Uri address, int bytes)
    {
        HttpRequestMessage request = RawHttp.Request(address, Set, []);
        byte[] prefix = new byte[MessageFraming.PrefixBytes];
        System.Buffers.Binary.BinaryPrimitives.WriteInt32BigEndian(prefix.AsSpan(1), bytes);
        request.Content = new EndlessContent([.. prefix, .. new byte[bytes - prefix.Length]]);
        request.Content.Headers.ContentType = new("application/grpc");
        return request;
    }

    private static async Task UntilAsync(Func<bool> holds)
    {
        long until = Environment.TickCount64 + (long)LastNet.Span.TotalMilliseconds;
        while (!holds())
        {
            Assert.True(Environment.TickCount64 < until, "It does not become true.");
            await Task.Yield();
        }
    }
}
