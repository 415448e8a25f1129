using Grpc.Core;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc;
using KeyValueEntry = Kahuna.Client.Outcomes.KeyValueEntry;

namespace Kahuna.Tests.Api;

/// <summary>Scans through the SDK and through unary calls, against three real nodes.</summary>
[Collection(nameof(ThreeNodesCollection))]
public sealed class ScanTests(ThreeNodes nodes)
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

    private Task<TReply> UnaryAsync<TRequest, TReply>(
        string method, TRequest request, Google.Protobuf.MessageParser<TReply> parser)
        where TRequest : Google.Protobuf.IMessage<TRequest>
        where TReply : class, Google.Protobuf.IMessage<TReply> =>
        nodes.Follower.UnaryAsync(
            $"/kahuna.v1.KeyValues/{method}", request, parser, TestCalls.Within(TimeSpan.FromMinutes(4), []));

    private KahunaClient Connect(Durability durability) => KahunaClient.Connect(
        nodes.Cluster.Endpoints,
        options =>
        {
            options.Insecure = true;
            options.Durability = durability;
        });
}
