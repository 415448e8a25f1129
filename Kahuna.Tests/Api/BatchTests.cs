using Grpc.Core;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Locks;
using Kahuna.Client.Outcomes;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc;
using Fence = Kahuna.Client.Locks.Fence;

namespace Kahuna.Tests.Api;

/// <summary>
/// Batches, deletes by prefix and get-and-set through the SDK and for any gRPC client, against three real nodes with
/// three partitions.
/// </summary>
[Collection(nameof(ThreePartitionsCollection))]
public sealed class BatchTests(ThreePartitions nodes)
{
    private readonly string _name = $"batches/{Guid.NewGuid():n}/";

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public async Task Every_item_has_its_outcome_in_order(Durability durability)
    {
        await using KahunaClient client = Connect();
        BatchOptions level = new() { Durability = durability };
        string[] keys = [.. Enumerable.Range(0, 2_500).Select(i => $"{_name}{i % 11}/{i}")];
        BatchResult<SetResult> set = await client.KeyValues.SetManyAsync(
            keys.Select(static (key, i) => new SetItem(
                key, $"{i}", i % 5 == 0 ? new SetOptions { OnlyIfPresent = true } : null)),
            level);
        Assert.Equal(0, set.Failed);
        set.ThrowIfAnyFailed();
        Assert.Equal(keys.Length, set.Items.Count);
        Assert.All(set.Items.Select(static (item, i) => (item, i)), static pair =>
            Assert.Equal(pair.i % 5 != 0, pair.item.Result.Applied));
        BatchResult<GetResult> got = await client.KeyValues.GetManyAsync([.. keys, _name + "none"], level);
        Assert.All(got.Items.Take(keys.Length).Select(static (item, i) => (item, i)), static pair =>
            Assert.Equal(pair.i % 5 == 0 ? null : $"{pair.i}", pair.item.Result.Value.AsString()));
        Assert.False(got[keys.Length].Result.Found);
        BatchResult<ExistsResult> exists = await client.KeyValues.ExistsManyAsync(keys, level);
        Assert.Equal(2_000, exists.Items.Count(static item => item.Result.Found));
        BatchResult<DeleteResult> deleted = await client.KeyValues.DeleteManyAsync(
            keys.Take(10).Select(static key => (DeleteItem)key), level);
        Assert.Equal(8, deleted.Items.Count(static item => item.Result.Deleted));
    }

    [Fact]
    public async Task An_atomic_batch_is_applied_as_a_whole_or_not_at_all()
    {
        await using KahunaClient client = Connect();
        BatchOptions atomic = new() { Atomic = true };
        SetItem[] items = [.. Enumerable.Range(0, 100).Select(i => new SetItem($"{_name}{i}", "1"))];
        BatchResult<SetResult> set = await client.KeyValues.SetManyAsync(items, atomic);
        Assert.All(
            set.Items, static item => Assert.Equal((true, 1L), (item.Result.Applied, item.Result.Revision.Value)));
        items[40] = new SetItem($"{_name}new", "2", new SetOptions { OnlyIfAbsent = true, ReturnPrevious = true });
        items[41] = new SetItem($"{_name}41", "2", new SetOptions { OnlyIfRevision = new Revision(1) });
        items[42] = new SetItem($"{_name}42", "2", new SetOptions { OnlyIfValue = "7" });
        set = await client.KeyValues.SetManyAsync(items, atomic);
        Assert.All(set.Items, static item => Assert.False(item.Result.Applied));
        Assert.Equal((1L, 0L), (set[42].Result.Revision.Value, set[40].Result.Revision.Value));
        BatchResult<GetResult> got = await client.KeyValues.GetManyAsync(items.Select(static item => item.Key), atomic);
        Assert.All(got.Items.Where((_, i) => i != 40), static item => Assert.Equal("1", item.Result.Value.AsString()));
        Assert.False(got[40].Result.Found);
        items[42] = new SetItem($"{_name}42", "2", new SetOptions { OnlyIfValue = "1", ReturnPrevious = true });
        set = await client.KeyValues.SetManyAsync(items, atomic);
        Assert.All(set.Items, static item => Assert.True(item.Result.Applied));
        Assert.Equal((2L, "1"), (set[42].Result.Revision.Value, set[42].Result.Previous?.AsString()));
        BatchResult<DeleteResult> deleted = await client.KeyValues.DeleteManyAsync(
            [$"{_name}1", new DeleteItem($"{_name}2", new DeleteOptions { OnlyIfRevision = new Revision(9) })], atomic);
        Assert.Equal([false, false], deleted.Items.Select(static item => item.Result.Deleted));
        Assert.True(deleted[0].Result.Found);
        deleted = await client.KeyValues.DeleteManyAsync([$"{_name}1", $"{_name}none"], atomic);
        Assert.Equal([true, false], deleted.Items.Select(static item => item.Result.Deleted));
        BatchResult<ExistsResult> exists = await client.KeyValues.ExistsManyAsync([$"{_name}1", $"{_name}2"], atomic);
        Assert.Equal([false, true], exists.Items.Select(static item => item.Result.Found));
    }

