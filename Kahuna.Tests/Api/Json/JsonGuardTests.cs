using System.Net;
using System.Text;
using System.Text.Json.Nodes;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Transport;

namespace Kahuna.Tests.Api.Json;

/// <summary>What one caller of JSON over HTTP can make a node hold, and for how long.</summary>
public sealed class JsonGuardTests
{
    private const int Mega = 1 << 20;

    [Theory]
    [InlineData("")]
    [InlineData("{\"value\":")]
    public async Task A_body_that_stops_in_the_middle_ends_its_call_and_not_its_connection(string sent)
    {
        await using GrpcTestHost host = await new InMemoryKeyValues().StartAsync(
            new CallLimits { RequestTimeout = TimeSpan.FromMilliseconds(200) });
        using HttpMessageInvoker connection = RawHttp.Invoker();
        using HttpRequestMessage half = Put(host, "half", new EndlessContent(Encoding.UTF8.GetBytes(sent)));
        using HttpResponseMessage given = await connection.SendAsync(half, CancellationToken.None)
            .WaitAsync(LastNet.Span);
        await IsErrorAsync(given, HttpStatusCode.GatewayTimeout, "DEADLINE_EXCEEDED", "did-not-happen");
        using HttpRequestMessage whole = Put(host, "whole", new StringContent("{\"value\":{}}"));
        using HttpResponseMessage served = await connection.SendAsync(whole, CancellationToken.None)
            .WaitAsync(LastNet.Span);
        Assert.Equal(HttpStatusCode.OK, served.StatusCode);
    }

    [Fact]
    public async Task A_body_over_the_limit_is_refused_before_it_has_arrived()
    {
        await using GrpcTestHost host = await new InMemoryKeyValues().StartAsync(
            new CallLimits { MessageBytesMax = 1000 });
        using HttpMessageInvoker connection = RawHttp.Invoker();
        using HttpRequestMessage large = Put(host, "large", new EndlessContent(new byte[100_000]));
        using HttpResponseMessage refused = await connection.SendAsync(large, CancellationToken.None)
            .WaitAsync(LastNet.Span);
        await IsErrorAsync(refused, HttpStatusCode.TooManyRequests, "RESOURCE_EXHAUSTED", "did-not-happen");
    }

    [Fact]
    public async Task Bodies_that_are_not_complete_take_up_room_and_are_refused_past_it()
    {
        RequestBudget parts = new(2 * Mega);
        await using GrpcTestHost host = await new InMemoryKeyValues().StartAsync(
            new CallLimits { IncompleteRequests = parts });
        using HttpMessageInvoker connection = RawHttp.Invoker();
        using CancellationTokenSource leave = new();
        Task<HttpResponseMessage>[] unfinished =
        [
            .. Enumerable.Range(0, 2).Select(
                i => connection.SendAsync(Put(host, $"part{i}", new EndlessContent(new byte[Mega])), leave.Token)),
        ];
        await UntilAsync(() => parts.Used == 2 * Mega);
        using HttpRequestMessage third = Put(host, "third", new EndlessContent(new byte[Mega]));
        using HttpResponseMessage refused = await connection.SendAsync(third, CancellationToken.None)
            .WaitAsync(LastNet.Span);
        await IsErrorAsync(refused, HttpStatusCode.TooManyRequests, "RESOURCE_EXHAUSTED", "did-not-happen");
        await leave.CancelAsync();
        await Assert.ThrowsAnyAsync<Exception>(() => Task.WhenAll(unfinished));
        await UntilAsync(() => parts.Used == 0);
    }

    [Fact]
    public async Task A_body_is_counted_with_the_copies_that_are_made_of_it_until_its_call_ends()
    {
        RequestBudget held = new(64 * Mega);
        TaskCompletionSource gate = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using GrpcTestHost host = await new InMemoryKeyValues { BeforeGet = _ => gate.Task }.StartAsync(
            new CallLimits { WaitingRequests = held });
        using HttpMessageInvoker connection = RawHttp.Invoker();
        using HttpRequestMessage get =
            new(HttpMethod.Get, new Uri(host.Address, "/v1/kv/a"))
            {
                Version = HttpVersion.Version20,
                Content = new ByteArrayContent(new byte[Mega]),
            };
        Task<HttpResponseMessage> waits = connection.SendAsync(get, CancellationToken.None);
        await UntilAsync(() => held.Used == 4 * Mega);
        gate.SetResult();
        (await waits.WaitAsync(LastNet.Span)).Dispose();
        await UntilAsync(() => held.Used == 0);
    }

