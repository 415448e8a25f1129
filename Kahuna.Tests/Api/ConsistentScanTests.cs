using System.Globalization;
using Grpc.Core;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc;
using KeyValueEntry = Kahuna.Client.Outcomes.KeyValueEntry;

namespace Kahuna.Tests.Api;

/// <summary>
/// Scans that show one moment, against three real nodes with three partitions, under
/// writes.
/// </summary>
[Collection(nameof(ThreePartitionsCollection))]
public sealed class ConsistentScanTests(ThreePartitions nodes)
{
    private const int Buckets = 12;

    private static readonly CultureInfo s_invariant = CultureInfo.InvariantCulture;

    private readonly string _name = $"moments/{Guid.NewGuid():n}/";

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public async Task Writes_that_follow_one_another_are_never_seen_the_other_way_round(Durability durability)
    {
        await using KahunaClient client = Connect(durability);
        using CancellationTokenSource end = new();
        string[] keys = [.. Enumerable.Range(0, Buckets).Select(i => $"{_name}{i:00}/key")];
        Task writing = WriteAsync(client, keys, end.Token);
        ScanOptions options = new() { Consistent = true, PageSize = 2 };
        long last = 0;
        int scans = 0;
        int expired = 0;
        for (DateTime begun = DateTime.UtcNow; scans < 5 || DateTime.UtcNow - begun < TimeSpan.FromSeconds(2);)
        {
            List<KeyValueEntry> found;
            try
            {
                found = await ReadAsync(client, options);
                Assert.InRange(await client.KeyValues.CountAsync(_name, options), found.Count, keys.Length);
            }
            catch (KahunaException failure) when (failure.Code == KahunaErrorCode.ScanExpired)
            {
                // The leader has moved to the node that is preferred.
                Assert.InRange(++expired, 0, 3);
                continue;
            }

            scans++;
            if (found.Count < keys.Length)
            {
                continue;
            }

            // Keys are written in turn with rising numbers, each after the one before was answered.
            long[] numbers = [.. found.Select(static entry => long.Parse(entry.Value.AsString()!, s_invariant))];
            Assert.InRange(numbers.Max() - numbers.Min(), 0, keys.Length);
            Assert.Equal(numbers.Length, numbers.Distinct().Count());
            Assert.InRange(numbers.Max(), last, long.MaxValue);
            last = numbers.Max();
        }

        await end.CancelAsync();
        await writing;
        Assert.InRange(scans, 5, int.MaxValue);
    }

    [Fact]
    public async Task Later_pages_show_the_moment_of_the_first()
    {
        await using KahunaClient client = Connect(Durability.Persistent);
        string[] keys = [.. Enumerable.Range(0, 100).Select(i => $"{_name}{i % Buckets:00}/{i:000}").Order()];
        ScanOptions options = new() { Consistent = true, PageSize = 3 };
        List<string>? found = null;
        for (int tries = 0; found is null; tries++)
        {
            Assert.InRange(tries, 0, 3);
            await client.KeyValues.DeleteAsync($"{_name}new");
            await Task.WhenAll(keys.Select(key => client.KeyValues.SetAsync(key, "before").AsTask()));
            try
            {
                found = await ScanOverWritesAsync(client, keys, options);
            }
            catch (KahunaException failure) when (failure.Code == KahunaErrorCode.ScanExpired)
            {
                // The leader has moved to the node that is preferred, or the machine was slow.
            }
        }

        Assert.Equal(keys, found);
        Assert.Equal(51, await client.KeyValues.CountAsync(_name, options));
    }

    [Theory]
    [InlineData(0)]
    [InlineData(1)]
    [InlineData(2)]
    public async Task Streams_and_counts_of_gRPC_clients_show_one_moment_at_every_node(int node)
    {
        await using KahunaClient client = Connect(Durability.Persistent);
        using CancellationTokenSource end = new();
        string[] keys = [.. Enumerable.Range(0, Buckets).Select(i => $"{_name}{i:00}/key")];
        await client.KeyValues.SetManyAsync(keys.Select(static (key, i) => new SetItem(key, $"{i - Buckets}")));
        Task writing = WriteAsync(client, keys, end.Token);
        StreamKeyValuesRequest request = Request();
        for (int whole = 0, tries = 0; whole < 5; tries++)
        {
            Assert.InRange(tries, 0, 40);
            try
            {
                long[] numbers = [.. (await ReadAsync(node, request)).Select(static entry =>
                    long.Parse(entry.Value.Data.ToStringUtf8(), s_invariant))];
                Assert.Equal(keys.Length, numbers.Length);
                Assert.Equal(keys.Length - 1, numbers.Max() - numbers.Min());
                Assert.Equal(keys.Length, (await CountAsync(node)).Count);
                whole++;
            }
            catch (RpcException expired) when (expired.StatusCode == StatusCode.Aborted)
            {
                Assert.Equal("did-not-happen", expired.Trailers.GetValue("kahuna-outcome"));
            }
        }

        await end.CancelAsync();
        await writing;
    }

