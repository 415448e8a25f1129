using System.Globalization;
using Grpc.Core;
using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Client.Coordination;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Scripts;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Wire.Scripts;
using Microsoft.Extensions.Logging.Abstractions;
using Value = Kahuna.Wire.Scripts.ScriptValue;

namespace Kahuna.Tests.Api;

/// <summary>Scripts that read prefixes and buckets over several partitions, through the SDK and over gRPC.</summary>
[Collection(nameof(ThreePartitionsCollection))]
public sealed class ScriptScansTests(ThreePartitions nodes)
{
    private readonly string _name = $"scans{Guid.NewGuid():n}";

    [Fact]
    public async Task A_prefix_is_read_in_order_from_all_partitions_with_the_writes_of_the_script()
    {
        await using KahunaClient client = Connect();
        await client.KeyValues.SetManyAsync(Enumerable.Range(0, 9).Select(i => new SetItem(Key(i), "stored")));
        await client.KeyValues.SetAsync(_name, "not of the prefix");
        ScriptResult all = await client.Scripts.RunAsync(
            "set (concat(@p, '4/x')) 'own' set (concat(@p, '5/a')) 'new' delete (concat(@p, '7/x')) "
                + "scan by prefix @p",
            Parameters());
        Assert.Equal(
            [Key(0), Key(1), Key(2), Key(3), Key(4), $"{_name}/5/a", Key(5), Key(6), Key(8)],
            all.Items.Select(static item => item.Key));
        Assert.Equal("own", all.Items[4].AsString());
        Assert.Equal(new Revision(1), all.Items[0].Revision);
        Assert.False((await client.KeyValues.ExistsAsync(Key(7))).Found);
    }

    [Fact]
    public async Task An_ephemeral_prefix_shows_ephemeral_keys_with_their_time_to_live()
    {
        await using KahunaClient client = Connect();
        SetOptions ephemeral = new() { Durability = Durability.Ephemeral, Ttl = TimeSpan.FromMinutes(5) };
        await client.KeyValues.SetManyAsync(
            Enumerable.Range(0, 3).Select(i => new SetItem(Key(i), "e", ephemeral)));
        await client.KeyValues.SetAsync(Key(9), "persistent");
        ScriptResult all = await client.Scripts.RunAsync("escan by prefix @p", Parameters());
        Assert.Equal([Key(0), Key(1), Key(2)], all.Items.Select(static item => item.Key));
        Assert.All(all.Items, static item => Assert.InRange(
            item.ExpiresIn!.Value, TimeSpan.FromSeconds(1), TimeSpan.FromMinutes(5)));
        ScriptResult none = await client.Scripts.RunAsync(
            "let all = scan by prefix (concat(@p, 'none')) return not found && count(all) = 0", Parameters());
        Assert.True(none.AsBool());
    }

    [Fact]
    public async Task A_bucket_beside_other_keys_has_the_same_entries_as_in_its_partition()
    {
        await using KahunaClient client = Connect();
        string[] bucket = [_name, $"{_name}/", $"{_name}/a", $"{_name}/b", $"{_name}/b-1", $"{_name}/c"];
        string[] others =
        [
            $"{_name}/b/x", $"{_name}/b/y", $"{_name}/a/x/y", $"{_name}//x", $"{_name}-1", $"{_name}0",
            $"{_name}/d/x",
        ];
        await client.KeyValues.SetManyAsync(bucket.Concat(others).Select(static key => new SetItem(key, "v")));
        ScriptParameters parameters = new() { ["b"] = _name };
        ScriptResult within = await client.Scripts.RunAsync("get by bucket @b", parameters);
        ScriptResult beside = await client.Scripts.RunAsync(
            "let e = eget elsewhere let all = get by bucket @b return all", parameters);
        Assert.Equal(bucket, within.Items.Select(static item => item.Key));
        Assert.Equal(bucket, beside.Items.Select(static item => item.Key));
        ScriptResult computed = await client.Scripts.RunAsync(
            "set (concat(@b, '/bb')) 1 set `other/key` 1 get by bucket (concat('', @b))", parameters);
        Assert.Equal(bucket.Length + 1, computed.Items.Count);

        // A key may have the name of a bucket that it is not of.
        parameters = new() { ["b"] = $"{_name}/b" };
        within = await client.Scripts.RunAsync("get by bucket @b", parameters);
        beside = await client.Scripts.RunAsync(
            "let e = eget elsewhere let all = get by bucket @b return all", parameters);
        Assert.Equal([$"{_name}/b/x", $"{_name}/b/y"], within.Items.Select(static item => item.Key));
        Assert.Equal(within.Items.Select(static item => item.Key), beside.Items.Select(static item => item.Key));
    }

