using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Transactions;

namespace Kahuna.Tests.Api;

/// <summary>
/// Scans in transactions and conditions about ranges through the SDK, against three real nodes with three partitions.
/// </summary>
[Collection(nameof(ThreePartitionsCollection))]
public sealed class RangeTransactionsTests(ThreePartitions nodes)
{
    private readonly string _name = $"ranges{Guid.NewGuid():n}.";

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public async Task A_scan_shows_all_partitions_and_what_the_transaction_has_written(Durability durability)
    {
        await using KahunaClient client = Connect();
        await PutAsync(client, durability, 1, 3, 5, 7);
        await using Transaction transaction = await BeginAsync(client, durability);
        await transaction.SetAsync(Key(0), "own");
        await transaction.SetAsync(Key(3), "changed");
        await transaction.SetAsync(Key(6), "own");
        await transaction.DeleteAsync(Key(5));
        Assert.Equal(["0=own", "1=1", "3=changed", "6=own", "7=7"], await ScanAsync(transaction));
        ScanOptions lastThree = new() { Descending = true, Limit = 3 };
        Assert.Equal(["7=7", "6=own", "3=changed"], await ScanAsync(transaction, lastThree));
        ScanOptions middle = new() { From = Key(1), To = Key(6), KeysOnly = true, PageSize = 1 };
        Assert.Equal(["1=", "3="], await ScanAsync(transaction, middle));
        Assert.Equal(5, await transaction.CountAsync(_name));
        Assert.Equal(0, await transaction.CountAsync(_name + "no such"));
        await transaction.CommitAsync();

        await using Transaction second = await BeginAsync(client, durability);
        Assert.Equal(["0=own", "1=1", "3=changed", "6=own", "7=7"], await ScanAsync(second));
        Assert.Equal("own", (await second.GetAsync(Key(6))).Value.AsString());
        await second.CommitAsync();
    }

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public async Task A_key_that_came_or_went_in_a_scanned_range_is_a_conflict(Durability durability)
    {
        await using KahunaClient client = Connect();
        await PutAsync(client, durability, 2, 4, 6);
        Func<Task>[] changes =
        [
            () => PutAsync(client, durability, 5),
            () => PutAsync(client, durability, 9),
            () => client.KeyValues.DeleteAsync(Key(4), new DeleteOptions { Durability = durability }).AsTask(),
            () => PutAsync(client, durability, 6),
        ];
        foreach (Func<Task> change in changes)
        {
            await using Transaction writer = await BeginAsync(client, durability);
            await using Transaction reader = await BeginAsync(client, durability);
            int count = (await ScanAsync(writer)).Count;
            Assert.Equal(count, await reader.CountAsync(_name));
            await writer.SetAsync(Key(100), $"{count}");
            await change();
            foreach (Transaction late in (Transaction[])[writer, reader])
            {
                KahunaException conflict = await Assert.ThrowsAsync<KahunaException>(() => late.CommitAsync());
                Assert.Equal(
                    (KahunaErrorCode.TransactionConflict, OperationOutcome.DidNotHappen),
                    (conflict.Code, conflict.Outcome));
                Assert.Contains(_name, conflict.Message, StringComparison.Ordinal);
            }
        }
    }

    [Fact]
    public async Task A_key_behind_the_end_of_a_scan_that_ended_early_is_no_conflict()
    {
        await using KahunaClient client = Connect();
        await PutAsync(client, Durability.Persistent, 2, 4, 6, 8);
        foreach ((bool descending, int outside, int inside) in ((bool, int, int)[])[(false, 5, 3), (true, 5, 7)])
        {
            ScanOptions two = new() { Limit = 2, Descending = descending };
            await using (Transaction transaction = await BeginAsync(client, Durability.Persistent))
            {
                Assert.Equal(2, (await ScanAsync(transaction, two)).Count);
                await transaction.SetAsync("elsewhere" + _name, "1");
                await PutAsync(client, Durability.Persistent, outside);
                await transaction.CommitAsync();
            }

            await using (Transaction transaction = await BeginAsync(client, Durability.Persistent))
            {
                await foreach (KeyValueEntry entry in transaction.ScanAsync(
                    _name, new ScanOptions { Descending = descending }))
                {
                    if (entry.Key == Key(descending ? 6 : 4))
                    {
                        break;
                    }
                }

                await PutAsync(client, Durability.Persistent, inside);
                KahunaException conflict = await Assert.ThrowsAsync<KahunaException>(() => transaction.CommitAsync());
                Assert.Equal(KahunaErrorCode.TransactionConflict, conflict.Code);
            }
        }
    }

