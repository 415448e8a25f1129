using System.Net.Security;
using Grpc.Core;
using Grpc.Net.Client;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Server.Api.Protos;
using Kahuna.Server.Hosting;
using Kahuna.Tests.Api.Grpc;
using KeyValueEntry = Kahuna.Client.Outcomes.KeyValueEntry;

namespace Kahuna.Tests.Api;

/// <summary>Scans through the SDK and through unary calls, against three real nodes with three partitions.</summary>
[Collection(nameof(ThreePartitionsCollection))]
public sealed class ScanTests(ThreePartitions nodes)
{
    private readonly string _name = $"scans/{Guid.NewGuid():n}/";

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public async Task Keys_of_all_partitions_come_in_order(Durability durability)
    {
        await using KahunaClient client = Connect(durability);
        string[] keys =
            [.. Enumerable.Range(0, 300).Select(i => $"{_name}{i % 7}/{i:000}").Order(StringComparer.Ordinal)];
        await Task.WhenAll(keys.Select(key => client.KeyValues.SetAsync(key, $"value of {key}").AsTask()));
        await client.KeyValues.DeleteAsync(keys[5]);
        keys = [.. keys.Where((_, i) => i != 5)];
        List<KeyValueEntry> all = await ReadAsync(client, new ScanOptions());
        Assert.Equal(keys, all.Select(static entry => entry.Key));
        Assert.All(all, static entry => Assert.Equal($"value of {entry.Key}", entry.Value.AsString()));
        Assert.All(all, static entry => Assert.Equal(1, entry.Revision.Value));
        Assert.Equal(
            keys.Reverse().Take(20),
            (await ReadAsync(client, new ScanOptions { Descending = true, Limit = 20, KeysOnly = true }))
                .Select(static entry => entry.Key));
        ScanOptions bounds = new() { From = keys[10], To = keys[100] };
        Assert.Equal(keys[10..100], (await ReadAsync(client, bounds)).Select(static entry => entry.Key));
        Assert.Equal(90, await client.KeyValues.CountAsync(_name, bounds));
        Assert.Equal(keys.Length, await client.KeyValues.CountAsync(_name));
        Assert.Equal(0, await client.KeyValues.CountAsync(_name + "none"));
    }

    [Fact]
    public async Task What_cannot_be_is_said_clearly()
    {
        await using KahunaClient client = Connect(Durability.Persistent);
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(
            () => ReadAsync(client, new ScanOptions { From = _name + "b", To = _name + "a" }));
        Assert.Equal(
            (KahunaErrorCode.InvalidArgument, OperationOutcome.DidNotHappen), (failure.Code, failure.Outcome));
        Assert.Contains("to comes before from", failure.Message, StringComparison.Ordinal);
        await Assert.ThrowsAsync<ArgumentOutOfRangeException>(() => ReadAsync(client, new ScanOptions { Limit = 0 }));
    }

