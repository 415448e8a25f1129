using System.Globalization;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Transactions;
using Kahuna.Server.Hosting;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Api;

/// <summary>Pessimistic transactions through the SDK, against three real nodes with three partitions.</summary>
[Collection(nameof(ThreePartitionsCollection))]
public sealed class PessimisticTransactionsTests(ThreePartitions nodes)
{
    private const int Callers = 32;
    private const int Each = 5;

    private static readonly TransactionOptions s_pessimistic = new() { Mode = TransactionMode.Pessimistic };

    private readonly string _name = $"pessimistic{Guid.NewGuid():n}/";

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public Task It_holds_what_it_reads_and_others_wait_for_its_end(Durability durability) =>
        WithoutLeaderChangeAsync(async (client, key) =>
        {
            TransactionOptions options = s_pessimistic with { Durability = durability };
            await using Transaction first = await client.Transactions.BeginAsync(options);
            Assert.False((await first.GetForUpdateAsync(key)).Found);
            await first.SetAsync(key, "1");

            // Reads of others go through; a write, and another transaction, wait.
            Assert.False((await client.KeyValues.GetAsync(key, new() { Durability = durability })).Found);
            Task<SetResult> write = client.KeyValues.SetAsync(
                key, "plain", new SetOptions { Durability = durability, OnlyIfValue = "2" }).AsTask();
            await using Transaction second = await client.Transactions.BeginAsync(options);
            Task<GetResult> read = second.GetForUpdateAsync(key).AsTask();
            await Task.Delay(100);
            Assert.Equal((false, false), (write.IsCompleted, read.IsCompleted));
            await first.CommitAsync();
            Assert.Equal("1", (await read).Value.AsString());
            await second.SetAsync(key, "2");
            await second.CommitAsync();
            Assert.True((await write).Applied);
        });

    [Fact]
    public async Task It_sees_its_own_writes_and_commits_them_over_partitions_and_durabilities()
    {
        await using KahunaClient client = Connect();
        await using (Transaction transaction = await client.Transactions.BeginAsync(s_pessimistic))
        {
            Transaction ephemeral = transaction.WithDurability(Durability.Ephemeral);
            for (int i = 0; i < 5; i++)
            {
                await transaction.SetAsync($"p{i}{_name}a", $"{i}");
                await ephemeral.SetAsync($"p{i}{_name}a", $"{i}");
            }

            Assert.Equal(7, await transaction.IncrementAsync(Key("n"), 7));
            Assert.Equal(10, await transaction.IncrementAsync(Key("n"), 3));
            Assert.True(await transaction.ExistsAsync(Key("n")));
            await transaction.SetAsync(Key("gone"), "x");
            await transaction.DeleteAsync(Key("gone"));
            await transaction.ExtendAsync(Key("n"), TimeSpan.FromMinutes(1));
            Assert.False(await transaction.ExistsAsync(Key("b")));
            Assert.Equal(
                ["10", "4"],
                (await transaction.GetManyAsync([Key("n"), $"p4{_name}a"]))
                    .Select(static read => read.Value.AsString()));
            await transaction.CommitAsync();
        }

        for (int i = 0; i < 5; i++)
        {
            Assert.Equal($"{i}", (await client.KeyValues.GetAsync($"p{i}{_name}a")).Value.AsString());
            await client.KeyValues.SetAsync($"p{i}{_name}a", "free");
        }

        Assert.Equal("10", (await client.KeyValues.GetAsync(Key("n"))).Value.AsString());
        await client.KeyValues.SetAsync(Key("b"), "free");
        await WaitUntilNothingIsHeldAsync();
    }

