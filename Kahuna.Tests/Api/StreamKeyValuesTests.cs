using Google.Protobuf;
using Grpc.Core;
using Kahuna.Server.Api;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Transport;

namespace Kahuna.Tests.Api;

/// <summary>
/// Streams and counts of keys over the states of a few partitions: what they return, what they hold of the node while
/// their callers read slowly or go away, and how they end.
/// </summary>
public sealed class StreamKeyValuesTests : IAsyncLifetime
{
    private const int Partitions = 5;
    private const int PageBytes = 64 * 1024;
    private const string Stream = "/kahuna.v1.KeyValues/StreamKeyValues";

    private static readonly TimeSpan s_short = TimeSpan.FromMilliseconds(300);

    private readonly ModelPartitions _keys = new(Partitions, keys: 6_000, valueBytes: 400);
    private readonly LogRecorder _log = new();
    private readonly CancellationTokenSource _stop = new();
    private readonly ScanPages _scans;
    private GrpcTestHost _host = null!;

    public StreamKeyValuesTests() => _scans = new ScanPages(_keys.ExecuteAsync, Partitions);

    private ScanBudget Budget => _scans.Budget;

    public async Task InitializeAsync() => _host = await StartAsync(LastNet.Span);

    public async Task DisposeAsync()
    {
        await _host.DisposeAsync();
        _stop.Dispose();
        Assert.Equal((0, 0, 0L), (Budget.Pages, Budget.Streams, Budget.Bytes));
    }

    [Theory]
    [InlineData(false, false, 0)]
    [InlineData(true, false, 0)]
    [InlineData(true, true, 0)]
    [InlineData(false, true, 2_001)]
    public async Task All_keys_come_in_order_in_messages_of_a_pages_size(bool descending, bool keysOnly, int limit)
    {
        StreamKeyValuesRequest request = Request();
        (request.Descending, request.KeysOnly, request.Limit) = (descending, keysOnly, (ulong)limit);
        List<StreamKeyValuesResponse> messages = await ReadAsync(request);
        IEnumerable<string> expected = descending ? _keys.Keys.Reverse() : _keys.Keys;
        Assert.Equal(
            limit == 0 ? expected : expected.Take(limit),
            messages.SelectMany(static message => message.Entries).Select(static entry => entry.Key));
        Assert.All(messages, static message => Assert.InRange(message.CalculateSize(), 1, PageBytes + 32_000));
        Assert.All(messages, static message => Assert.InRange(message.Entries.Count, 1, 1_000));
        Assert.All(messages, message => Assert.Equal(keysOnly, message.Entries[0].Value is null));
        Assert.InRange(messages.Count, 3, keysOnly ? 7 : 60);
        Assert.Equal(limit > 0, messages[^1].NextPageToken.Length > 0);
        Assert.InRange(_keys.ReadingMax, 1, 4);
    }