    [Theory]
    [InlineData("prefix", "~", null, null)]
    [InlineData("From", "", "a~", null)]
    [InlineData("To", "", null, "a~b")]
    public async Task Bounds_are_text(string field, string prefix, string? from, string? to)
    {
        await using KahunaClient client = Connect(Durability.Persistent);
        ScanOptions bounds = new() { From = from?.Replace('~', '\ud800'), To = to?.Replace('~', '\ud800') };
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(
            () => client.KeyValues.CountAsync(prefix.Replace('~', '\ud800'), bounds).AsTask());
        Assert.Equal(
            (KahunaErrorCode.InvalidArgument, OperationOutcome.DidNotHappen), (failure.Code, failure.Outcome));
        Assert.Contains($"{field} has an unpaired surrogate", failure.Message, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Unary_pages_are_what_the_client_reads(bool descending)
    {
        await using KahunaClient client = Connect(Durability.Persistent);
        string[] keys = [.. Enumerable.Range(0, 120).Select(i => $"{_name}{i % 5}/{i:000}")];
        await Task.WhenAll(keys.Select(key => client.KeyValues.SetAsync(
            key, key.EndsWith('7') ? null : new string('v', key.EndsWith('3') ? 40_000 : 10)).AsTask()));
        List<KeyValueEntry> expected = await ReadAsync(client, new ScanOptions { Descending = descending });
        ScanKeyValuesRequest request = new()
        {
            Prefix = _name,
            Durability = Kahuna.Server.Api.Protos.Durability.Persistent,
            Descending = descending,
            Limit = 7,
        };
        List<string> read = [];
        int pages = 0;
        do
        {
            ScanKeyValuesResponse page = await UnaryAsync("ScanKeyValues", request, ScanKeyValuesResponse.Parser);
            Assert.InRange(page.Entries.Count, 0, 7);
            read.AddRange(page.Entries.Select(
                static entry => $"{entry.Key} {entry.Revision} {entry.Value.HasData} {entry.Value.Data.Length}"));
            request.PageToken = page.NextPageToken;
            Assert.InRange(++pages, 1, 200);
        }
        while (request.PageToken.Length > 0);
        Assert.Equal(
            expected.Select(static entry =>
                $"{entry.Key} {entry.Revision} {!entry.Value.IsNull} {entry.Value.Memory.Length}"),
            read);
        CountKeyValuesResponse count = await UnaryAsync(
            "CountKeyValues",
            new CountKeyValuesRequest
            {
                Prefix = _name,
                Durability = Kahuna.Server.Api.Protos.Durability.Persistent,
                From = expected[10].Key,
            },
            CountKeyValuesResponse.Parser);
        Assert.Equal(descending ? 11 : 110, count.Count);
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Streams_are_what_the_client_reads(bool descending)
    {
        await using KahunaClient client = Connect(Durability.Persistent);
        string[] keys = [.. Enumerable.Range(0, 120).Select(i => $"{_name}{i % 5}/{i:000}")];
        await Task.WhenAll(keys.Select(key => client.KeyValues.SetAsync(
            key, key.EndsWith('7') ? null : new string('v', key.EndsWith('3') ? 40_000 : 10)).AsTask()));
        StreamKeyValuesRequest request = new()
        {
            Prefix = _name,
            Durability = Kahuna.Server.Api.Protos.Durability.Persistent,
            Descending = descending,
        };
        List<string> read = [];
        await foreach (StreamKeyValuesResponse message in Messages(nodes.Follower, request))
        {
            read.AddRange(message.Entries.Select(
                static entry => $"{entry.Key} {entry.Revision} {entry.Value.HasData} {entry.Value.Data.Length}"));
        }

        Assert.Equal(
            (await ReadAsync(client, new ScanOptions { Descending = descending })).Select(static entry =>
                $"{entry.Key} {entry.Revision} {!entry.Value.IsNull} {entry.Value.Memory.Length}"),
            read);
        foreach ((StreamKeyValuesRequest wrong, string words) in new (StreamKeyValuesRequest, string)[]
        {
            (new(request) { Durability = Kahuna.Server.Api.Protos.Durability.Unspecified }, "durability"),
            (new(request) { From = _name + "b", To = _name + "a" }, "to comes before from"),
            (new(request) { PageToken = "x" }, "page_token"),
            (new(request) { From = _name + new string('f', 1_024) }, "1,024"),
        })
        {
            RpcException refused = await Assert.ThrowsAsync<RpcException>(async () =>
            {
                await foreach (StreamKeyValuesResponse message in Messages(nodes.Follower, wrong))
                {
                }
            });
            Assert.Equal(
                (StatusCode.InvalidArgument, "did-not-happen"),
                (refused.StatusCode, refused.Trailers.GetValue("kahuna-outcome")));
            Assert.Contains(words, refused.Status.Detail, StringComparison.Ordinal);
        }
    }

    [Fact]
    public async Task A_stream_goes_on_or_ends_with_an_error_when_nodes_stop()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(3).WaitAsync(LastNet.Span);
        string[] keys = [.. Enumerable.Range(0, 8_000).Select(static i => $"keys/{i % 9}/{i:0000}")];
        await using (KahunaClient client = PatientClient.Connect(
            cluster.Endpoints, static options => options.Insecure = true))
        {
            await Task.WhenAll(keys.Select(key => client.KeyValues.SetAsync(key, new string('v', 1_000)).AsTask()));
        }

        int leader = cluster.Nodes[0].View.Status(0).Leader.Value - 1;
        int serving = (leader + 1) % 3;
        using GrpcChannel channel = TestChannels.To(
            cluster.Nodes[serving].Options.Advertise,
            new SslClientAuthenticationOptions { RemoteCertificateValidationCallback = static (_, _, _, _) => true });
        StreamKeyValuesRequest request = new() { Durability = Kahuna.Server.Api.Protos.Durability.Persistent };
        List<string> read = [];
        int messages = 0;
        RpcException stopped = await Assert.ThrowsAsync<RpcException>(async () =>
        {
            await foreach (StreamKeyValuesResponse message in Messages(channel, request))
            {
                read.AddRange(message.Entries.Select(static entry => entry.Key));
                request.PageToken = message.NextPageToken;
                if (++messages == 3)
                {
                    await cluster.Nodes[leader].DisposeAsync();
                }
                else if (messages == 20)
                {
                    await cluster.Nodes[serving].DisposeAsync();
                }
            }
        });

        // The next leader has served the stream from the third message on, and the stop of its own node has ended it.
        Assert.True(messages is >= 20 and < 120, $"{messages} messages: {stopped.Status}");
        // A node that cannot end its calls in time closes their connections, which resets the stream.
        Assert.Contains(stopped.StatusCode, (StatusCode[])[StatusCode.Unavailable, StatusCode.Cancelled]);
        Assert.Equal(keys.Order(StringComparer.Ordinal).Take(read.Count), read);
    }

    [Fact]
    public async Task A_page_token_of_another_query_is_refused()
    {
        await using KahunaClient client = Connect(Durability.Persistent);
        for (int i = 0; i < 5; i++)
        {
            await client.KeyValues.SetAsync($"{_name}{i}", "x");
        }

        ScanKeyValuesRequest request = new()
        {
            Prefix = _name,
            Durability = Kahuna.Server.Api.Protos.Durability.Persistent,
            Limit = 2,
        };
        ScanKeyValuesResponse page = await UnaryAsync("ScanKeyValues", request, ScanKeyValuesResponse.Parser);
        Assert.Equal(2, page.Entries.Count);
        ScanKeyValuesRequest[] wrong =
        [
            new(request) { PageToken = "x" },
            new(request) { PageToken = page.NextPageToken[..^4] },
            new(request) { PageToken = page.NextPageToken, Prefix = _name + "1" },
            new(request) { PageToken = page.NextPageToken, Descending = true },
            new(request) { PageToken = page.NextPageToken, KeysOnly = true },
            new(request) { PageToken = page.NextPageToken, To = _name + "4" },
        ];
        foreach (ScanKeyValuesRequest one in wrong)
        {
            RpcException refused = await Assert.ThrowsAsync<RpcException>(
                () => UnaryAsync("ScanKeyValues", one, ScanKeyValuesResponse.Parser));
            Assert.Equal(StatusCode.InvalidArgument, refused.StatusCode);
            Assert.Contains("page_token", refused.Status.Detail, StringComparison.Ordinal);
        }

        request.Limit = 10_001;
        RpcException large = await Assert.ThrowsAsync<RpcException>(
            () => UnaryAsync("ScanKeyValues", request, ScanKeyValuesResponse.Parser));
        Assert.Contains("limit is 10,001", large.Status.Detail, StringComparison.Ordinal);
    }

    private async Task<List<KeyValueEntry>> ReadAsync(KahunaClient client, ScanOptions options)
    {
        List<KeyValueEntry> found = [];
        await foreach (KeyValueEntry entry in client.KeyValues.ScanAsync(_name, options))
        {
            found.Add(entry);
        }

        return found;
    }

    private static IAsyncEnumerable<StreamKeyValuesResponse> Messages(
        GrpcChannel channel, StreamKeyValuesRequest request) => channel.ServerStreamingAsync(
            "/kahuna.v1.KeyValues/StreamKeyValues",
            request.Clone(),
            StreamKeyValuesResponse.Parser,
            TestCalls.Within(TimeSpan.FromMinutes(4), []));

    private Task<TReply> UnaryAsync<TRequest, TReply>(
        string method, TRequest request, Google.Protobuf.MessageParser<TReply> parser)
        where TRequest : Google.Protobuf.IMessage<TRequest>
        where TReply : class, Google.Protobuf.IMessage<TReply> =>
        nodes.Follower.UnaryAsync(
            $"/kahuna.v1.KeyValues/{method}", request, parser, TestCalls.Within(TimeSpan.FromMinutes(4), []));

    private KahunaClient Connect(Durability durability) => PatientClient.Connect(
        nodes.Cluster.Endpoints,
        options =>
        {
            options.Insecure = true;
            options.Durability = durability;
        });
}
