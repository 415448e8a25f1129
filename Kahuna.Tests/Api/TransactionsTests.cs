using Google.Protobuf;
using Grpc.Core;
using Kahuna.Client;
using Kahuna.Client.Locks;
using Kahuna.Client.Transactions;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc;
using Level = Kahuna.Server.Api.Protos.Durability;

namespace Kahuna.Tests.Api;

/// <summary>
/// Transactions of one round trip through the SDK and for any gRPC client, against three real nodes with three
/// partitions.
/// </summary>
[Collection(nameof(ThreePartitionsCollection))]
public sealed class TransactionsTests(ThreePartitions nodes)
{
    private readonly string _name = $"transactions/{Guid.NewGuid():n}/";

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public async Task All_operations_of_one_list_are_carried_out(Durability durability)
    {
        await using KahunaClient client = Connect();
        ConditionalTransaction transfer = client.Transactions
            .If(KeyCondition.HasValue(Key("a"), "100"), KeyCondition.Absent(Key("closed")))
            .Then(KeyOperation.Increment(Key("a"), -10), KeyOperation.Increment(Key("b"), 10))
            .Else(KeyOperation.Get(Key("a")), KeyOperation.Exists(Key("closed")))
            .WithDurability(durability);
        TransactionResult refused = await transfer.CommitAsync();
        Assert.False(refused.Succeeded);
        Assert.Equal([false, true], refused.Conditions.Select(static condition => condition.Held));
        Assert.Equal((false, false), (refused[0].AsGet().Found, refused[1].AsExists().Found));

        TransactionResult begun = await client.Transactions.If()
            .Then(
                KeyOperation.Set(Key("a"), "100", ttl: TimeSpan.FromMinutes(9), returnPrevious: true),
                KeyOperation.Delete(Key("none"), returnPrevious: true),
                KeyOperation.Extend(Key("void"), TimeSpan.FromMinutes(1)))
            .WithDurability(durability)
            .CommitAsync();
        Assert.True(begun.Succeeded);
        Assert.True(begun[0].AsSet().Applied);
        Assert.False(begun[1].AsDelete().Deleted);
        Assert.False(begun[2].AsExtend().Found);
        Assert.Equal(new Revision(1), begun[0].Revision);

        TransactionResult done = await transfer.CommitAsync();
        Assert.True(done.Succeeded);
        Assert.Equal((90L, 10L), (done[0].AsIncrement().Value, done[1].AsIncrement().Value));
        Assert.Equal((Key("b"), new Revision(1)), (done[1].Key, done[1].Revision));
        Assert.Throws<InvalidOperationException>(() => done[0].AsGet());
        refused = await transfer.CommitAsync();
        Assert.Equal("90", refused[0].AsGet().Value.AsString());
        Assert.NotNull(refused[0].AsGet().RemainingTtl);
        TransactionResult old = await client.Transactions
            .If(KeyCondition.HasRevision(Key("a"), new Revision(2)), KeyCondition.Exists(Key("b")))
            .Then(KeyOperation.Get(Key("a"), new Revision(1)), KeyOperation.Delete(Key("b"), returnPrevious: true))
            .WithDurability(durability)
            .CommitAsync();
        Assert.Equal(("100", "10"), (old[0].AsGet().Value.AsString(), old[1].AsDelete().Previous?.AsString()));
    }

    [Fact]
    public async Task A_transaction_can_have_a_fence()
    {
        await using KahunaClient client = Connect();
        await using LockHandle held = await client.Locks.AcquireAsync(
            Key("lock"), TimeSpan.FromMinutes(1), TimeSpan.FromSeconds(10));
        ConditionalTransaction write = client.Transactions.If().Then(KeyOperation.Set(Key("a"), "1"));
        Assert.True((await write.WithFence(held.Fence).CommitAsync()).Succeeded);
        Kahuna.Client.Locks.Fence lost = held.Fence with { Token = new FencingToken(held.Token.Value + 1) };
        await AssertRefusedAsync(KahunaErrorCode.LockLost, "no longer holds the lock", write.WithFence(lost));
        Assert.Equal(1, (await client.KeyValues.GetAsync(Key("a"))).Revision.Value);
    }