    [Fact]
    public async Task An_atomic_batch_can_have_a_fence()
    {
        await using KahunaClient client = Connect();
        string bucket = _name + "lock";
        await using LockHandle held = await client.Locks.AcquireAsync(
            bucket, TimeSpan.FromMinutes(1), TimeSpan.FromSeconds(10));
        SetItem[] items = [new($"{_name}a", "1"), new($"{_name}b", "1")];
        BatchOptions fenced = new() { Atomic = true, Fence = held.Fence };
        Assert.True((await client.KeyValues.SetManyAsync(items, fenced))[1].Result.Applied);
        Fence lost = new(bucket, new FencingToken(held.Token.Value + 1));
        await AssertRefusedAsync(
            KahunaErrorCode.LockLost,
            "no longer holds the lock",
            client.KeyValues.SetManyAsync(items, fenced with { Fence = lost }));
    }

    [Fact]
    public async Task What_cannot_be_is_refused_before_anything_is_sent()
    {
        await using KahunaClient client = Connect();
        BatchOptions atomic = new() { Atomic = true };
        SetItem good = new(_name + "good", "x");
        KeyValueClient store = client.KeyValues;
        const KahunaErrorCode Bad = KahunaErrorCode.InvalidArgument;
        await AssertRefusedAsync(Bad, "must have 1 to 10,000", store.SetManyAsync([]));
        await AssertRefusedAsync(Bad, "too many items", store.SetManyAsync(Endless(good)));
        await AssertRefusedAsync(Bad, "must have 1 to 1,000", store.GetManyAsync(
            Enumerable.Range(0, 1_001).Select(i => $"{_name}{i}"), atomic));
        await AssertRefusedAsync(Bad, "item 1: key is empty", store.SetManyAsync([good, new("", "x")]));
        await AssertRefusedAsync(Bad, "item 1: key has an unpaired", store.SetManyAsync([good, new("\ud800", "x")]));
        await AssertRefusedAsync(Bad, "reserved", store.DeleteManyAsync([_name + "good", "__kahuna/x"]));
        await AssertRefusedAsync(Bad, "item 1: Ttl is 0", store.SetManyAsync(
            [good, new(_name + "b", "x", new SetOptions { Ttl = TimeSpan.Zero })]));
        await AssertRefusedAsync(Bad, "named twice", store.SetManyAsync([good, good], atomic));
        await AssertRefusedAsync(Bad, "named twice", store.SetManyAsync(
            [.. Enumerable.Range(0, 50).Select(i => new SetItem($"{_name}{i}/x", "x")), new($"{_name}7/x", "x")],
            atomic));
        await AssertRefusedAsync(Bad, "limit is 4,194,304", store.SetManyAsync(
            Enumerable.Range(0, 5).Select(i => new SetItem($"{_name}{i}", new byte[1_000_000])), atomic));
        await AssertRefusedAsync(Bad, "would delete every key", AsResult(store.DeleteByPrefixAsync("")));
        Assert.False((await store.ExistsAsync(_name + "good")).Found);
        await store.SetManyAsync(Enumerable.Range(0, 5).Select(i => new SetItem($"{_name}{i}", new byte[1_000_000])));
        await AssertRefusedAsync(KahunaErrorCode.ReplyTooLarge, "4 MiB", store.GetManyAsync(
            Enumerable.Range(0, 5).Select(i => $"{_name}{i}"), atomic));
        BatchResult<SetResult> mixed = await store.SetManyAsync([good, new(_name + "large", new byte[2_000_000])]);
        Assert.Equal((true, Bad), (mixed[0].Result.Applied, mixed[1].Error!.Code));
        Assert.Equal(1, mixed.Failed);
        Assert.Throws<KahunaException>(mixed.ThrowIfAnyFailed);
        using CancellationTokenSource canceled = new();
        await canceled.CancelAsync();
        await Assert.ThrowsAsync<KahunaCanceledException>(
            () => store.SetManyAsync([good], null, canceled.Token).AsTask());
    }