    [Fact]
    public async Task A_consistent_stream_takes_no_token_and_a_node_serves_a_few_at_a_time()
    {
        await using KahunaClient client = Connect(Durability.Persistent);
        await client.KeyValues.SetManyAsync(
            Enumerable.Range(0, 200).Select(i => new SetItem($"{_name}{i}", new byte[60_000])));
        StreamKeyValuesRequest request = Request();
        request.PageToken = "x";
        RpcException refused = await Assert.ThrowsAsync<RpcException>(() => ReadAsync(0, request));
        Assert.Contains("page_token is set", refused.Status.Detail, StringComparison.Ordinal);
        request.PageToken = "";
        List<IAsyncEnumerator<StreamKeyValuesResponse>> open = [];
        for (int i = 0; i < ScanBudget.MomentsMax; i++)
        {
            open.Add(Stream(0, request).GetAsyncEnumerator());
            Assert.True(await open[i].MoveNextAsync());
            Assert.Equal("", open[i].Current.NextPageToken);
        }

        refused = await Assert.ThrowsAsync<RpcException>(() => ReadAsync(0, request));
        Assert.Equal(StatusCode.ResourceExhausted, refused.StatusCode);
        Assert.Contains("consistent scans", refused.Status.Detail, StringComparison.Ordinal);
        foreach (IAsyncEnumerator<StreamKeyValuesResponse> one in open)
        {
            await one.DisposeAsync();
        }

        for (int tries = 0; tries < 100; tries++)
        {
            try
            {
                Assert.Equal(200, (await ReadAsync(0, request)).Count);
                return;
            }
            catch (RpcException late) when (late.StatusCode == StatusCode.ResourceExhausted)
            {
                // The server hears a little later that the streams have ended.
                await Task.Delay(100);
            }
        }

        Assert.Fail("The streams that have ended still count.");
    }

    private StreamKeyValuesRequest Request() => new()
    {
        Prefix = _name,
        Durability = Server.Api.Protos.Durability.Persistent,
        Consistent = true,
    };

    private IAsyncEnumerable<StreamKeyValuesResponse> Stream(int node, StreamKeyValuesRequest request) =>
        nodes.Channel(node).ServerStreamingAsync(
            "/kahuna.v1.KeyValues/StreamKeyValues", request, StreamKeyValuesResponse.Parser);

    private async Task<List<Server.Api.Protos.KeyValueEntry>> ReadAsync(int node, StreamKeyValuesRequest request)
    {
        List<Server.Api.Protos.KeyValueEntry> found = [];
        await foreach (StreamKeyValuesResponse message in Stream(node, request))
        {
            found.AddRange(message.Entries);
        }

        return found;
    }

    private Task<CountKeyValuesResponse> CountAsync(int node) => nodes.Channel(node).UnaryAsync(
        "/kahuna.v1.KeyValues/CountKeyValues",
        new CountKeyValuesRequest
        {
            Prefix = _name,
            Durability = Server.Api.Protos.Durability.Persistent,
            Consistent = true,
        },
        CountKeyValuesResponse.Parser,
        TestCalls.Within(TimeSpan.FromMinutes(4), []));

    /// <summary>The keys of a scan; after the second of them all are overwritten or deleted.</summary>
    private async Task<List<string>> ScanOverWritesAsync(KahunaClient client, string[] keys, ScanOptions options)
    {
        List<string> found = [];
        await foreach (KeyValueEntry entry in client.KeyValues.ScanAsync(_name, options))
        {
            found.Add(entry.Key);
            Assert.Equal("before", entry.Value.AsString());
            if (found.Count == 2)
            {
                await Task.WhenAll(keys.Select(key => client.KeyValues.SetAsync(key, "after").AsTask()));
                await Task.WhenAll(keys[50..].Select(key => client.KeyValues.DeleteAsync(key).AsTask()));
                await client.KeyValues.SetAsync($"{_name}new", "after");
            }
        }

        return found;
    }

    private static async Task WriteAsync(KahunaClient client, string[] keys, CancellationToken ct)
    {
        for (long i = 0; !ct.IsCancellationRequested; i++)
        {
            await client.KeyValues.SetAsync(keys[i % keys.Length], i.ToString(s_invariant));
        }
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

    private KahunaClient Connect(Durability durability) => PatientClient.Connect(
        nodes.Cluster.Endpoints,
        options =>
        {
            options.Insecure = true;
            options.Durability = durability;
        });
}
