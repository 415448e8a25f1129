using System.Globalization;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Scripts;

namespace Kahuna.Tests.Api;

/// <summary>
/// Scripts whose keys lie in several partitions or are of both durabilities, and scripts that are too long for a
/// partition: they run as transactions.
/// </summary>
[Collection(nameof(ThreePartitionsCollection))]
public sealed class WideScriptsTests(ThreePartitions nodes)
{
    private const string Transfer =
        """
        let giver = get @from
        let taker = eget @to
        if giver = null || to_int(giver) < @amount then throw 'not enough' end
        set @from (to_int(giver) - @amount)
        eset @to (to_int(taker) + @amount)
        return to_int(giver) - @amount
        """;

    private readonly string _name = $"wide{Guid.NewGuid():n}";

    [Fact]
    public async Task Keys_of_any_bucket_and_durability_are_changed_together()
    {
        await using KahunaClient client = Connect();
        await client.KeyValues.SetAsync(Key(0), "100");
        await client.KeyValues.SetAsync(Key(1), "7", new SetOptions { Durability = Durability.Ephemeral });
        Assert.Equal(70, (await client.Scripts.RunAsync(Transfer, Parameters(30))).AsInteger());
        Assert.Equal("70", (await client.KeyValues.GetAsync(Key(0))).Value.AsString());
        Assert.Equal(
            "37",
            (await client.KeyValues.GetAsync(Key(1), new ReadOptions { Durability = Durability.Ephemeral }))
                .Value.AsString());
        KahunaException failed = await Assert.ThrowsAsync<KahunaException>(
            () => client.Scripts.RunAsync(Transfer, Parameters(1_000)));
        Assert.Equal(
            (KahunaErrorCode.ScriptFailed, OperationOutcome.DidNotHappen), (failed.Code, failed.Outcome));
        Assert.Contains("not enough", failed.Message, StringComparison.Ordinal);
        Assert.Equal("70", (await client.KeyValues.GetAsync(Key(0))).Value.AsString());
    }

    [Fact]
    public async Task Keys_that_turn_out_to_lie_elsewhere_are_no_error()
    {
        await using KahunaClient client = Connect();
        await client.KeyValues.SetAsync(Key(0), Key(1));
        await client.Scripts.RunAsync(
            "let place = get @first set (concat(place, '')) 'found' return place", new() { ["first"] = Key(0) });
        Assert.Equal("found", (await client.KeyValues.GetAsync(Key(1))).Value.AsString());
        await client.Scripts.RunAsync("set (concat(@name, '/2/x')) 1", new() { ["name"] = _name });
        Assert.Equal("1", (await client.KeyValues.GetAsync(Key(2))).Value.AsString());
    }

    [Fact]
    public async Task A_script_that_is_too_long_for_a_partition_runs_all_the_same()
    {
        await using KahunaClient client = Connect();
        ScriptParameters parameters = new() { ["key"] = Key(0) };
        ScriptResult sum = await client.Scripts.RunAsync(
            "let n = 0 for i in 1..10000 do let n = n + i end set @key n return n", parameters);
        Assert.Equal(50_005_000, sum.AsInteger());
        Assert.Equal("50005000", (await client.KeyValues.GetAsync(Key(0))).Value.AsString());
        string text = "set @key 'long' # " + new string('x', 20_000);
        Assert.True((await client.Scripts.RunAsync(text, parameters)).AsBool());
        Assert.Equal("long", (await client.KeyValues.GetAsync(Key(0))).Value.AsString());
    }

    [Fact]
    public async Task Scripts_that_meet_lose_no_update()
    {
        await using KahunaClient client = Connect();
        const string Count =
            """
            let a = get @a
            let b = get @b
            let next = 1
            if a != null then let next = to_int(a) + 1 end
            if b != null && to_int(b) != to_int(a) then throw 'half of a script shows' end
            set @a next
            set @b next
            return next
            """;
        ScriptParameters parameters = new() { ["a"] = Key(0), ["b"] = Key(1) };
        await Task.WhenAll(Enumerable.Range(0, 4).Select(async _ =>
        {
            for (int i = 0; i < 5; i++)
            {
                await client.Scripts.RunAsync(Count, parameters);
            }
        }));
        Assert.Equal("20", (await client.KeyValues.GetAsync(Key(0))).Value.AsString());
        Assert.Equal("20", (await client.KeyValues.GetAsync(Key(1))).Value.AsString());
    }

    private ScriptParameters Parameters(long amount) =>
        new() { ["from"] = Key(0), ["to"] = Key(1), ["amount"] = amount };

    private string Key(int bucket) => string.Create(CultureInfo.InvariantCulture, $"{_name}/{bucket}/x");

    private KahunaClient Connect() =>
        PatientClient.Connect(nodes.Cluster.Endpoints, static options => options.Insecure = true);
}