    [Fact]
    public async Task Keys_that_expire_are_no_phantoms()
    {
        await using KahunaClient client = Connect();
        await client.KeyValues.SetAsync(Key(1), "1", new SetOptions { Ttl = TimeSpan.FromMilliseconds(1) });
        await PutAsync(client, Durability.Persistent, 2);
        while ((await client.KeyValues.ExistsAsync(Key(1))).Found)
        {
            await Task.Delay(1);
        }

        await using (Transaction transaction = await BeginAsync(client, Durability.Persistent))
        {
            Assert.Equal(["2=2"], await ScanAsync(transaction));
            await transaction.SetAsync(Key(3), "3");
            await transaction.CommitAsync();
        }

        await client.KeyValues.SetAsync(Key(4), "4", new SetOptions { Ttl = TimeSpan.FromSeconds(1) });
        await using (Transaction transaction = await BeginAsync(client, Durability.Persistent))
        {
            Assert.Equal(3, await transaction.CountAsync(_name));
            await transaction.SetAsync(Key(5), "5");
            while ((await client.KeyValues.ExistsAsync(Key(4))).Found)
            {
                await Task.Delay(10);
            }

            KahunaException conflict = await Assert.ThrowsAsync<KahunaException>(() => transaction.CommitAsync());
            Assert.Equal(KahunaErrorCode.TransactionConflict, conflict.Code);
        }
    }

    [Fact]
    public async Task Of_many_that_insert_where_they_find_nothing_one_succeeds()
    {
        await using KahunaClient client = Connect();
        bool[] won = await Task.WhenAll(Enumerable.Range(0, 20).Select(i => client.Transactions.RunAsync(
            async transaction =>
            {
                if (await transaction.CountAsync(_name) > 0)
                {
                    return false;
                }

                await transaction.SetAsync(Key(i), "mine");
                return true;
            },
            new TransactionOptions { TriesMax = 100, Timeout = TimeSpan.FromSeconds(60) })));
        Assert.Single(won, static each => each);
        Assert.Equal(1, await client.KeyValues.CountAsync(_name));
    }

    [Fact]
    public async Task A_condition_says_that_no_key_is_under_a_prefix()
    {
        await using KahunaClient client = Connect();
        ConditionalTransaction claim = client.Transactions
            .If(KeyCondition.Absent(Key(3)), KeyCondition.NoKeys(_name), KeyCondition.NoKeys(_name + "x"))
            .Then(KeyOperation.Set(Key(1), "1"))
            .Else(KeyOperation.Get(Key(1)));
        TransactionResult first = await claim.CommitAsync();
        Assert.True(first.Succeeded);
        Assert.All(first.Conditions, static condition => Assert.True(condition.Held));
        TransactionResult second = await claim.CommitAsync();
        Assert.False(second.Succeeded);
        Assert.Equal([true, false, true], second.Conditions.Select(static condition => condition.Held));
        Assert.Equal("1", second[0].AsGet().Value.AsString());

        TransactionResult ephemeral = await client.Transactions
            .If(KeyCondition.NoKeys(_name).WithDurability(Durability.Ephemeral))
            .Then(KeyOperation.Set(Key(2), "2"))
            .CommitAsync();
        Assert.True(ephemeral.Succeeded);
    }

    [Fact]
    public async Task A_condition_says_that_a_prefix_has_no_other_keys_than_those_that_conditions_name()
    {
        await using KahunaClient client = Connect();
        await PutAsync(client, Durability.Persistent, 1, 2);
        ConditionalTransaction add = client.Transactions
            .If(
                KeyCondition.NoOtherKeys(_name),
                KeyCondition.Exists(Key(1)),
                KeyCondition.HasRevision(Key(1), new Revision(1)),
                KeyCondition.Exists(Key(2)),
                KeyCondition.Absent(Key(3)))
            .Then(KeyOperation.Set(Key(3), "3"));
        Assert.True((await add.CommitAsync()).Succeeded);

        TransactionResult second = await add.CommitAsync();
        Assert.Equal([false, true, true, true, false], second.Conditions.Select(static condition => condition.Held));
        TransactionResult missing = await client.Transactions
            .If(KeyCondition.NoOtherKeys(_name), KeyCondition.Exists(Key(1)), KeyCondition.Exists(Key(4)))
            .Then(KeyOperation.Set(Key(5), "5"))
            .CommitAsync();
        Assert.False(missing.Succeeded);

        TransactionResult otherLevel = await client.Transactions
            .If(
                KeyCondition.NoOtherKeys(_name).WithDurability(Durability.Ephemeral),
                KeyCondition.Exists(Key(1)),
                KeyCondition.NoOtherKeys(_name + "none"))
            .Then(KeyOperation.Delete(Key(3)))
            .CommitAsync();
        Assert.True(otherLevel.Succeeded);
        Assert.Equal(2, await client.KeyValues.CountAsync(_name));
        Assert.Throws<ArgumentNullException>(static () => KeyCondition.NoOtherKeys(null!));
    }

