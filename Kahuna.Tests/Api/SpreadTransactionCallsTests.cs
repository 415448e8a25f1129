using System.Text;
using Google.Protobuf;
using Grpc.Core;
using Kahuna.Client;
using Kahuna.Client.Outcomes;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc;
using Level = Kahuna.Server.Api.Protos.Durability;

namespace Kahuna.Tests.Api;

/// <summary>
/// Transactions and atomic batches over several partitions and both durabilities for any client, through any of three
/// real nodes with three partitions.
/// </summary>
[Collection(nameof(ThreePartitionsCollection))]
public sealed class SpreadTransactionCallsTests(ThreePartitions nodes)
{
    private const int Keys = 12;

    private readonly string _name = $"calls/{Guid.NewGuid():n}/";

    [Fact]
    public async Task Any_client_executes_them_through_any_node()
    {
        ExecuteTransactionRequest request = new() { Durability = Level.Persistent };
        request.Conditions.AddRange(Each(static (key, _) => new TransactionCondition { Key = key, Absent = true }));
        request.Then.AddRange(Each(static (key, i) => new TransactionOperation
        {
            Set = new SetKeyValueRequest { Key = key, Value = Text($"{i}") },
        }));
        request.Then.Add(new TransactionOperation
        {
            Set = new SetKeyValueRequest { Key = Key(0), Durability = Level.Ephemeral, Value = Text("e") },
        });
        request.Otherwise.AddRange(Each(static (key, _) => new TransactionOperation
        {
            Get = new GetKeyValueRequest { Key = key },
        }));
        for (int node = 0; node < 3; node++)
        {
            ExecuteTransactionResponse reply = await UnaryAsync(request, node);
            Assert.Equal(node == 0, reply.Succeeded);
            Assert.Equal(Keys, reply.Conditions.Count);
            Assert.All(reply.Conditions, condition => Assert.Equal(node == 0, condition.Held));
            Assert.Equal(node == 0 ? Keys + 1 : Keys, reply.Results.Count);
            Assert.All(reply.Results, result => Assert.True(node == 0 ? result.Set.Set : result.Get.Found));
        }

        SetManyKeyValuesRequest batch = new() { Atomic = true };
        batch.Items.AddRange(Each(static (key, i) => new SetKeyValueRequest
        {
            Key = key,
            Durability = Level.Persistent,
            Value = Text("batch"),
            Conditions = i == 5 ? new Conditions { IfRevision = 1 } : null,
        }));
        SetManyKeyValuesResponse written = await nodes.Channel(1).UnaryAsync(
            "/kahuna.v1.KeyValues/SetManyKeyValues", batch, SetManyKeyValuesResponse.Parser, Within());
        Assert.All(written.Outcomes, static outcome => Assert.True(outcome.Result.Set));
        GetManyKeyValuesRequest many = new() { Atomic = true };
        many.Items.AddRange(Each(static (key, _) => new GetKeyValueRequest
        {
            Key = key,
            Durability = Level.Persistent,
        }));
        GetManyKeyValuesResponse read = await nodes.Channel(2).UnaryAsync(
            "/kahuna.v1.KeyValues/GetManyKeyValues", many, GetManyKeyValuesResponse.Parser, Within());
        Assert.All(
            read.Outcomes, static outcome => Assert.Equal("batch", outcome.Result.Value.Data.ToStringUtf8()));
    }

    [Fact]
    public async Task Json_reaches_them_too()
    {
        using HttpClient http = new(new SocketsHttpHandler
        {
            SslOptions = { RemoteCertificateValidationCallback = static (_, _, _, _) => true },
        });
        http.BaseAddress = nodes.Cluster.Nodes[1].Options.Advertise;
        string then = string.Join(
            ',', Each(static (key, _) => $$$"""{"increment":{"key":"{{{key}}}","amount":"1"}}"""));
        using StringContent request = new(
            $$"""{"durability":"DURABILITY_PERSISTENT","then":[{{then}}]}""", Encoding.UTF8, "application/json");
        using HttpResponseMessage reply = await http.PostAsync("v1/transaction", request);
        string text = await reply.Content.ReadAsStringAsync();
        Assert.True(reply.IsSuccessStatusCode, text);
        Assert.Equal(Keys, text.Split("\"value\":\"1\"").Length - 1);
    }