    [Fact]
    public async Task What_cannot_be_is_refused_and_nothing_happened()
    {
        await using KahunaClient client = Connect();
        TransactionClient store = client.Transactions;
        KeyOperation good = KeyOperation.Set(Key("good"), "x");
        const KahunaErrorCode Bad = KahunaErrorCode.InvalidArgument;
        await AssertRefusedAsync(Bad, "has no operations", store.If(KeyCondition.Exists(Key("a"))));
        await AssertRefusedAsync(Bad, "has 1,001 operations", store.If().Then(
            Enumerable.Range(0, 1_001).Select(i => KeyOperation.Get(Key($"{i}")))));
        await AssertRefusedAsync(Bad, "has 1,001 conditions", store.If(
            Enumerable.Range(0, 1_001).Select(i => KeyCondition.Exists(Key($"{i}")))).Then(good));
        await AssertRefusedAsync(Bad, "operation 2: key is empty", store.If().Then(good, KeyOperation.Get("")));
        await AssertRefusedAsync(Bad, "condition 1: key", store.If(KeyCondition.Exists("__kahuna/x")).Then(good));
        await AssertRefusedAsync(Bad, "operation 2: ttl", store.If().Then(
            good, KeyOperation.Set(Key("b"), "x", TimeSpan.FromMilliseconds(-1))));
        await AssertRefusedAsync(Bad, "of the other case 1: key has an unpaired", store.If().Else(
            KeyOperation.Get("\ud800")));
        await AssertRefusedAsync(Bad, "named twice", store.If().Then(good, KeyOperation.Get(Key("good"))));
        await AssertRefusedAsync(Bad, "revision", store.If(
            KeyCondition.HasRevision(Key("a"), new Revision(0))).Then(good));
        await AssertRefusedAsync(Bad, "limit is 4,194,304", store.If().Then(
            Enumerable.Range(0, 5).Select(i => KeyOperation.Set($"{_name}{i}/x", new byte[1_000_000]))));
        await AssertRefusedAsync(Bad, "limit is 4,194,304", store.If().Then(
            Enumerable.Range(0, 5).Select(i => KeyOperation.Set(Key($"{i}"), new byte[1_000_000]))));
        await client.KeyValues.SetAsync(Key("text"), "abc");
        await client.KeyValues.SetAsync(Key("most"), $"{long.MaxValue}");
        await AssertRefusedAsync(KahunaErrorCode.NotAnInteger, "Operation 2", store.If().Then(
            good, KeyOperation.Increment(Key("text"))));
        await AssertRefusedAsync(KahunaErrorCode.Overflow, "Operation 2", store.If().Then(
            good, KeyOperation.Increment(Key("most"))));
        Assert.False((await client.KeyValues.ExistsAsync(Key("good"))).Found);
        using CancellationTokenSource canceled = new();
        await canceled.CancelAsync();
        await Assert.ThrowsAsync<KahunaCanceledException>(() => store.If().Then(good).CommitAsync(canceled.Token));
        Assert.Throws<ArgumentNullException>(() => KeyOperation.Get(null!));
        Assert.Throws<ArgumentNullException>(() => KeyCondition.Absent(null!));
    }

    [Fact]
    public async Task Any_client_executes_transactions_through_any_node()
    {
        ExecuteTransactionRequest request = new()
        {
            Durability = Level.Persistent,
            Conditions =
            {
                new TransactionCondition { Key = Key("a"), Absent = true },
                new TransactionCondition { Key = Key("a"), Value = new Value() },
            },
            Then = { Set("a", "1") },
            Otherwise = { Set("a", "2"), Increment("n", 5) },
        };
        ExecuteTransactionResponse reply = await UnaryAsync(request);
        Assert.False(reply.Succeeded);
        Assert.Equal([true, false], reply.Conditions.Select(static condition => condition.Held));
        Assert.Equal((1L, 5L), (reply.Results[0].Set.Revision, reply.Results[1].Increment.Value));

        request.Conditions.Clear();
        request.Conditions.Add(new TransactionCondition { Key = Key("a"), Revision = 1 });
        request.Conditions.Add(new TransactionCondition { Key = Key("n"), Present = true });
        request.Then.Clear();
        request.Then.Add(new TransactionOperation { Get = new GetKeyValueRequest { Key = Key("a") } });
        request.Then.Add(new TransactionOperation { Exists = new ExistsKeyValueRequest { Key = Key("n") } });
        request.Then.Add(new TransactionOperation { Delete = new DeleteKeyValueRequest { Key = Key("none") } });
        request.Then.Add(
            new TransactionOperation { Extend = new ExtendKeyValueRequest { Key = Key("m"), TtlMs = 5000 } });
        reply = await UnaryAsync(request);
        Assert.True(reply.Succeeded);
        Assert.Equal("2", reply.Results[0].Get.Value.Data.ToStringUtf8());
        Assert.True(reply.Results[1].Exists.Found);
        Assert.False(reply.Results[2].Delete.Deleted);
        Assert.False(reply.Results[3].Extend.Found);

        Metadata once = new() { { "x-kahuna-idempotency-key", _name } };
        request = new ExecuteTransactionRequest { Durability = Level.Persistent, Then = { Increment("n", 1) } };
        for (int i = 0; i < 2; i++)
        {
            Assert.Equal(6, (await UnaryAsync(request, once)).Results[0].Increment.Value);
        }
    }

