using System.Globalization;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Transactions;

namespace Kahuna.Tests.Api;

/// <summary>
/// Transactions and atomic batches whose keys lie in several partitions, or are of both durabilities, through the SDK,
/// against three real nodes with three partitions.
/// </summary>
[Collection(nameof(ThreePartitionsCollection))]
public sealed class SpreadTransactionsTests(ThreePartitions nodes)
{
    private const int Keys = 12;

    private readonly string _name = $"spread/{Guid.NewGuid():n}/";

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public async Task All_operations_of_one_list_are_carried_out(Durability durability)
    {
        await using KahunaClient client = Connect();
        ConditionalTransaction all = client.Transactions
            .If(Each(KeyCondition.Absent))
            .Then(Each((key, i) => KeyOperation.Set(key, $"{i}")))
            .Else(Each((key, i) => i % 2 == 0 ? KeyOperation.Get(key) : KeyOperation.Increment(key, 100)))
            .WithDurability(durability);
        TransactionResult first = await all.CommitAsync();
        Assert.True(first.Succeeded);
        Assert.All(first.Conditions, static condition => Assert.True(condition.Held));
        Assert.Equal(Keys, first.Results.Count);
        Assert.All(first.Results, static result => Assert.True(result.AsSet().Applied));

        TransactionResult second = await all.CommitAsync();
        Assert.False(second.Succeeded);
        Assert.All(second.Conditions, static condition => Assert.False(condition.Held));
        for (int i = 0; i < Keys; i++)
        {
            Assert.Equal(Key(i), second[i].Key);
            Assert.Equal(
                i % 2 == 0 ? $"{i}" : $"{i + 100}",
                i % 2 == 0
                    ? second[i].AsGet().Value.AsString()
                    : second[i].AsIncrement().Value.ToString(CultureInfo.InvariantCulture));
        }
    }

    [Fact]
    public async Task One_condition_that_does_not_hold_decides_for_all_partitions()
    {
        await using KahunaClient client = Connect();
        await client.KeyValues.SetAsync(Key(5), "x");
        TransactionResult result = await client.Transactions
            .If(Each(KeyCondition.Absent))
            .Then(Each((key, _) => KeyOperation.Set(key, "then")))
            .Else(KeyOperation.Set(Key(0), "else"))
            .CommitAsync();
        Assert.False(result.Succeeded);
        Assert.Equal(
            Enumerable.Range(0, Keys).Select(static i => i != 5),
            result.Conditions.Select(static condition => condition.Held));
        Assert.True(Assert.Single(result.Results).AsSet().Applied);
        Assert.Equal(["else", null, null], await ReadAsync(client, 0, 1, 2));
    }

    [Fact]
    public async Task What_one_partition_cannot_carry_out_aborts_all()
    {
        await using KahunaClient client = Connect();
        await client.KeyValues.SetAsync(Key(9), "abc");
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => client.Transactions.If()
            .Then(Each((key, _) => KeyOperation.Increment(key)))
            .CommitAsync());
        Assert.Equal(
            (KahunaErrorCode.NotAnInteger, OperationOutcome.DidNotHappen), (failure.Code, failure.Outcome));
        Assert.Contains("Operation 10", failure.Message, StringComparison.Ordinal);

        // Its keys are free again.
        await client.KeyValues.SetAsync(Key(9), $"{long.MaxValue}");
        failure = await Assert.ThrowsAsync<KahunaException>(() => client.Transactions.If()
            .Then(Each((key, _) => KeyOperation.Increment(key)))
            .CommitAsync());
        Assert.Equal(KahunaErrorCode.Overflow, failure.Code);
        Assert.Equal([null, null], await ReadAsync(client, 0, 1));

        byte[] large = new byte[900_000];
        for (int i = 0; i < 6; i++)
        {
            await client.KeyValues.SetAsync(Key(i), large);
        }

