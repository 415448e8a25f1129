using Kahuna.Client;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Api;

/// <summary>Transactions whose coordinator has left are ended by the nodes themselves.</summary>
[Collection(nameof(ThreePartitionsCollection))]
public sealed class AbandonedTransactionTests(ThreePartitions nodes)
{
    private readonly string _anchor = TransactionSteps.KeyIn(0, 3);
    private readonly string _other = TransactionSteps.KeyIn(1, 3);

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public async Task A_part_without_a_decision_is_aborted(Durability durability)
    {
        await using TransactionSteps steps = Steps(durability);
        await using KahunaClient client = ConnectClient();
        Assert.Equal(OutcomeStatus.Applied, await steps.PrepareOtherAsync());

        // It is refused until the part has let the key go.
        await client.KeyValues.SetAsync(_other, "mine", new() { Durability = durability });
        Assert.Equal("mine", await ReadAsync(client, _other, durability));
    }

    [Fact]
    public async Task A_part_of_a_committed_transaction_is_carried_out()
    {
        await using KahunaClient client = ConnectClient();
        bool isCommitted = false;
        while (!isCommitted)
        {
            // Where this process is too slow, the nodes abort it, and other parts are refused until they have.
            await using TransactionSteps steps = Steps(Durability.Persistent);
            isCommitted = await steps.PrepareAsync() && await steps.DecideAsync();
        }

        // A read of the other key waits until its part has ended.
        Assert.Equal(TransactionSteps.Value, await ReadAsync(client, _anchor, Durability.Persistent));
        Assert.Equal(TransactionSteps.Value, await ReadAsync(client, _other, Durability.Persistent));
    }

    private static async Task<string?> ReadAsync(KahunaClient client, string key, Durability durability) =>
        (await client.KeyValues.GetAsync(key, new() { Durability = durability })).Value.AsString();

    private KahunaClient ConnectClient() =>
        PatientClient.Connect(nodes.Cluster.Endpoints, static options => options.Insecure = true);

    /// <summary>A transaction that may be aborted after a second.</summary>
    private TransactionSteps Steps(Durability durability) =>
        new(nodes.Cluster.Nodes, _anchor, _other, durability, timeoutMs: 1_000);
}
