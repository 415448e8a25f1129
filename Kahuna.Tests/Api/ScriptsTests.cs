using Grpc.Core;
using Kahuna.Client;
using Kahuna.Client.Locks;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Scripts;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc;

namespace Kahuna.Tests.Api;

/// <summary>
/// Scripts through the SDK and for any gRPC client, against three real nodes with three partitions.
/// </summary>
[Collection(nameof(ThreePartitionsCollection))]
public sealed class ScriptsTests(ThreePartitions nodes)
{
    private const string Transfer =
        """
        let giver = get @from
        if giver = null || to_int(giver) < @amount then throw 'not enough' end
        let taker = get @to
        set @from (to_int(giver) - @amount)
        set @to (to_int(taker) + @amount)
        return [to_int(giver) - @amount, taker]
        """;

    private readonly string _bucket = $"scripts/{Guid.NewGuid():n}";

    [Fact]
    public async Task A_script_reads_and_writes_at_one_moment()
    {
        await using KahunaClient client = Connect();
        await client.KeyValues.SetAsync(Key("a"), "100");
        await client.KeyValues.SetAsync(Key("b"), "7");
        ScriptResult result = await client.Scripts.RunAsync(Transfer, Parameters(30));
        Assert.Equal(70, result.Items[0].AsInteger());
        ScriptResult taker = result.Items[1];
        Assert.Equal(
            ("7", Key("b"), new Revision(1), null), (taker.AsString(), taker.Key, taker.Revision, taker.ExpiresIn));
        Assert.Equal("70", (await client.KeyValues.GetAsync(Key("a"))).Value.AsString());
        GetResult b = await client.KeyValues.GetAsync(Key("b"));
        Assert.Equal(("37", new Revision(2)), (b.Value.AsString(), b.Revision));
    }

    [Fact]
    public async Task A_script_that_fails_leaves_nothing()
    {
        await using KahunaClient client = Connect();
        await client.KeyValues.SetAsync(Key("a"), "100");
        KahunaException failed = await AssertFailsAsync(
            KahunaErrorCode.ScriptFailed, "set @from 1 set @to 2 throw 'enough'", Parameters(1));
        Assert.Contains("line 1, column 23", failed.Message, StringComparison.Ordinal);
        Assert.Contains("enough", failed.Message, StringComparison.Ordinal);
        GetResult a = await client.KeyValues.GetAsync(Key("a"));
        Assert.Equal(("100", new Revision(1)), (a.Value.AsString(), a.Revision));
        Assert.False((await client.KeyValues.ExistsAsync(Key("b"))).Found);
        await AssertFailsAsync(KahunaErrorCode.ScriptFailed, "while true do set @from 1 end", Parameters(1));
        await AssertFailsAsync(KahunaErrorCode.ScriptFailed, "set @from @amount + 'x'", Parameters(1));
        await AssertFailsAsync(KahunaErrorCode.ScriptFailed, "get @missing", null);
    }

    [Fact]
    public async Task Ephemeral_keys_have_statements_of_their_own()
    {
        await using KahunaClient client = Connect();
        ScriptParameters parameters = new() { ["key"] = Key("e"), ["raw"] = new byte[] { 0xFF, 0 } };
        ScriptResult result = await client.Scripts.RunAsync(
            "eset @key @raw EX 60000 let e = eget @key return e", parameters);
        Assert.Equal(ScriptResultKind.Bytes, result.Kind);
        Assert.Equal([0xFF, 0], result.AsBytes().ToArray());
        Assert.InRange(result.ExpiresIn!.Value, TimeSpan.FromMilliseconds(59_999), TimeSpan.FromMinutes(1));
        Assert.True((await client.KeyValues.ExistsAsync(
            Key("e"), new() { Durability = Durability.Ephemeral })).Found);
        Assert.False((await client.KeyValues.ExistsAsync(Key("e"))).Found);
        ScriptResult all = await client.Scripts.RunAsync(
            $"let all = eget by bucket `{_bucket}` return all");
        Assert.Equal(Key("e"), Assert.Single(all.Items).Key);
    }

