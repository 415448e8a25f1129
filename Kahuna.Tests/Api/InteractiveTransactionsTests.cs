using System.Globalization;
using Kahuna.Client;
using Kahuna.Client.Locks;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Transactions;

namespace Kahuna.Tests.Api;

/// <summary>Interactive transactions through the SDK, against three real nodes with three partitions.</summary>
[Collection(nameof(ThreePartitionsCollection))]
public sealed class InteractiveTransactionsTests(ThreePartitions nodes)
{
    private readonly string _name = $"interactive/{Guid.NewGuid():n}/";

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public async Task It_sees_its_own_writes_and_others_see_them_after_the_commit(Durability durability)
    {
        await using KahunaClient client = Connect();
        TransactionOptions options = new() { Durability = durability };
        await using (Transaction begin = await client.Transactions.BeginAsync(options))
        {
            Assert.False((await begin.GetAsync(Key("a"))).Found);
            await begin.SetAsync(Key("a"), "1", TimeSpan.FromMinutes(5));
            await begin.SetAsync(Key("gone"), "x");
            Assert.Equal("1", (await begin.GetAsync(Key("a"))).Value.AsString());
            Assert.True(await begin.ExistsAsync(Key("gone")));
            await begin.DeleteAsync(Key("gone"));
            Assert.False(await begin.ExistsAsync(Key("gone")));
            Assert.Equal(3, await begin.IncrementAsync(Key("n"), 3));
            Assert.Equal(10, await begin.IncrementAsync(Key("n"), 7));
            Assert.Equal(2, await begin.IncrementAsync(Key("a")));
            Assert.False(await ExistsAsync(client, "a", durability));
            await begin.CommitAsync();
        }

        IReadOnlyList<GetResult> read;
        await using (Transaction second = await client.Transactions.BeginAsync(options))
        {
            read = await second.GetManyAsync([Key("a"), Key("n"), Key("gone")]);
            await second.ExtendAsync(Key("n"), TimeSpan.FromMinutes(9));
            await second.ExtendAsync(Key("a"), TimeSpan.Zero);
            await second.CommitAsync();
        }

        Assert.Equal(["2", "10", null], read.Select(static each => each.Value.AsString()));
        Assert.NotNull(read[0].RemainingTtl);
        await using Transaction last = await client.Transactions.BeginAsync(options);
        Assert.Null((await last.GetAsync(Key("a"))).RemainingTtl);
        Assert.True((await last.GetAsync(Key("n"))).RemainingTtl > TimeSpan.FromMinutes(8));
        await last.CommitAsync();
    }

    [Fact]
    public async Task A_value_of_a_sequence_is_taken_at_once_and_not_given_back()
    {
        await using KahunaClient client = Connect();
        await client.Sequences.CreateAsync(Key("ids"));
        await using Transaction first = await client.Transactions.BeginAsync();
        long taken = await first.NextAsync(Key("ids"));
        await first.RollbackAsync();
        Assert.Throws<KahunaException>(() => { _ = first.NextAsync(Key("ids")); });
        await using Transaction second = await client.Transactions.BeginAsync();
        Assert.Equal(taken + 1, await second.NextAsync(Key("ids")));
    }

    [Fact]
    public async Task A_change_of_what_was_read_is_a_conflict_and_nothing_is_written()
    {
        await using KahunaClient client = Connect();
        await client.KeyValues.SetAsync(Key("a"), "1");
        await using Transaction late = await client.Transactions.BeginAsync();
        await late.GetAsync(Key("a"));
        Assert.False(await late.ExistsAsync(Key("b")));
        await late.SetAsync(Key("c"), "x");
        await using Transaction other = await client.Transactions.BeginAsync();
        await other.SetAsync(Key("b"), "other");
        await other.CommitAsync();
        await AssertFailsAsync(KahunaErrorCode.TransactionConflict, Key("b"), late.CommitAsync());
        Assert.False(await ExistsAsync(client, "c", Durability.Persistent));

        await using Transaction reader = await client.Transactions.BeginAsync();
        await reader.GetAsync(Key("a"));
        await client.KeyValues.SetAsync(Key("a"), "2");
        await reader.GetAsync(Key("b"));
        await AssertFailsAsync(KahunaErrorCode.TransactionConflict, Key("a"), reader.CommitAsync());
        await using Transaction looker = await client.Transactions.BeginAsync();
        await looker.ExistsAsync(Key("a"));
        await client.KeyValues.SetAsync(Key("a"), "3");
        await AssertFailsAsync(
            KahunaErrorCode.TransactionConflict, Key("a"), looker.GetAsync(Key("a")).AsTask());
    }

