using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Locks;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Transactions;

namespace Kahuna.Tests.Api;

/// <summary>
/// Fences of transactions whose keys lie in several partitions, or not in the lock's bucket, through the SDK, against
/// three real nodes with three partitions.
/// </summary>
[Collection(nameof(ThreePartitionsCollection))]
public sealed class SpreadFencesTests(ThreePartitions nodes)
{
    private const int Keys = 8;

    private static readonly TimeSpan s_lease = TimeSpan.FromSeconds(60);
    private static readonly TimeSpan s_wait = TimeSpan.FromSeconds(30);

    private readonly string _name = $"fences/{Guid.NewGuid():n}/";

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public async Task A_lock_of_any_bucket_decides(Durability durability)
    {
        await using KahunaClient client = Connect();
        for (int i = 0; i < 6; i++)
        {
            // Each lies in another partition than the one before, sooner or later.
            string name = $"{_name}lock{i}/x";
            LockHandle handle = await client.Locks.AcquireAsync(
                name, s_lease, s_wait, new LockOptions { Durability = Durability.Persistent });
            ConditionalTransaction many = Write(client, handle.Fence, [.. Enumerable.Range(0, Keys).Select(Key)], name);
            ConditionalTransaction one = Write(client, handle.Fence, [$"{_name}one"], name);
            Assert.True((await many.WithDurability(durability).CommitAsync()).Succeeded);
            Assert.True((await one.WithDurability(durability).CommitAsync()).Succeeded);
            await handle.ReleaseAsync();
            foreach (ConditionalTransaction late in new[]
            {
                Write(client, handle.Fence, [.. Enumerable.Range(0, Keys).Select(Key)], "late"),
                Write(client, handle.Fence, [$"{_name}one"], "late"),
            })
            {
                KahunaException lost = await Assert.ThrowsAsync<KahunaException>(
                    () => late.WithDurability(durability).CommitAsync());
                Assert.Equal((KahunaErrorCode.LockLost, OperationOutcome.DidNotHappen), (lost.Code, lost.Outcome));
                Assert.Contains("nothing was written", lost.Message, StringComparison.Ordinal);
            }

            // Nothing is held, and nothing was changed.
            foreach (string key in Enumerable.Range(0, Keys).Select(Key).Append($"{_name}one"))
            {
                GetResult read = await client.KeyValues.GetAsync(key, new ReadOptions { Durability = durability });
                Assert.Equal(name, read.Value.AsString());
            }
        }
    }

    [Fact]
    public async Task An_interactive_transaction_and_an_atomic_batch_have_fences_too()
    {
        await using KahunaClient client = Connect();
        await using LockHandle handle = await client.Locks.AcquireAsync(
            $"{_name}lock", s_lease, s_wait, new LockOptions { Durability = Durability.Persistent });
        SetItem[] items = [.. Enumerable.Range(0, Keys).Select(i => new SetItem(Key(i), "1"))];
        BatchOptions batch = new() { Atomic = true, Fence = handle.Fence };
        Assert.Equal(Keys, (await client.KeyValues.SetManyAsync(items, batch)).Items.Count);
        TransactionOptions options = new() { Fence = handle.Fence };
        await client.Transactions.RunAsync(WriteTwoAsync, options);
        await handle.ReleaseAsync();
        KahunaException lost = await Assert.ThrowsAsync<KahunaException>(
            () => client.Transactions.RunAsync(WriteTwoAsync, options));
        Assert.Equal(KahunaErrorCode.LockLost, lost.Code);
        lost = await Assert.ThrowsAsync<KahunaException>(async () => await client.KeyValues.SetManyAsync(items, batch));
        Assert.Equal(KahunaErrorCode.LockLost, lost.Code);

        async Task WriteTwoAsync(Transaction transaction)
        {
            await transaction.SetAsync(Key(0), "2");
            await transaction.SetAsync(Key(1), "2");
        }
    }

    [Fact]
    public async Task A_fence_that_names_no_lock_is_refused()
    {
        await using KahunaClient client = Connect();
        foreach (Fence fence in new[] { new Fence("", new FencingToken(1)), new Fence("l", default) })
        {
            KahunaException refused = await Assert.ThrowsAsync<KahunaException>(
                () => Write(client, fence, [Key(0), Key(1), Key(2)], "1").CommitAsync());
            Assert.Equal(
                (KahunaErrorCode.InvalidArgument, OperationOutcome.DidNotHappen), (refused.Code, refused.Outcome));
        }
    }

    private static ConditionalTransaction Write(KahunaClient client, Fence fence, string[] keys, string value) =>
        client.Transactions.If().Then([.. keys.Select(key => KeyOperation.Set(key, value))]).WithFence(fence);

    /// <summary>A key of a bucket of its own.</summary>
    private string Key(int index) => $"{_name}{index}/x";

    private KahunaClient Connect() =>
        PatientClient.Connect(nodes.Cluster.Endpoints, static options => options.Insecure = true);
}