    [Fact]
    public Task Shared_holds_go_together() => WithoutLeaderChangeAsync(async (client, key) =>
    {
        await client.KeyValues.SetAsync(key, "1");
        await using Transaction first = await client.Transactions.BeginAsync(s_pessimistic);
        await using Transaction second = await client.Transactions.BeginAsync(s_pessimistic);
        Assert.Equal("1", (await first.GetAsync(key)).Value.AsString());
        Assert.Equal("1", (await second.GetAsync(key)).Value.AsString());

        // Both want to write it: the younger one gives up, so that the older one goes on.
        Task write = first.SetAsync(key, "2").AsTask();
        KahunaException younger = await Assert.ThrowsAsync<KahunaException>(() => second.SetAsync(key, "3").AsTask());
        Assert.Equal(
            (KahunaErrorCode.TransactionConflict, OperationOutcome.DidNotHappen), (younger.Code, younger.Outcome));
        Assert.Contains("older transaction holds the key", younger.Message, StringComparison.Ordinal);
        await write;
        await first.CommitAsync();
        KahunaException over = await Assert.ThrowsAsync<KahunaException>(() => second.CommitAsync());
        Assert.Equal(KahunaErrorCode.TransactionEnded, over.Code);
        Assert.Equal("2", (await client.KeyValues.GetAsync(key)).Value.AsString());
    });

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task Rolling_back_or_disposing_frees_the_keys(bool disposes)
    {
        await using KahunaClient client = Connect();
        Transaction transaction = await client.Transactions.BeginAsync(s_pessimistic);
        await transaction.SetAsync(Key("a"), "x");
        await transaction.SetAsync($"other{_name}b", "x");
        await (disposes ? transaction.DisposeAsync().AsTask() : transaction.RollbackAsync());
        await transaction.DisposeAsync();
        await WaitUntilNothingIsHeldAsync();
        Assert.False((await client.KeyValues.GetAsync(Key("a"))).Found);
    }

    [Fact]
    public async Task Many_at_a_time_take_turns_and_conflict_far_less_than_optimistic_ones()
    {
        await using KahunaClient client = Connect();
        int runs = await CountAsync(client, Key("sum"), s_pessimistic with { Timeout = TimeSpan.FromSeconds(60) });
        await WaitUntilNothingIsHeldAsync();
        int optimistic = await CountAsync(
            client,
            Key("other"),
            new TransactionOptions { Timeout = TimeSpan.FromMinutes(4), TriesMax = 10_000 });

        // Another leader, or a pause of the machine, may cost some.
        Assert.InRange(runs, Callers * Each, Callers * Each * 3 / 2);
        Assert.True(
            optimistic - (Callers * Each) > 2 * (runs - (Callers * Each)),
            $"{runs} runs, and {optimistic} optimistic ones");
    }

    [Fact]
    public async Task Opposite_orders_over_partitions_do_not_wait_for_a_timeout()
    {
        await using KahunaClient client = Connect();
        string[] keys = [.. Enumerable.Range(0, 4).Select(i => $"p{i}{_name}a")];
        TransactionOptions options = s_pessimistic with { Timeout = TimeSpan.FromSeconds(60), TriesMax = 200 };
        await Task.WhenAll(Enumerable.Range(0, 8).Select(async caller =>
        {
            string[] order = caller % 2 == 0 ? keys : [.. keys.Reverse()];
            for (int i = 0; i < 5; i++)
            {
                await client.Transactions.RunAsync(
                    async transaction =>
                    {
                        foreach (string key in order)
                        {
                            await transaction.IncrementAsync(key);
                        }
                    },
                    options);
            }
        }));
        foreach (string key in keys)
        {
            Assert.Equal("40", (await client.KeyValues.GetAsync(key)).Value.AsString());
        }

        await WaitUntilNothingIsHeldAsync();
    }

    [Fact]
    public async Task A_client_that_has_gone_blocks_others_for_its_timeout_only()
    {
        await using KahunaClient client = Connect();
        KahunaClient gone = Connect();
        Transaction left = await gone.Transactions.BeginAsync(
            s_pessimistic with { Timeout = TimeSpan.FromSeconds(1) });
        await left.SetAsync(Key("a"), "x");
        await gone.DisposeAsync();
        await client.KeyValues.SetAsync(Key("a"), "mine");
        Assert.Equal("mine", (await client.KeyValues.GetAsync(Key("a"))).Value.AsString());

        // Its end neither throws nor hangs.
        await left.DisposeAsync();
    }

    [Fact]
    public async Task A_call_that_is_cancelled_while_it_waits_leaves_nothing_behind()
    {
        await using KahunaClient client = Connect();
        await using Transaction first = await client.Transactions.BeginAsync(s_pessimistic);
        await first.SetAsync(Key("a"), "1");
        await using (Transaction second = await client.Transactions.BeginAsync(s_pessimistic))
        {
            using CancellationTokenSource leaves = new(TimeSpan.FromMilliseconds(100));
            await Assert.ThrowsAsync<KahunaCanceledException>(
                () => second.GetAsync(Key("a"), leaves.Token).AsTask());
        }

        await first.CommitAsync();
        await WaitUntilNothingIsHeldAsync();
    }