    [Fact]
    public async Task Many_at_a_time_lose_no_update()
    {
        await using KahunaClient client = Connect();
        TransactionOptions options = new() { TriesMax = 10_000, Timeout = TimeSpan.FromMinutes(4) };
        int runs = 0;
        await Task.WhenAll(Enumerable.Range(0, 8).Select(async _ =>
        {
            for (int i = 0; i < 10; i++)
            {
                await client.Transactions.RunAsync(
                    async transaction =>
                    {
                        Interlocked.Increment(ref runs);
                        GetResult read = await transaction.GetAsync(Key("sum"));
                        int sum = read.Found ? int.Parse(read.Value.AsString()!, CultureInfo.InvariantCulture) : 0;
                        await transaction.SetAsync(Key("sum"), $"{sum + 1}");
                    },
                    options);
            }
        }));
        Assert.Equal("80", (await client.KeyValues.GetAsync(Key("sum"))).Value.AsString());
        Assert.InRange(runs, 80, int.MaxValue);
    }

    [Fact]
    public async Task Work_that_met_a_torn_view_runs_again_and_other_failures_are_passed_on()
    {
        await using KahunaClient client = Connect();
        int runs = 0;
        string result = await client.Transactions.RunAsync(async transaction =>
        {
            string? first = (await transaction.GetAsync(Key("x"))).Value.AsString();
            if (runs++ == 0)
            {
                await client.Transactions.If()
                    .Then(KeyOperation.Set(Key("x"), "both"), KeyOperation.Set(Key("y"), "both"))
                    .CommitAsync();
            }

            string? second = (await transaction.GetAsync(Key("y"))).Value.AsString();
            return first == second ? first! : throw new InvalidOperationException("torn");
        });
        Assert.Equal(("both", 2), (result, runs));
        await Assert.ThrowsAsync<FormatException>(() => client.Transactions.RunAsync(async transaction =>
        {
            await transaction.SetAsync(Key("never"), "x");
            await transaction.GetAsync(Key("x"));
            throw new FormatException();
        }));
        Assert.False(await ExistsAsync(client, "never", Durability.Persistent));
        await client.Transactions.RunAsync(async transaction =>
        {
            await transaction.SetAsync(Key("never"), "x");
            await transaction.RollbackAsync();
        });
        Assert.False(await ExistsAsync(client, "never", Durability.Persistent));
        KahunaException given = await Assert.ThrowsAsync<KahunaException>(() => client.Transactions.RunAsync(
            async transaction =>
            {
                await transaction.GetAsync(Key("x"));
                await transaction.SetAsync(Key("y"), "z");
                await client.KeyValues.SetAsync(Key("x"), $"{runs++}");
            },
            new TransactionOptions { TriesMax = 3 }));
        Assert.Equal((KahunaErrorCode.TransactionConflict, 5), (given.Code, runs));
    }