    [Fact]
    public async Task The_value_before_a_write_comes_with_it()
    {
        await using KahunaClient client = Connect();
        Assert.Null((await client.KeyValues.GetAndSetAsync(_name, "1")).Previous);
        Assert.Equal("1", (await client.KeyValues.GetAndSetAsync(_name, "2")).Previous?.AsString());
        DeleteResult deleted = await client.KeyValues.GetAndDeleteAsync(_name);
        Assert.Equal(("2", 2L), (deleted.Previous?.AsString(), deleted.PreviousRevision.Value));
        Assert.False((await client.KeyValues.GetAndDeleteAsync(_name)).Found);
    }

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public async Task A_prefix_is_deleted_in_steps(Durability durability)
    {
        await using KahunaClient client = Connect();
        BatchOptions level = new() { Durability = durability };
        await client.KeyValues.SetManyAsync(
            Enumerable.Range(0, 4_000).Select(i => new SetItem($"{_name}{i % 9}/{i:0000}", "x")), level);
        List<long> steps = [];
        DeleteByPrefixOptions options = new() { Durability = durability };
        long deleted = await client.KeyValues.DeleteByPrefixAsync(_name + "1/", options);
        Assert.Equal(445, deleted);
        deleted = await client.KeyValues.DeleteByPrefixAsync(
            _name + "2/", options with { From = $"{_name}2/1000", To = $"{_name}2/2000" });
        Assert.Equal(111, deleted);
        deleted = await client.KeyValues.DeleteByPrefixAsync(_name, options, new Progress(steps));
        Assert.Equal(4_000 - 445 - 111, deleted);
        Assert.Equal(steps.Order(), steps);
        Assert.Equal(deleted, steps[^1]);
        Assert.Equal(
            0, await client.KeyValues.CountAsync(_name, new ScanOptions { Durability = durability }));
        Assert.Equal(0, await client.KeyValues.DeleteByPrefixAsync(_name, options));
    }

    [Fact]
    public async Task A_numbered_batch_that_comes_again_takes_effect_once()
    {
        SetManyKeyValuesRequest request = new();
        for (int i = 0; i < 20; i++)
        {
            request.Items.Add(Item($"{_name}{i % 3}/{i}"));
        }

        Metadata headers = new()
        {
            { "x-kahuna-session", $"{Random.Shared.NextInt64(1, long.MaxValue)}" },
            { "x-kahuna-sequence", "100" },
        };
        for (int i = 0; i < 2; i++)
        {
            SetManyKeyValuesResponse reply = await UnaryAsync(
                "SetManyKeyValues", request, SetManyKeyValuesResponse.Parser, headers);
            Assert.All(reply.Outcomes, static outcome => Assert.Equal(1, outcome.Result.Revision));
        }

        SetManyKeyValuesRequest atomic = new() { Items = { request.Items.Take(1) }, Atomic = true };
        Metadata key = new() { { "x-kahuna-idempotency-key", _name } };
        for (int i = 0; i < 2; i++)
        {
            SetManyKeyValuesResponse reply = await UnaryAsync(
                "SetManyKeyValues", atomic, SetManyKeyValuesResponse.Parser, key);
            Assert.Equal(2, Assert.Single(reply.Outcomes).Result.Revision);
        }

        await AssertRefusedAsync("a batch needs atomic", "SetManyKeyValues", request, key);
        await AssertRefusedAsync(
            "has several steps", "DeleteKeyValueRange", new DeleteKeyValueRangeRequest { Prefix = _name }, key);
    }

    [Fact]
    public async Task An_answer_has_a_bound_and_the_items_behind_it_an_error()
    {
        GetManyKeyValuesRequest request = new();
        for (int i = 0; i < 40; i++)
        {
            SetKeyValueRequest item = Item($"{_name}{i}");
            item.Value.Data = Google.Protobuf.ByteString.CopyFrom(new byte[250_000]);
            await UnaryAsync(
                "SetManyKeyValues",
                new SetManyKeyValuesRequest { Items = { item } },
                SetManyKeyValuesResponse.Parser);
            request.Items.Add(
                new GetKeyValueRequest { Key = item.Key, Durability = Server.Api.Protos.Durability.Persistent });
        }

        GetManyKeyValuesResponse reply = await UnaryAsync(
            "GetManyKeyValues", request, GetManyKeyValuesResponse.Parser);
        Assert.Equal(40, reply.Outcomes.Count);
        Assert.Equal(16, reply.Outcomes.Count(static outcome => outcome.Result is { Found: true }));
        Assert.All(reply.Outcomes.Skip(16), static outcome =>
            Assert.Equal(
                ((int)StatusCode.ResourceExhausted, "did-not-happen"), (outcome.Error.Code, outcome.Error.Outcome)));
    }