    [Fact]
    public async Task Bad_transactions_of_any_client_are_refused_with_a_sentence()
    {
        ExecuteTransactionRequest request = new() { Durability = Level.Persistent };
        await AssertRefusedAsync("has no operations", request);
        request.Then.Add(Set("a", "1"));
        request.Then.Add(new TransactionOperation());
        await AssertRefusedAsync("operation of then 2: the operation is missing", request);
        request.Then[1] = Set("b", "1");
        request.Then[1].Set.Conditions = new Conditions { IfAbsent = true };
        await AssertRefusedAsync("neither conditions nor a fence", request);
        request.Then[1] = Set("a", "1");
        await AssertRefusedAsync("named twice", request);
        request.Then.RemoveAt(1);
        request.Conditions.Add(new TransactionCondition { Key = Key("a"), Absent = false });
        await AssertRefusedAsync("condition 1: a condition has absent, present, no_keys or no_other_keys", request);
        request.Conditions[0] = new TransactionCondition { Key = Key("a"), Revision = 0 };
        await AssertRefusedAsync("condition 1: if_revision", request);
        request.Conditions.Clear();
        request.Durability = Level.Unspecified;
        await AssertRefusedAsync("durability", request);
        request.Durability = Level.Persistent;
        request.Then[0] = Set("text", "abc");
        await UnaryAsync(request);
        request.Then[0] = Increment("text", 1);
        RpcException failed = await Assert.ThrowsAsync<RpcException>(() => UnaryAsync(request));
        Assert.Equal(
            (StatusCode.FailedPrecondition, "did-not-happen"),
            (failed.StatusCode, failed.Trailers.GetValue("kahuna-outcome")));
    }

    private string Key(string name) => _name + name;

    private TransactionOperation Set(string key, string value) => new()
    {
        Set = new SetKeyValueRequest { Key = Key(key), Value = new Value { Data = ByteString.CopyFromUtf8(value) } },
    };

    private TransactionOperation Increment(string key, long amount) =>
        new() { Increment = new IncrementKeyValueRequest { Key = Key(key), Amount = amount } };

    private async Task AssertRefusedAsync(string words, ExecuteTransactionRequest request)
    {
        RpcException refused = await Assert.ThrowsAsync<RpcException>(() => UnaryAsync(request));
        Assert.Contains(words, refused.Status.Detail, StringComparison.Ordinal);
        Assert.Equal(
            (StatusCode.InvalidArgument, "did-not-happen"),
            (refused.StatusCode, refused.Trailers.GetValue("kahuna-outcome")));
    }

    private static async Task AssertRefusedAsync(
        KahunaErrorCode code, string words, ConditionalTransaction transaction)
    {
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => transaction.CommitAsync());
        Assert.Contains(words, failure.Message, StringComparison.OrdinalIgnoreCase);
        Assert.Equal((code, OperationOutcome.DidNotHappen), (failure.Code, failure.Outcome));
    }

    private Task<ExecuteTransactionResponse> UnaryAsync(ExecuteTransactionRequest request, Metadata? headers = null) =>
        nodes.Follower.UnaryAsync(
            "/kahuna.v1.Transactions/ExecuteTransaction",
            request,
            ExecuteTransactionResponse.Parser,
            TestCalls.Within(TimeSpan.FromMinutes(4), headers ?? []));

    private KahunaClient Connect() =>
        PatientClient.Connect(nodes.Cluster.Endpoints, static options => options.Insecure = true);
}