    [Theory]
    [InlineData("let all = scan by prefix @p set (concat(@p, '9/count')) 1 return count(all)", 1)]
    [InlineData("let all = scan by prefix @p return count(all)", 1)]
    [InlineData("let all = get by bucket (concat(@p, '0')) return count(all)", 1)]
    [InlineData("let e = eget elsewhere let all = get by bucket (concat(@p, '0')) return count(all)", 2)]
    public async Task What_comes_before_the_commit_is_seen_by_another_run(string text, int reads)
    {
        await using KahunaClient client = Connect();
        await client.KeyValues.SetAsync(Key(0), "first");
        await using DrivenScript driven = new(nodes.Cluster.Endpoints);
        Value result = await driven.RunAsync(
            text, reads, $"{_name}/", async () => await client.KeyValues.SetAsync($"{_name}/0/phantom", "x"));
        Assert.Equal(2, result.AsInteger);
    }

    [Fact]
    public async Task Scripts_that_count_and_add_do_not_miss_each_other()
    {
        await using KahunaClient client = Connect();
        const string Add = "let all = scan by prefix @p set (concat(@p, @id, '/x')) count(all) return count(all)";
        long[][] counts = await Task.WhenAll(Enumerable.Range(0, 4).Select(async worker =>
        {
            long[] seen = new long[3];
            for (int i = 0; i < seen.Length; i++)
            {
                ScriptParameters parameters = Parameters();
                parameters["id"] = $"{worker}-{i}";
                seen[i] = (await client.Scripts.RunAsync(Add, parameters)).AsInteger();
            }

            return seen;
        }));
        Assert.Equal(Enumerable.Range(0, 12).Select(static i => (long)i), counts.SelectMany(static c => c).Order());
    }

    [Fact]
    public async Task What_is_over_the_budget_names_its_place_and_writes_nothing()
    {
        await using KahunaClient client = Connect();
        for (int i = 0; i < 3; i++)
        {
            await client.KeyValues.SetManyAsync(
                Enumerable.Range(0, 340).Select(n => new SetItem($"{_name}/{i}/{n}", "x")));
        }

        await AssertFailsAsync("set `{0}` 1\nscan by prefix @p", "line 2, column 1", "touches more keys");
        await AssertFailsAsync(
            "set `{0}` 1 for i in 1..70 do let all = scan by prefix (concat(@p, 'none', i)) end",
            "line 1",
            "64 ranges");
        await client.KeyValues.SetManyAsync(Enumerable.Range(0, 65).Select(i => new SetItem($"{_name}/-b/{i}/x", "x")));
        await AssertFailsAsync(
            "set `{0}` 1\nset other 1 let all = get by bucket (concat(@p, '-b'))",
            "line 2, column 13: ",
            "scan the prefix of such a bucket, or use several scripts");
        await AssertFailsAsync("scan by prefix (concat('__kahuna', @p))", "line 1, column 1", "reserved");
        KahunaException refused = await Assert.ThrowsAsync<KahunaException>(
            () => client.Scripts.RunAsync("scan by prefix __kahuna"));
        Assert.Equal(KahunaErrorCode.InvalidArgument, refused.Code);

        async Task AssertFailsAsync(string text, string place, string reason)
        {
            string key = $"{_name}-written";
            KahunaException failed = await Assert.ThrowsAsync<KahunaException>(() => client.Scripts.RunAsync(
                string.Format(CultureInfo.InvariantCulture, text, key), Parameters()));
            Assert.Equal((KahunaErrorCode.ScriptFailed, OperationOutcome.DidNotHappen), (failed.Code, failed.Outcome));
            Assert.Contains(place, failed.Message, StringComparison.Ordinal);
            Assert.Contains(reason, failed.Message, StringComparison.Ordinal);
            Assert.False((await client.KeyValues.ExistsAsync(key)).Found);
        }
    }