    [Fact]
    public async Task Bad_batches_and_deletes_of_ranges_are_refused_with_a_sentence()
    {
        SetManyKeyValuesRequest request = new() { Items = { Item(_name + "a"), Item("") } };
        await AssertRefusedAsync("item 1: key is empty", "SetManyKeyValues", request);
        request.Items[1] = new SetKeyValueRequest { Key = _name };
        await AssertRefusedAsync("item 1: value is missing", "SetManyKeyValues", request);
        request.Items[1] = Item(_name + "b");
        request.Fence = new Server.Api.Protos.Fence { Resource = _name + "lock", Token = 1 };
        await AssertRefusedAsync("without atomic", "SetManyKeyValues", request);
        request.Fence = null;
        request.Items[1].Fence = new Server.Api.Protos.Fence { Resource = _name + "lock", Token = 1 };
        request.Atomic = true;
        await AssertRefusedAsync("inside of a transaction", "SetManyKeyValues", request);
        Assert.False((await Connect().KeyValues.ExistsAsync(_name + "a")).Found);
        DeleteKeyValueRangeRequest range = new() { Durability = Server.Api.Protos.Durability.Persistent };
        await AssertRefusedAsync("would delete every key", "DeleteKeyValueRange", range);
        range.Prefix = _name;
        range.Limit = 10_001;
        await AssertRefusedAsync("limit is 10,001", "DeleteKeyValueRange", range);
        range.Limit = 1;
        await using KahunaClient client = Connect();
        await client.KeyValues.SetManyAsync(
            Enumerable.Range(0, 9).Select(i => new SetItem($"{_name}{i}/x", "x")));
        DeleteKeyValueRangeResponse first = await UnaryAsync(
            "DeleteKeyValueRange", range, DeleteKeyValueRangeResponse.Parser);
        Assert.Equal(1, first.Deleted);
        range.PageToken = first.NextPageToken;
        range.WithoutHistory = true;
        await AssertRefusedAsync("page_token", "DeleteKeyValueRange", range);
        range.WithoutHistory = false;
        long deleted = first.Deleted;
        for (range.Limit = 3; range.PageToken.Length > 0; range.PageToken = first.NextPageToken)
        {
            first = await UnaryAsync("DeleteKeyValueRange", range, DeleteKeyValueRangeResponse.Parser);
            deleted += first.Deleted;
        }

        Assert.Equal(9, deleted);
    }

    private static SetKeyValueRequest Item(string key) => new()
    {
        Key = key,
        Durability = Server.Api.Protos.Durability.Persistent,
        Value = new Value { Data = Google.Protobuf.ByteString.CopyFromUtf8("x") },
    };

    private async Task AssertRefusedAsync<TRequest>(
        string words, string method, TRequest request, Metadata? headers = null)
        where TRequest : Google.Protobuf.IMessage<TRequest>
    {
        RpcException refused = await Assert.ThrowsAsync<RpcException>(
            () => UnaryAsync(method, request, SetManyKeyValuesResponse.Parser, headers));
        Assert.Contains(words, refused.Status.Detail, StringComparison.Ordinal);
        Assert.Equal(
            (StatusCode.InvalidArgument, "did-not-happen"),
            (refused.StatusCode, refused.Trailers.GetValue("kahuna-outcome")));
    }

    private Task<TReply> UnaryAsync<TRequest, TReply>(
        string method,
        TRequest request,
        Google.Protobuf.MessageParser<TReply> parser,
        Metadata? headers = null)
        where TRequest : Google.Protobuf.IMessage<TRequest>
        where TReply : class, Google.Protobuf.IMessage<TReply> =>
        nodes.Follower.UnaryAsync(
            $"/kahuna.v1.KeyValues/{method}",
            request,
            parser,
            TestCalls.Within(TimeSpan.FromMinutes(4), headers ?? []));

    private static async ValueTask<BatchResult<SetResult>> AsResult(ValueTask<long> call)
    {
        await call;
        return null!;
    }

    private static async Task AssertRefusedAsync<TResult>(
        KahunaErrorCode code, string words, ValueTask<BatchResult<TResult>> call)
        where TResult : struct
    {
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => call.AsTask());
        Assert.Contains(words, failure.Message, StringComparison.Ordinal);
        Assert.Equal((code, OperationOutcome.DidNotHappen), (failure.Code, failure.Outcome));
    }

    private static IEnumerable<SetItem> Endless(SetItem item)
    {
        while (true)
        {
            yield return item;
        }
    }

    private KahunaClient Connect() =>
        PatientClient.Connect(nodes.Cluster.Endpoints, static options => options.Insecure = true);

    private sealed class Progress(List<long> steps) : IProgress<long>
    {
        public void Report(long value) => steps.Add(value);
    }
}