    [Fact]
    public async Task A_condition_about_a_prefix_is_for_any_client()
    {
        ExecuteTransactionRequest request = new() { Durability = Level.Persistent };
        request.Conditions.Add(new TransactionCondition { Key = _name, NoKeys = true });
        request.Then.Add(new TransactionOperation
        {
            Set = new SetKeyValueRequest { Key = Key(0), Value = Text("1") },
        });
        Assert.True((await UnaryAsync(request, 0)).Succeeded);
        ExecuteTransactionResponse second = await UnaryAsync(request, 1);
        Assert.False(second.Succeeded);
        Assert.False(Assert.Single(second.Conditions).Held);
        request.Conditions[0].NoKeys = false;
        await AssertRefusedAsync(StatusCode.InvalidArgument, "no_keys", request);

        request.Conditions[0].NoOtherKeys = true;
        Assert.False((await UnaryAsync(request, 2)).Succeeded);
        request.Conditions.Add(new TransactionCondition { Key = Key(0), Present = true });
        Assert.True((await UnaryAsync(request, 0)).Succeeded);
        request.Conditions[0].NoOtherKeys = false;
        await AssertRefusedAsync(StatusCode.InvalidArgument, "no_other_keys", request);
    }

    [Fact]
    public async Task Numbers_lost_fences_and_impossible_ones_of_any_client_are_refused_with_a_sentence()
    {
        ExecuteTransactionRequest request = new() { Durability = Level.Persistent };
        request.Then.AddRange(Each(static (key, _) => new TransactionOperation
        {
            Increment = new IncrementKeyValueRequest { Key = key, Amount = 1 },
        }));
        await AssertRefusedAsync(
            StatusCode.InvalidArgument, "no idempotency key", request, ("x-kahuna-idempotency-key", _name));
        request.Fence = new Kahuna.Server.Api.Protos.Fence { Resource = _name + "lock", Token = 1 };
        await AssertRefusedAsync(StatusCode.FailedPrecondition, "nothing was written", request);
        request.Fence = null;
        request.Then.Add(request.Then[0]);
        await AssertRefusedAsync(StatusCode.InvalidArgument, "named twice", request);
        request.Then.RemoveAt(Keys);
        await using KahunaClient client = Connect();
        await client.KeyValues.SetAsync(Key(4), "abc");
        await AssertRefusedAsync(StatusCode.FailedPrecondition, "Operation 5", request);
        Assert.Equal([null, "abc"], await ReadAsync(client, 0, 4));
    }

    private async Task AssertRefusedAsync(
        StatusCode code, string words, ExecuteTransactionRequest request, params (string Name, string Value)[] headers)
    {
        RpcException refused = await Assert.ThrowsAsync<RpcException>(() => UnaryAsync(request, 0, headers));
        Assert.Contains(words, refused.Status.Detail, StringComparison.Ordinal);
        Assert.Equal(
            (code, "did-not-happen"), (refused.StatusCode, refused.Trailers.GetValue("kahuna-outcome")));
    }

    private Task<ExecuteTransactionResponse> UnaryAsync(
        ExecuteTransactionRequest request, int node, params (string Name, string Value)[] headers) =>
        nodes.Channel(node).UnaryAsync(
            "/kahuna.v1.Transactions/ExecuteTransaction", request, ExecuteTransactionResponse.Parser, Within(headers));

    private static CallOptions Within(params (string Name, string Value)[] headers)
    {
        Metadata metadata = [];
        foreach ((string name, string value) in headers)
        {
            metadata.Add(name, value);
        }

        return TestCalls.Within(TimeSpan.FromMinutes(4), metadata);
    }

    private static Value Text(string text) => new() { Data = ByteString.CopyFromUtf8(text) };

    private async Task<IEnumerable<string?>> ReadAsync(KahunaClient client, params int[] keys)
    {
        BatchResult<GetResult> read = await client.KeyValues.GetManyAsync(keys.Select(Key));
        return read.Items.Select(static each => each.Result.Value.AsString());
    }

    /// <summary>A key of a bucket of its own.</summary>
    private string Key(int index) => $"{_name}{index}/x";

    private IEnumerable<T> Each<T>(Func<string, int, T> make) =>
        Enumerable.Range(0, Keys).Select(i => make(Key(i), i));

    private KahunaClient Connect() =>
        PatientClient.Connect(nodes.Cluster.Endpoints, static options => options.Insecure = true);
}