    [Fact]
    public async Task A_prefix_that_a_partition_cannot_count_at_the_commit_is_an_error_with_its_place()
    {
        await using KahunaClient client = Connect();
        SetOptions expiring = new() { Ttl = TimeSpan.FromMinutes(5) };
        await client.KeyValues.SetManyAsync(
            Enumerable.Range(0, 999).Select(n => new SetItem($"{_name}/0/{n}", "x", expiring)));
        await using DrivenScript driven = new(nodes.Cluster.Endpoints);
        KahunaException failed = await Assert.ThrowsAsync<KahunaException>(() => driven.RunAsync(
            "set other 1\n  scan by prefix @p\nset another 1",
            reads: 1,
            $"{_name}/",
            async () => await client.KeyValues.SetManyAsync(
                Enumerable.Range(999, 2).Select(n => new SetItem($"{_name}/0/{n}", "x", expiring)))));
        Assert.Equal((KahunaErrorCode.RangeTooLarge, OperationOutcome.DidNotHappen), (failed.Code, failed.Outcome));
        Assert.StartsWith("line 2, column 3: the prefixes", failed.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Values_beyond_the_budget_are_an_error_with_its_place()
    {
        await using KahunaClient client = Connect();
        const string Count = "let all = scan by prefix @p return count(all)";
        byte[] large = new byte[900_000];
        for (int i = 0; i < 3; i++)
        {
            await client.KeyValues.SetAsync($"{_name}/0/{i}", large);
        }

        Assert.Equal(3, (await client.Scripts.RunAsync(Count, Parameters())).AsInteger());

        // More than one reply may have.
        for (int i = 3; i < 9; i++)
        {
            await client.KeyValues.SetAsync($"{_name}/0/{i}", large);
        }

        KahunaException failed = await Assert.ThrowsAsync<KahunaException>(
            () => client.Scripts.RunAsync(Count, Parameters()));
        Assert.Equal(KahunaErrorCode.ScriptFailed, failed.Code);
        Assert.Contains("line 1, column 1: the script takes more steps", failed.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_foreign_client_scans_through_its_node()
    {
        await using KahunaClient client = Connect();
        await client.KeyValues.SetManyAsync(Enumerable.Range(0, 4).Select(i => new SetItem(Key(i), "v")));
        RunScriptRequest request = new()
        {
            Script = "let all = scan by prefix (concat(@p, '')) set `" + _name + "` count(all) return all",
            Parameters = { ["p"] = new Kahuna.Server.Api.Protos.ScriptValue { Text = $"{_name}/" } },
        };
        RunScriptResponse reply = await CallAsync(new CallOptions());
        Assert.Equal(
            [Key(0), Key(1), Key(2), Key(3)], reply.Result.Array.Items.Select(static item => item.Entry.Key));
        Assert.Equal("4", (await client.KeyValues.GetAsync(_name)).Value.AsString());
        RpcException refused = await Assert.ThrowsAsync<RpcException>(
            () => CallAsync(new CallOptions([new("x-kahuna-idempotency-key", _name)])));
        Assert.Equal(StatusCode.InvalidArgument, refused.StatusCode);

        Task<RunScriptResponse> CallAsync(CallOptions options) => nodes.Follower.UnaryAsync(
            "/kahuna.v1.Scripts/RunScript", request, RunScriptResponse.Parser, options);
    }

    private ScriptParameters Parameters() => new() { ["p"] = $"{_name}/" };

    private string Key(int bucket) => string.Create(CultureInfo.InvariantCulture, $"{_name}/{bucket}/x");

    private KahunaClient Connect() =>
        PatientClient.Connect(nodes.Cluster.Endpoints, static options => options.Insecure = true);

    /// <summary>
    /// Drives a script as a client does, and does something once, when the script has made its reads and has not been
    /// committed. Owned by one test.
    /// </summary>
    private sealed class DrivenScript : TimeProvider, IAsyncDisposable
    {
        private readonly ClusterConnection _connection;
        private readonly ScriptDriver _driver;
        private Func<Task>? _between;
        private int _stretches;

        public DrivenScript(string endpoints)
        {
            KahunaClientOptions options = new() { Insecure = true, RequestTimeout = LastNet.Span };
            options.Endpoints.Add(endpoints, []);
            ConnectionSettings settings = options.ToSettings();
            ConnectionPorts ports = ConnectionPorts.ForNetwork(settings);
            _connection = new ClusterConnection(settings, ports, NullLogger.Instance);
            _driver = new ScriptDriver(new TransactionCoordinator(_connection, ports), new DrivePace(this, 1));
        }

        /// <summary>The clock is read at the beginning and at the end of each stretch between two reads.</summary>
        public override long GetTimestamp()
        {
            if (_between is { } between && --_stretches < 0)
            {
                _between = null;
                Task.Run(between).GetAwaiter().GetResult();
            }

            return base.GetTimestamp();
        }

        public async Task<Value> RunAsync(string text, int reads, string prefix, Func<Task> between)
        {
            _stretches = 2 * reads;
            _between = between;
            (Value result, _) = await _driver.RunAsync(
                ScriptProgram.Parse(text),
                [new ScriptParameter("p", Value.Of(prefix))],
                null,
                CancellationToken.None);
            return result;
        }

        public ValueTask DisposeAsync() => _connection.DisposeAsync();
    }
}