    [Fact]
    public async Task A_stream_goes_on_with_the_token_of_any_message_and_of_any_page()
    {
        List<StreamKeyValuesResponse> all = await ReadAsync(Request());
        List<string> read = [.. all[..7].SelectMany(static message => message.Entries).Select(static each => each.Key)];
        ScanKeyValuesResponse page = await _host.Channel.UnaryAsync(
            "/kahuna.v1.KeyValues/ScanKeyValues",
            new ScanKeyValuesRequest
            {
                Durability = Server.Api.Protos.Durability.Persistent,
                PageToken = all[6].NextPageToken,
                Limit = 50,
            },
            ScanKeyValuesResponse.Parser);
        StreamKeyValuesRequest rest = Request();
        rest.PageToken = page.NextPageToken;
        read.AddRange(page.Entries.Select(static each => each.Key));
        read.AddRange((await ReadAsync(rest)).SelectMany(static each => each.Entries).Select(static each => each.Key));
        Assert.Equal(_keys.Keys, read);
        StreamKeyValuesRequest other = new(rest) { Descending = true };
        await RefusedAsync(other, StatusCode.InvalidArgument, "page_token is not of this query");
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Pages_follow_each_other_without_a_gap(bool descending)
    {
        ScanKeyValuesRequest request = new()
        {
            Durability = Server.Api.Protos.Durability.Persistent,
            Descending = descending,
        };
        List<string> read = [];
        int pages = 0;
        do
        {
            ScanKeyValuesResponse page = await _host.Channel.UnaryAsync(
                "/kahuna.v1.KeyValues/ScanKeyValues", request, ScanKeyValuesResponse.Parser);
            read.AddRange(page.Entries.Select(static entry => entry.Key));
            request.PageToken = page.NextPageToken;
            Assert.InRange(++pages, 1, 100);
        }
        while (request.PageToken.Length > 0);
        Assert.Equal(descending ? _keys.Keys.Reverse() : _keys.Keys, read);
    }

    [Fact]
    public async Task No_keys_are_a_stream_without_messages()
    {
        StreamKeyValuesRequest request = Request();
        request.Prefix = "none";
        Assert.Empty(await ReadAsync(request));
    }

    [Fact]
    public async Task A_caller_that_does_not_read_holds_a_page_of_each_partition_and_is_reset()
    {
        await using GrpcTestHost host = await StartAsync(s_short);
        await using (StingyClient stingy = await StingyClient.ConnectAsync(host.Address, Stream))
        {
            await stingy.CallAsync(10, Request());
            await UntilAsync(() => Budget.Bytes > 0);
            long held = 0;
            while (stingy.Resets < 10)
            {
                held = Math.Max(held, Budget.Bytes);
                await Task.Delay(5);
            }

            Assert.InRange(held, PageBytes, 10 * Partitions * (PageBytes + 2_000));
            await UntilAsync(() => Budget.Streams == 0);
        }

        await _log.WaitFor("was lost");
        Assert.InRange(_keys.Pages, 10, 10 * Partitions * 3);
    }

    [Fact]
    public async Task A_caller_that_goes_ends_the_work()
    {
        _keys.Before = static (_, ct) => Task.Delay(20, ct);
        using CancellationTokenSource gone = new();
        await Assert.ThrowsAnyAsync<Exception>(async () =>
        {
            await foreach (StreamKeyValuesResponse message in Messages(Request(), new CallOptions(
                cancellationToken: gone.Token)))
            {
                await gone.CancelAsync();
            }
        });
        await UntilAsync(() => Budget.Streams == 0 && Budget.Pages == 0 && Budget.Bytes == 0);
        _keys.Before = static (_, ct) => Task.Delay(LastNet.Span, ct);
        Task<CountKeyValuesResponse> count = CountAsync(new CallOptions(deadline: DateTime.UtcNow + s_short));
        RpcException late = await Assert.ThrowsAsync<RpcException>(() => count);
        Assert.Equal(StatusCode.DeadlineExceeded, late.StatusCode);
        await UntilAsync(() => Budget.Pages == 0);
    }

    [Fact]
    public async Task An_error_in_the_middle_ends_the_stream_with_its_status_and_cancels_the_other_pages()
    {
        _keys.Before = static async (page, ct) =>
        {
            if (page > 8)
            {
                await Task.Delay(page == 9 ? TimeSpan.Zero : LastNet.Span, ct);
                throw OutcomeErrors.Build(StatusCode.Unavailable, "no leader", OutcomeErrors.DidNotHappen);
            }
        };
        List<string> read = [];
        RpcException failure = await Assert.ThrowsAsync<RpcException>(async () =>
        {
            await foreach (StreamKeyValuesResponse message in Messages(Request()))
            {
                read.AddRange(message.Entries.Select(static entry => entry.Key));
            }
        });
        Assert.Equal(
            (StatusCode.Unavailable, "no leader", "did-not-happen"),
            (failure.StatusCode, failure.Status.Detail, failure.Trailers.GetValue("kahuna-outcome")));
        Assert.Equal(_keys.Keys[..read.Count], read);
        Assert.NotEmpty(read);
    }

    [Fact]
    public async Task A_node_that_stops_says_so()
    {
        using SemaphoreSlim held = new(0);
        _keys.Before = (page, ct) => page > Partitions ? held.WaitAsync(ct) : Task.CompletedTask;
        Task<List<StreamKeyValuesResponse>> reading = ReadAsync(Request());
        await UntilAsync(() => _keys.Pages > Partitions);
        await _stop.CancelAsync();
        RpcException failure = await Assert.ThrowsAsync<RpcException>(() => reading);
        Assert.Equal(
            (StatusCode.Unavailable, "did-not-happen"),
            (failure.StatusCode, failure.Trailers.GetValue("kahuna-outcome")));
    }

    [Fact]
    public async Task A_connection_has_a_number_of_streams_and_another_one_is_served()
    {
        using SemaphoreSlim held = new(0);
        _keys.Before = (_, ct) => held.WaitAsync(ct);
        using CancellationTokenSource over = new();
        CallOptions options = new(cancellationToken: over.Token);
        Task[] open =
            [.. Enumerable.Range(0, ScanBudget.StreamsPerConnectionMax).Select(_ => ReadAsync(Request(), options))];
        await UntilAsync(() => Budget.Streams == open.Length);
        await RefusedAsync(Request(), StatusCode.ResourceExhausted, "The connection has 16 open streams of keys");
        Assert.Equal(open.Length, Budget.Streams);

        // The pages of one connection wait; they are as many as a node reads at a time.
        Assert.Equal(ScanBudget.PagesMax, Budget.Pages);
        _keys.Before = null;
        held.Release(10_000);
        using (global::Grpc.Net.Client.GrpcChannel other = TestChannels.To(_host.Address))
        {
            CountKeyValuesResponse count = await other.UnaryAsync(
                "/kahuna.v1.KeyValues/CountKeyValues", CountRequest(), CountKeyValuesResponse.Parser);
            Assert.Equal(_keys.Keys.Length, count.Count);
        }

        await Task.WhenAll(open);
    }

    [Fact]
    public async Task Calls_wait_for_the_pages_of_others_until_their_deadline()
    {
        using SemaphoreSlim held = new(0);
        _keys.Before = (_, ct) => held.WaitAsync(ct);
        Task<CountKeyValuesResponse> one = CountAsync(default);
        await UntilAsync(() => Budget.Pages >= Partitions - 1);
        await Task.Delay(50);
        Assert.Equal((Partitions - 1, Partitions - 1), (Budget.Pages, _keys.ReadingMax));
        Task<CountKeyValuesResponse>[] counts =
            [one, .. Enumerable.Range(0, ScanBudget.PagesMax).Select(_ => CountAsync(default))];
        await UntilAsync(() => Budget.Pages == ScanBudget.PagesMax);
        RpcException late = await Assert.ThrowsAsync<RpcException>(
            () => CountAsync(new CallOptions(deadline: DateTime.UtcNow + s_short)));
        Assert.Equal(StatusCode.DeadlineExceeded, late.StatusCode);
        Assert.Equal(ScanBudget.PagesMax, _keys.ReadingMax);
        _keys.Before = null;
        held.Release(10_000);
        Assert.All(await Task.WhenAll(counts), count => Assert.Equal(_keys.Keys.Length, count.Count));
    }

    private static StreamKeyValuesRequest Request() => new() { Durability = Server.Api.Protos.Durability.Persistent };

    private static CountKeyValuesRequest CountRequest() =>
        new() { Durability = Server.Api.Protos.Durability.Persistent };

    private static async Task UntilAsync(Func<bool> condition)
    {
        using CancellationTokenSource limit = new(LastNet.Span);
        while (!condition())
        {
            await Task.Delay(5, limit.Token);
        }
    }

    private Task<GrpcTestHost> StartAsync(TimeSpan replyTimeout) => GrpcTestHost.StartAsync(
        server => server.AddService(KeyValuesReflection.Descriptor.Services[0], service => service
            .Unary<ScanKeyValuesRequest, ScanKeyValuesResponse>("ScanKeyValues", _scans.ReadAsync)
            .Unary<CountKeyValuesRequest, CountKeyValuesResponse>("CountKeyValues", _scans.CountAsync)
            .ServerStreaming<StreamKeyValuesRequest, StreamKeyValuesResponse>(
                "StreamKeyValues", _scans.StreamAsync)),
        new CallLimits { ReplyTimeout = replyTimeout, Stop = _stop.Token },
        log: _log);

    private Task<CountKeyValuesResponse> CountAsync(CallOptions options) => _host.Channel.UnaryAsync(
        "/kahuna.v1.KeyValues/CountKeyValues", CountRequest(), CountKeyValuesResponse.Parser, options);

    private IAsyncEnumerable<StreamKeyValuesResponse> Messages(IMessage request, CallOptions options = default) =>
        _host.Channel.ServerStreamingAsync(Stream, request, StreamKeyValuesResponse.Parser, options);

    private async Task<List<StreamKeyValuesResponse>> ReadAsync(IMessage request, CallOptions options = default)
    {
        List<StreamKeyValuesResponse> messages = [];
        await foreach (StreamKeyValuesResponse message in Messages(request, options))
        {
            messages.Add(message);
        }

        return messages;
    }

    private async Task RefusedAsync(IMessage request, StatusCode code, string words)
    {
        RpcException refused = await Assert.ThrowsAsync<RpcException>(() => ReadAsync(request));
        Assert.Equal((code, "did-not-happen"), (refused.StatusCode, refused.Trailers.GetValue("kahuna-outcome")));
        Assert.Contains(words, refused.Status.Detail, StringComparison.Ordinal);
    }
}