        failure = await Assert.ThrowsAsync<KahunaException>(() => client.Transactions.If()
            .Then(Each((key, i) => i < 6 ? KeyOperation.Get(key) : KeyOperation.Set(key, "x")))
            .CommitAsync());
        Assert.Equal(KahunaErrorCode.ReplyTooLarge, failure.Code);
        failure = await Assert.ThrowsAsync<KahunaException>(() => client.KeyValues.GetManyAsync(
            Each(static (key, _) => key), new BatchOptions { Atomic = true }).AsTask());
        Assert.Equal(KahunaErrorCode.ReplyTooLarge, failure.Code);
    }

    [Fact]
    public async Task What_a_node_refuses_is_refused_as_a_whole()
    {
        await using KahunaClient client = Connect();
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => client.Transactions.If()
            .Then(Each((key, i) => KeyOperation.Set(key, i == 7 ? new byte[2_000_000] : "x")))
            .CommitAsync());
        Assert.Equal(
            (KahunaErrorCode.InvalidArgument, OperationOutcome.DidNotHappen), (failure.Code, failure.Outcome));
        Assert.Contains("nothing was written", failure.Message, StringComparison.Ordinal);
        Assert.Equal([null, null], await ReadAsync(client, 0, 7));
    }

    [Fact]
    public async Task Keys_of_both_durabilities_change_together()
    {
        await using KahunaClient client = Connect();
        TransactionResult result = await client.Transactions
            .If(KeyCondition.Absent(Key(0)), KeyCondition.Absent(Key(0)).WithDurability(Durability.Ephemeral))
            .Then(
                KeyOperation.Set(Key(0), "kept"),
                KeyOperation.Set(Key(0), "lost").WithDurability(Durability.Ephemeral))
            .CommitAsync();
        Assert.True(result.Succeeded);
        Assert.Equal("kept", (await client.KeyValues.GetAsync(Key(0))).Value.AsString());
        Assert.Equal("lost", await ReadEphemeralAsync(client, 0));

        await client.Transactions.RunAsync(async transaction =>
        {
            Transaction ephemeral = transaction.WithDurability(Durability.Ephemeral);
            string? kept = (await transaction.GetAsync(Key(0))).Value.AsString();
            string? lost = (await ephemeral.GetAsync(Key(0))).Value.AsString();
            await transaction.SetAsync(Key(0), lost!);
            await ephemeral.SetAsync(Key(0), kept!);
        });
        Assert.Equal("lost", (await client.KeyValues.GetAsync(Key(0))).Value.AsString());
        Assert.Equal("kept", await ReadEphemeralAsync(client, 0));
        BatchResult<SetResult> batch = await client.KeyValues.SetManyAsync(
            [
                new SetItem(Key(0), "1"),
                new SetItem(Key(0), "2", new SetOptions { Durability = Durability.Ephemeral }),
            ],
            new BatchOptions { Atomic = true });
        Assert.Equal((true, true), (batch[0].Result.Applied, batch[1].Result.Applied));
        Assert.Equal("2", await ReadEphemeralAsync(client, 0));
    }

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public async Task Many_at_a_time_lose_no_update(Durability durability)
    {
        await using KahunaClient client = Connect();
        TransactionOptions options = new()
        {
            TriesMax = 10_000,
            Timeout = TimeSpan.FromMinutes(4),
            Durability = durability,
        };
        await Task.WhenAll(Enumerable.Range(0, 6).Select(async worker =>
        {
            for (int i = 0; i < 6; i++)
            {
                await client.Transactions.RunAsync(
                    async transaction =>
                    {
                        string from = Key((worker + i) % 4);
                        string to = Key((worker + i + 1) % 4);
                        await transaction.IncrementAsync(from, -1);
                        await transaction.IncrementAsync(to, 2);
                    },
                    options);
            }
        }));
        BatchResult<GetResult> sums = await client.KeyValues.GetManyAsync(
            Enumerable.Range(0, 4).Select(Key), new BatchOptions { Atomic = true, Durability = durability });
        Assert.Equal(36, sums.Items.Sum(static each => long.Parse(
            each.Result.Value.AsString()!, CultureInfo.InvariantCulture)));
    }

    [Fact]
    public async Task One_round_trip_forms_that_meet_are_tried_again()
    {
        await using KahunaClient client = Connect();
        await Task.WhenAll(Enumerable.Range(0, 12).Select(async worker =>
        {
            for (int i = 0; i < 4; i++)
            {
                TransactionResult done = await client.Transactions.If()
                    .Then(Each((key, _) => KeyOperation.Increment(key)))
                    .CommitAsync();
                long sum = done[0].AsIncrement().Value;
                Assert.All(done.Results, result => Assert.Equal(sum, result.AsIncrement().Value));
            }
        }));
        Assert.Equal(["48", "48"], await ReadAsync(client, 0, 11));
    }

    [Fact]
    public async Task Atomic_reads_never_see_half_of_a_transaction()
    {
        await using KahunaClient client = Connect();
        BatchOptions atomic = new() { Atomic = true };
        using CancellationTokenSource done = new();
        Task writer = Task.Run(async () =>
        {
            for (int i = 0; i < 40; i++)
            {
                await client.KeyValues.SetManyAsync(Each((key, _) => new SetItem(key, $"{i}")), atomic);
            }

            await done.CancelAsync();
        });
        int reads = 0;
        while (!done.IsCancellationRequested || reads == 0)
        {
            BatchResult<GetResult> read = await client.KeyValues.GetManyAsync(Each(static (key, _) => key), atomic);
            Assert.Single(read.Items.Select(static each => each.Result.Value.AsString()).Distinct());
            reads++;
        }

        await writer;
    }

    [Fact]
    public async Task An_atomic_batch_is_written_as_a_whole_or_not_at_all()
    {
        await using KahunaClient client = Connect();
        BatchOptions atomic = new() { Atomic = true };
        SetOptions fresh = new() { OnlyIfAbsent = true };
        await client.KeyValues.SetAsync(Key(3), "old");
        BatchResult<SetResult> refused = await client.KeyValues.SetManyAsync(
            Each((key, _) => new SetItem(key, "new", fresh)), atomic);
        Assert.All(refused.Items, static item => Assert.False(item.Result.Applied));
        Assert.Equal([null, "old"], await ReadAsync(client, 0, 3));
        await client.KeyValues.DeleteAsync(Key(3));
        Assert.All(
            (await client.KeyValues.SetManyAsync(Each((key, _) => new SetItem(key, "new", fresh)), atomic)).Items,
            static item => Assert.True(item.Result.Applied));
        Assert.All(
            (await client.KeyValues.ExistsManyAsync(Each(static (key, _) => key), atomic)).Items,
            static item => Assert.True(item.Result.Found));
        Assert.All(
            (await client.KeyValues.DeleteManyAsync(Each(static (key, _) => new DeleteItem(key)), atomic)).Items,
            static item => Assert.True(item.Result.Deleted));
        Assert.All(
            (await client.KeyValues.GetManyAsync([Key(0), Key(1), Key(2), Key(0)], atomic)).Items,
            static item => Assert.False(item.Result.Found));
    }

    [Fact]
    public async Task A_change_of_what_was_read_is_a_conflict_in_any_partition()
    {
        await using KahunaClient client = Connect();
        await using Transaction late = await client.Transactions.BeginAsync();
        foreach (string key in Each(static (key, _) => key))
        {
            await late.GetAsync(key);
            await late.SetAsync(key, "late");
        }

        await client.KeyValues.SetAsync(Key(8), "other");
        KahunaException conflict = await Assert.ThrowsAsync<KahunaException>(() => late.CommitAsync());
        Assert.Equal(
            (KahunaErrorCode.TransactionConflict, OperationOutcome.DidNotHappen), (conflict.Code, conflict.Outcome));
        Assert.Contains(Key(8), conflict.Message, StringComparison.Ordinal);
        Assert.Equal([null, "other"], await ReadAsync(client, 0, 8));

        await using Transaction reader = await client.Transactions.BeginAsync();
        Assert.Equal(
            [null, "other"],
            (await reader.GetManyAsync([Key(0), Key(8)])).Select(static each => each.Value.AsString()));
        await client.KeyValues.SetAsync(Key(0), "x");
        conflict = await Assert.ThrowsAsync<KahunaException>(() => reader.CommitAsync());
        Assert.Equal(KahunaErrorCode.TransactionConflict, conflict.Code);
    }

    [Fact]
    public async Task An_outcome_can_be_asked_for()
    {
        await using KahunaClient client = Connect();
        string id = $"{Guid.NewGuid():n}.{DateTimeOffset.UtcNow.ToUnixTimeSeconds()}.{Key(0)}";
        Assert.Equal(TransactionOutcome.NotCommitted, await client.Transactions.FindOutcomeAsync(id));
        foreach (string bad in (string[])["", "x", $"{Guid.NewGuid():n}.1.{Key(0)}", $"{Guid.NewGuid():n}.1"])
        {
            KahunaException refused = await Assert.ThrowsAsync<KahunaException>(
                () => client.Transactions.FindOutcomeAsync(bad));
            Assert.Equal(KahunaErrorCode.InvalidArgument, refused.Code);
        }
    }

    [Fact]
    public async Task A_cancelled_commit_says_what_happened()
    {
        await using KahunaClient client = Connect();
        using CancellationTokenSource canceled = new();
        await canceled.CancelAsync();
        KahunaCanceledException ended = await Assert.ThrowsAsync<KahunaCanceledException>(() => client.Transactions.If()
            .Then(Each((key, _) => KeyOperation.Increment(key)))
            .CommitAsync(canceled.Token));
        Assert.Equal(OperationOutcome.DidNotHappen, ended.Outcome);

        long sum = 0;
        for (int i = 0; i < 20; i++)
        {
            using CancellationTokenSource soon = new(TimeSpan.FromMilliseconds(i));
            try
            {
                await client.Transactions.If()
                    .Then(Each((key, _) => KeyOperation.Increment(key)))
                    .CommitAsync(soon.Token);
                sum++;
            }
            catch (KahunaCanceledException cut) when (cut.Outcome == OperationOutcome.Unknown)
            {
                sum += (int)await client.Transactions.FindOutcomeAsync(cut.TransactionId!);
            }
            catch (KahunaCanceledException cut)
            {
                sum += cut.Outcome == OperationOutcome.Happened ? 1 : 0;
            }
        }

        TransactionResult last = await client.Transactions.If()
            .Then(Each((key, _) => KeyOperation.Increment(key)))
            .CommitAsync();
        Assert.All(last.Results, result => Assert.Equal(sum + 1, result.AsIncrement().Value));
    }

    private async Task<IEnumerable<string?>> ReadAsync(KahunaClient client, params int[] keys)
    {
        BatchResult<GetResult> read = await client.KeyValues.GetManyAsync(keys.Select(Key));
        return read.Items.Select(static each => each.Result.Value.AsString());
    }

    private async Task<string?> ReadEphemeralAsync(KahunaClient client, int key) =>
        (await client.KeyValues.GetAsync(Key(key), new ReadOptions { Durability = Durability.Ephemeral }))
        .Value.AsString();

    /// <summary>A key of a bucket of its own.</summary>
    private string Key(int index) => $"{_name}{index}/x";

    private IEnumerable<T> Each<T>(Func<string, T> make) => Enumerable.Range(0, Keys).Select(i => make(Key(i)));

    private IEnumerable<T> Each<T>(Func<string, int, T> make) =>
        Enumerable.Range(0, Keys).Select(i => make(Key(i), i));

    private KahunaClient Connect() =>
        PatientClient.Connect(nodes.Cluster.Endpoints, static options => options.Insecure = true);
}