    [Fact]
    public async Task Both_durabilities_are_looked_at_in_one_transaction()
    {
        await using KahunaClient client = Connect();
        await using Transaction transaction = await BeginAsync(client, Durability.Persistent);
        Transaction ephemeral = transaction.WithDurability(Durability.Ephemeral);
        Assert.Equal(0, await transaction.CountAsync(_name) + await ephemeral.CountAsync(_name));
        await transaction.SetAsync(Key(1), "1");
        await PutAsync(client, Durability.Ephemeral, 2);
        KahunaException conflict = await Assert.ThrowsAsync<KahunaException>(() => transaction.CommitAsync());
        Assert.Equal(KahunaErrorCode.TransactionConflict, conflict.Code);
    }

    [Fact]
    public async Task What_is_over_a_limit_is_refused()
    {
        await using KahunaClient client = Connect();
        await using (Transaction transaction = await BeginAsync(client, Durability.Persistent))
        {
            for (int i = 0; i < 64; i++)
            {
                await transaction.CountAsync($"{_name}{i:d3}");
            }

            KahunaException refused = await Assert.ThrowsAsync<KahunaException>(
                () => transaction.CountAsync($"{_name}999").AsTask());
            Assert.Equal(KahunaErrorCode.InvalidArgument, refused.Code);
            Assert.Contains("64 ranges", refused.Message, StringComparison.Ordinal);
            await transaction.CommitAsync();
        }

        await client.KeyValues.SetManyAsync(Enumerable.Range(0, 1_001).Select(i => new SetItem(Key(i), "1")));
        await using Transaction large = await BeginAsync(client, Durability.Persistent);
        KahunaException tooMany = await Assert.ThrowsAsync<KahunaException>(() => large.CountAsync(_name).AsTask());
        Assert.Equal(KahunaErrorCode.InvalidArgument, tooMany.Code);
        Assert.Contains("1,000 keys", tooMany.Message, StringComparison.Ordinal);
        await Assert.ThrowsAsync<ArgumentOutOfRangeException>(
            () => ScanAsync(large, new ScanOptions { Limit = 0 }));
        KahunaException many = await Assert.ThrowsAsync<KahunaException>(() => client.Transactions
            .If(Enumerable.Range(0, 65).Select(i => KeyCondition.NoKeys($"{_name}{i}")))
            .Then(KeyOperation.Set("x", "1"))
            .CommitAsync());
        Assert.Equal(KahunaErrorCode.InvalidArgument, many.Code);
    }

    private static Task<Transaction> BeginAsync(KahunaClient client, Durability durability) =>
        client.Transactions.BeginAsync(new TransactionOptions { Durability = durability }).AsTask();

    /// <summary>A key of a bucket of its own.</summary>
    private string Key(int index) => $"{_name}{index:d4}/x";

    private async Task PutAsync(KahunaClient client, Durability durability, params int[] keys)
    {
        foreach (int key in keys)
        {
            await client.KeyValues.SetAsync(Key(key), $"{key}", new SetOptions { Durability = durability });
        }
    }

    private async Task<List<string>> ScanAsync(Transaction transaction, ScanOptions? options = null)
    {
        List<string> found = [];
        await foreach (KeyValueEntry entry in transaction.ScanAsync(_name, options))
        {
            int index = int.Parse(entry.Key.AsSpan(_name.Length, 4), System.Globalization.CultureInfo.InvariantCulture);
            found.Add($"{index}={entry.Value.AsString()}");
        }

        return found;
    }

    private KahunaClient Connect() =>
        PatientClient.Connect(nodes.Cluster.Endpoints, static options => options.Insecure = true);
}