    [Theory]
    [InlineData("2.0")]
    [InlineData("1.1")]
    public async Task A_large_reply_that_its_caller_does_not_take_is_cut_off(string version)
    {
        ReplyRoom room = new();
        LogRecorder log = new();
        await using GrpcTestHost host = await new InMemoryKeyValues().StartAsync(
            new CallLimits { MessageBytesMax = 32 * Mega, Room = room, ReplyTimeout = TimeSpan.FromMilliseconds(300) },
            log);
        using HttpMessageInvoker connection = RawHttp.Invoker();
        JsonObject body = new()
        {
            ["value"] = new JsonObject { ["data"] = Convert.ToBase64String(new byte[16 * Mega]) },
        };
        using HttpRequestMessage put = Put(host, "big", new StringContent(body.ToJsonString()));
        (await connection.SendAsync(put, CancellationToken.None).WaitAsync(LastNet.Span)).Dispose();
        using HttpRequestMessage get =
            new(HttpMethod.Get, new Uri(host.Address, "/v1/kv/big"))
            {
                Version = new Version(version),
                VersionPolicy = HttpVersionPolicy.RequestVersionExact,
            };
        HttpResponseMessage? response = null;
        try
        {
            response = await connection.SendAsync(get, CancellationToken.None).WaitAsync(LastNet.Span);
        }
        catch (HttpRequestException)
        {
            // On a busy machine the reply is cut off before its caller has seen it begin.
        }

        await log.WaitFor("was lost");
        await UntilAsync(() => room.Used == 0);
        if (response is not null)
        {
            await Assert.ThrowsAnyAsync<Exception>(() => response.Content.ReadAsByteArrayAsync());
            response.Dispose();
        }
    }

    [Fact]
    public async Task An_exception_of_the_handler_is_unknown_and_tells_nothing()
    {
        LogRecorder log = new();
        await using GrpcTestHost host = await new InMemoryKeyValues
        {
            BeforeGet = static _ => throw new InvalidOperationException("secret"),
        }.StartAsync(log: log);
        using HttpResponseMessage response = await GetAsync(host);
        string text = await IsErrorAsync(response, HttpStatusCode.InternalServerError, "UNKNOWN", "unknown");
        Assert.DoesNotContain("secret", text, StringComparison.Ordinal);
        Assert.Equal(1, log.Count("The handler of"));
    }

    [Fact]
    public async Task A_deadline_ends_the_call()
    {
        await using GrpcTestHost host = await new InMemoryKeyValues
        {
            BeforeGet = static call => Task.Delay(Timeout.Infinite, call.CancellationToken),
        }.StartAsync();
        using HttpResponseMessage response = await GetAsync(host, "100m");
        await IsErrorAsync(response, HttpStatusCode.GatewayTimeout, "DEADLINE_EXCEEDED", "unknown");
    }

    private static async Task<HttpResponseMessage> GetAsync(GrpcTestHost host, string? timeout = null)
    {
        HttpRequestMessage get =
            new(HttpMethod.Get, new Uri(host.Address, "/v1/kv/a"))
            {
                Version = HttpVersion.Version20,
                VersionPolicy = HttpVersionPolicy.RequestVersionExact,
            };
        if (timeout is not null)
        {
            get.Headers.Add("grpc-timeout", timeout);
        }

        return await RawHttp.Invoker().SendAsync(get, CancellationToken.None).WaitAsync(LastNet.Span);
    }

    private static HttpRequestMessage Put(GrpcTestHost host, string key, HttpContent content)
    {
        content.Headers.ContentType = new("application/json");
        return new HttpRequestMessage(HttpMethod.Put, new Uri(host.Address, "/v1/kv/" + key))
        {
            Version = HttpVersion.Version20,
            VersionPolicy = HttpVersionPolicy.RequestVersionExact,
            Content = content,
        };
    }

    private static async Task<string> IsErrorAsync(
        HttpResponseMessage response, HttpStatusCode status, string reason, string outcome)
    {
        string text = await response.Content.ReadAsStringAsync();
        Assert.True(response.StatusCode == status, $"{response.StatusCode} {text}");
        JsonNode detail = JsonNode.Parse(text)!["details"]![0]!;
        Assert.Equal((reason, outcome), ((string?)detail["reason"], (string?)detail["metadata"]!["outcome"]));
        return text;
    }

    private static async Task UntilAsync(Func<bool> holds)
    {
        long until = Environment.TickCount64 + (long)LastNet.Span.TotalMilliseconds;
        while (!holds())
        {
            Assert.True(Environment.TickCount64 < until, "It does not become true.");
            await Task.Delay(1);
        }
    }
}
