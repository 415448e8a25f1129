using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Transactions;
using Kahuna.Server.Hosting;
using Kahuna.Tests.Client;
using Kahuna.Wire;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Api;

/// <summary>
/// A transaction over a persistent and an ephemeral key, in whose middle the node is restarted, so that the ephemeral
/// partition loses its epoch: what docs/guarantees.md says of it.
/// </summary>
public sealed class LostEpochTransactionTests : IDisposable
{
    private const int Partitions = 2;

    private readonly string _directory = Directory.CreateTempSubdirectory("kahuna-epoch-").FullName;
    private readonly string _persistent = TransactionSteps.KeyIn(0, Partitions);
    private readonly string _ephemeral = TransactionSteps.KeyIn(1, Partitions);

    public void Dispose() => Directory.Delete(_directory, recursive: true);

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task The_persistent_part_is_written_and_the_ephemeral_one_is_gone(bool isDecidedBefore)
    {
        bool isCommitted = false;
        while (!isCommitted)
        {
            // Where this process is too slow, the node aborts the transaction, and another one has to be tried.
            isCommitted = await TryAsync(isDecidedBefore);
        }
    }

    [Fact]
    public async Task A_transaction_that_was_not_decided_is_aborted_as_a_whole()
    {
        TransactionId id;
        await using (EmbeddedCluster cluster = await StartAsync())
        {
            await using TransactionSteps steps = Steps(cluster, 2_000);
            Assert.True(await steps.PrepareAsync());
            id = steps.Id;
        }

        await using EmbeddedCluster next = await StartAsync();
        await using KahunaClient client = Connect(next);

        // The persistent key is held until the node has aborted the transaction.
        Assert.False((await client.KeyValues.GetAsync(_persistent)).Found);
        await AssertFreeAsync(client);
        await using TransactionSteps late = Steps(next, 2_000, id);
        Assert.False(await late.DecideAsync());
    }

    private async Task<bool> TryAsync(bool isDecidedBefore)
    {
        TransactionId id;
        bool isDecided = false;
        await using (EmbeddedCluster cluster = await StartAsync())
        {
            await using TransactionSteps steps = Steps(cluster, Limits.PrepareMsMax);
            if (!await steps.PrepareAsync())
            {
                return false;
            }

            id = steps.Id;
            isDecided = isDecidedBefore && await steps.DecideAsync();
        }

        await using EmbeddedCluster next = await StartAsync();
        await using TransactionSteps after = Steps(next, Limits.PrepareMsMax, id);
        if (isDecided != isDecidedBefore || (!isDecidedBefore && !await after.DecideAsync()))
        {
            return false;
        }

        // What the coordinator is told: there is nothing to carry out.
        Assert.Equal(OutcomeStatus.NotFound, await after.FinishOtherAsync());
        await using KahunaClient client = Connect(next);
        Assert.Equal(TransactionSteps.Value, (await client.KeyValues.GetAsync(_persistent)).Value.AsString());
        Assert.False((await ReadEphemeralAsync(client)).Found);
        await AssertFreeAsync(client);
        return true;
    }

    /// <summary>Both keys can be written, by a transaction too.</summary>
    private async Task AssertFreeAsync(KahunaClient client)
    {
        TransactionResult result = await client.Transactions
            .If(KeyCondition.Absent(_ephemeral).WithDurability(Durability.Ephemeral))
            .Then(
                KeyOperation.Set(_persistent, "after"),
                KeyOperation.Set(_ephemeral, "after").WithDurability(Durability.Ephemeral))
            .CommitAsync();
        Assert.True(result.Succeeded);
        Assert.Equal("after", (await client.KeyValues.GetAsync(_persistent)).Value.AsString());
        Assert.Equal("after", (await ReadEphemeralAsync(client)).Value.AsString());
    }

    private ValueTask<GetResult> ReadEphemeralAsync(KahunaClient client) =>
        client.KeyValues.GetAsync(_ephemeral, new ReadOptions { Durability = Durability.Ephemeral });

    private TransactionSteps Steps(EmbeddedCluster cluster, int timeoutMs, TransactionId? id = null) =>
        new(cluster.Nodes, _persistent, _ephemeral, Durability.Ephemeral, (uint)timeoutMs)
        {
            Id = id ?? TransactionSteps.NewId(),
        };

    private static KahunaClient Connect(EmbeddedCluster cluster) =>
        PatientClient.Connect(cluster.Endpoints, static options => options.Insecure = true);

    /// <summary>Starts the node, with what its directory has.</summary>
    private Task<EmbeddedCluster> StartAsync() => EmbeddedCluster.StartAsync(
        1, _directory, static options => options with { Partitions = Partitions }).WaitAsync(Wait.Longest);
}