    [Fact]
    public async Task What_cannot_be_is_refused_and_says_what_happened()
    {
        await using KahunaClient client = Connect();
        TransactionClient store = client.Transactions;
        Transaction done = await store.BeginAsync();
        await done.SetAsync(Key("a"), "1");
        await done.CommitAsync();
        await AssertFailsAsync(KahunaErrorCode.TransactionEnded, "committed before", done.CommitAsync());
        await AssertFailsAsync(
            KahunaErrorCode.TransactionEnded, "committed before", done.GetAsync(Key("a")).AsTask());
        await done.RollbackAsync();
        await done.DisposeAsync();
        Assert.True(await ExistsAsync(client, "a", Durability.Persistent));

        Transaction back = await store.BeginAsync();
        await back.SetAsync(Key("b"), "1");
        await back.DisposeAsync();
        await AssertFailsAsync(KahunaErrorCode.TransactionEnded, "rolled back", back.CommitAsync());
        Transaction slow = await store.BeginAsync(new TransactionOptions { Timeout = TimeSpan.FromMilliseconds(1) });
        await Task.Delay(20);
        await AssertFailsAsync(KahunaErrorCode.TransactionEnded, "not committed within 0.001 s", slow.CommitAsync());

        Fence fence = new(_name + "lock", new FencingToken(1));
        Transaction wide = await store.BeginAsync(new TransactionOptions { Fence = fence });
        for (int i = 0; i < 50; i++)
        {
            await wide.SetAsync($"{_name}{i}/x", "x");
        }

        await AssertFailsAsync(KahunaErrorCode.LockLost, "nothing was written", wide.CommitAsync());
        Transaction many = await store.BeginAsync();
        for (int i = 0; i < 1_000; i++)
        {
            await many.SetAsync(Key($"{i}"), "x");
        }

        KahunaException full = Assert.Throws<KahunaException>(() => { _ = many.SetAsync(Key("more"), "x"); });
        Assert.Contains("1,000 keys", full.Message, StringComparison.Ordinal);
        Transaction bad = await store.BeginAsync();
        await bad.SetAsync("__kahuna/x", "x");
        await AssertFailsAsync(KahunaErrorCode.InvalidArgument, "reserved", bad.CommitAsync());
        Transaction text = await store.BeginAsync();
        await text.SetAsync(Key("t"), "abc");
        await AssertFailsAsync(
            KahunaErrorCode.NotAnInteger, "not a decimal", text.IncrementAsync(Key("t")).AsTask());
        await text.SetAsync(Key("t"), $"{long.MaxValue}");
        await AssertFailsAsync(KahunaErrorCode.Overflow, "64-bit", text.IncrementAsync(Key("t")).AsTask());
        await Assert.ThrowsAsync<ArgumentOutOfRangeException>(
            () => store.BeginAsync(new TransactionOptions { Timeout = TimeSpan.Zero }).AsTask());
        using CancellationTokenSource canceled = new();
        await canceled.CancelAsync();
        Transaction ended = await store.BeginAsync();
        await Assert.ThrowsAsync<KahunaCanceledException>(() => ended.GetAsync(Key("a"), canceled.Token).AsTask());
        await ended.SetAsync(Key("b"), "1");
        await Assert.ThrowsAsync<KahunaCanceledException>(() => ended.CommitAsync(canceled.Token));
        Assert.False(await ExistsAsync(client, "b", Durability.Persistent));
    }

    [Fact]
    public async Task A_commit_can_have_a_fence()
    {
        await using KahunaClient client = Connect();
        await using LockHandle held = await client.Locks.AcquireAsync(
            Key("lock"), TimeSpan.FromMinutes(1), TimeSpan.FromSeconds(10));
        TransactionOptions fenced = new() { Fence = held.Fence };
        await client.Transactions.RunAsync(transaction => transaction.SetAsync(Key("a"), "1").AsTask(), fenced);
        Fence lost = held.Fence with { Token = new FencingToken(held.Token.Value + 1) };
        await AssertFailsAsync(
            KahunaErrorCode.LockLost,
            "no longer holds",
            client.Transactions.RunAsync(
                transaction => transaction.SetAsync(Key("a"), "2").AsTask(), fenced with { Fence = lost }));
        Assert.Equal("1", (await client.KeyValues.GetAsync(Key("a"))).Value.AsString());
    }

    private string Key(string name) => _name + name;

    private async Task<bool> ExistsAsync(KahunaClient client, string key, Durability durability) =>
        (await client.KeyValues.ExistsAsync(
            Key(key), new Kahuna.Client.KeyValues.ReadOptions { Durability = durability })).Found;

    private static async Task AssertFailsAsync(KahunaErrorCode code, string words, Task call)
    {
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => call);
        Assert.Contains(words, failure.Message, StringComparison.Ordinal);
        Assert.Equal((code, OperationOutcome.DidNotHappen), (failure.Code, failure.Outcome));
    }

    private KahunaClient Connect() =>
        PatientClient.Connect(nodes.Cluster.Endpoints, static options => options.Insecure = true);
}