    [Fact]
    public async Task What_cannot_run_is_refused_before_it_is_sent()
    {
        await using KahunaClient client = Connect();
        const KahunaErrorCode Bad = KahunaErrorCode.InvalidArgument;
        Assert.Contains("line 2, column 4", (await AssertFailsAsync(Bad, "get a\nset", null)).Message);
        await AssertFailsAsync(
            Bad,
            "set `x/a` 1 scan by prefix `x/`",
            null,
            new() { Fence = new Kahuna.Client.Locks.Fence("x/lock", new FencingToken(1)) });
        await AssertFailsAsync(
            Bad,
            "set `x/a` 1 set `y/a` 1",
            null,
            new() { Fence = new Kahuna.Client.Locks.Fence("x/lock", new FencingToken(1)) });
        await AssertFailsAsync(Bad, "return 1 # " + new string('x', 70_000), null);
        await AssertFailsAsync(Bad, "return @x", new() { ["x"] = new byte[2 << 20] });
        Assert.Equal(7, (await client.Scripts.RunAsync("return 3 + 4")).AsInteger());
        Assert.True((await client.Scripts.RunAsync(
            "let v = get (concat(@b, '/none')) return v", new() { ["b"] = _bucket }, new() { Key = Key("any") }))
            .IsNull);
    }

    [Fact]
    public async Task A_script_can_have_a_fence()
    {
        await using KahunaClient client = Connect();
        await using LockHandle held = await client.Locks.AcquireAsync(
            Key("lock"), TimeSpan.FromMinutes(1), TimeSpan.FromSeconds(10));
        ScriptParameters parameters = new() { ["key"] = Key("fenced") };
        ScriptOptions options = new() { Fence = held.Fence };
        Assert.True((await client.Scripts.RunAsync("set @key 1", parameters, options)).AsBool());
        options = new() { Fence = held.Fence with { Token = new FencingToken(held.Token.Value + 1) } };
        await AssertFailsAsync(KahunaErrorCode.LockLost, "set @key 2", parameters, options);
        Assert.Equal("1", (await client.KeyValues.GetAsync(Key("fenced"))).Value.AsString());
    }

    [Fact]
    public async Task A_repeated_call_with_an_idempotency_key_runs_once()
    {
        RunScriptRequest request = new()
        {
            Script = "let n = get @key let next = 1 if n != null then let next = to_int(n) + 1 end set @key next "
                + "return next",
            Parameters = { ["key"] = new ScriptValue { Text = Key("once") } },
        };
        Metadata headers = new() { { "x-kahuna-idempotency-key", Guid.NewGuid().ToString() } };
        for (int i = 0; i < 3; i++)
        {
            RunScriptResponse reply = await nodes.Follower.UnaryAsync(
                "/kahuna.v1.Scripts/RunScript", request, RunScriptResponse.Parser, new CallOptions(headers));
            Assert.Equal((1, 1), (reply.Result.Integer, reply.Writes));
        }
    }

    private async Task<KahunaException> AssertFailsAsync(
        KahunaErrorCode code, string text, ScriptParameters? parameters, ScriptOptions? options = null)
    {
        await using KahunaClient client = Connect();
        KahunaException failed = await Assert.ThrowsAsync<KahunaException>(
            () => client.Scripts.RunAsync(text, parameters, options));
        Assert.Equal((code, OperationOutcome.DidNotHappen), (failed.Code, failed.Outcome));
        return failed;
    }

    private ScriptParameters Parameters(long amount) =>
        new() { ["from"] = Key("a"), ["to"] = Key("b"), ["amount"] = amount };

    private string Key(string name) => $"{_bucket}/{name}";

    private KahunaClient Connect() =>
        PatientClient.Connect(nodes.Cluster.Endpoints, static options => options.Insecure = true);
}