    [Fact]
    public async Task Its_time_is_100_ms_to_a_minute()
    {
        await using KahunaClient client = Connect();
        foreach (double seconds in new[] { 0.05, 61 })
        {
            await Assert.ThrowsAsync<ArgumentOutOfRangeException>(() => client.Transactions.BeginAsync(
                s_pessimistic with { Timeout = TimeSpan.FromSeconds(seconds) }).AsTask());
        }

        await Assert.ThrowsAsync<ArgumentOutOfRangeException>(() => client.Transactions.BeginAsync(
            new TransactionOptions { Mode = (TransactionMode)7 }).AsTask());
    }

    [Fact]
    public async Task A_new_leader_knows_no_holds_and_the_commit_is_judged_by_what_was_read()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(3).WaitAsync(Wait.Longest);
        await using KahunaClient client = PatientClient.Connect(
            cluster.Endpoints, static options => options.Insecure = true);
        await client.KeyValues.SetAsync(Key("a"), "1");
        await using Transaction kept = await client.Transactions.BeginAsync(s_pessimistic);
        await using Transaction lost = await client.Transactions.BeginAsync(s_pessimistic);
        await kept.IncrementAsync(Key("a"));
        await lost.GetForUpdateAsync(Key("b"));
        await lost.SetAsync(Key("b"), "x");
        Task<GetResult> waits = client.Transactions.RunAsync(
            async transaction => await transaction.GetForUpdateAsync(Key("a")), s_pessimistic);
        int leader = 0;
        await Wait.UntilAsync(() => (leader = (int)cluster.Nodes[0].View.Status(0).Leader.Value) != 0);
        await cluster.Nodes[leader - 1].DisposeAsync();

        // The one that waited is led to the new leader, where nobody holds the key.
        Assert.Equal("1", (await waits).Value.AsString());
        await client.KeyValues.SetAsync(Key("b"), "others");
        await kept.CommitAsync();
        KahunaException conflict = await Assert.ThrowsAsync<KahunaException>(() => lost.CommitAsync());
        Assert.Equal(KahunaErrorCode.TransactionConflict, conflict.Code);
        Assert.Equal("2", (await client.KeyValues.GetAsync(Key("a"))).Value.AsString());
        Assert.Equal("others", (await client.KeyValues.GetAsync(Key("b"))).Value.AsString());
    }

    /// <summary>Runs a scenario on a key of its own, and again when a leader has changed and holds were lost.</summary>
    private async Task WithoutLeaderChangeAsync(Func<KahunaClient, string, Task> scenario)
    {
        await using KahunaClient client = Connect();
        for (int i = 0; ; i++)
        {
            string terms = Terms();
            try
            {
                await scenario(client, Key($"a{i}"));
                return;
            }
            catch (Exception) when (Terms() != terms)
            {
                // It is run again.
            }
        }
    }

    private string Terms() => string.Join(' ', nodes.Cluster.Nodes.SelectMany(static node =>
        Enumerable.Range(0, 7).Select(slot => $"{node.View.Status(slot).Term}")));

    /// <summary>Many callers count a key up by reading and writing it. Returns how often their work was run.</summary>
    private static async Task<int> CountAsync(KahunaClient client, string key, TransactionOptions options)
    {
        int runs = 0;
        await Task.WhenAll(Enumerable.Range(0, Callers).Select(async _ =>
        {
            for (int i = 0; i < Each; i++)
            {
                await client.Transactions.RunAsync(
                    async transaction =>
                    {
                        Interlocked.Increment(ref runs);
                        GetResult read = await transaction.GetForUpdateAsync(key);
                        int sum = read.Found ? int.Parse(read.Value.AsString()!, CultureInfo.InvariantCulture) : 0;
                        await transaction.SetAsync(key, $"{sum + 1}");
                    },
                    options);
            }
        }));
        Assert.Equal($"{Callers * Each}", (await client.KeyValues.GetAsync(key)).Value.AsString());
        return runs;
    }

    private string Key(string name) => _name + name;

    /// <summary>Other tests of the collection use no pessimistic transactions.</summary>
    private Task WaitUntilNothingIsHeldAsync() => Wait.UntilAsync(() => nodes.Cluster.Nodes.All(
        static node => Enumerable.Range(0, 7).All(slot => node.Metrics(slot).Holds == default)));

    private KahunaClient Connect() =>
        PatientClient.Connect(nodes.Cluster.Endpoints, static options => options.Insecure = true);
}
