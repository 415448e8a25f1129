using System.Text;
using Kahuna.Client;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Api;

/// <summary>Transactions whose coordinator has left are ended by the nodes themselves.</summary>
[Collection(nameof(ThreePartitionsCollection))]
public sealed class AbandonedTransactionTests(ThreePartitions nodes)
{
    private readonly string _anchor = KeyIn(0);
    private readonly string _other = KeyIn(1);
    private TransactionId _id = NewId();

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public async Task A_part_without_a_decision_is_aborted(Durability durability)
    {
        await using Forwarder forwarder = Connect();
        await using KahunaClient client = ConnectClient();
        Assert.Equal(OutcomeStatus.Applied, await RunAsync(forwarder, Prepare(_other, durability)));

        // It is refused until the part has let the key go.
        await client.KeyValues.SetAsync(_other, "mine", new() { Durability = durability });
        Assert.Equal("mine", await ReadAsync(client, _other, durability));
    }

    [Fact]
    public async Task A_part_of_a_committed_transaction_is_carried_out()
    {
        await using Forwarder forwarder = Connect();
        await using KahunaClient client = ConnectClient();
        while (!await CommitAsync(forwarder))
        {
            // This process was too slow, and the nodes have aborted it.
            _id = NewId();
        }

        // A read of the other key waits until its part has ended.
        Assert.Equal("theirs", await ReadAsync(client, _anchor, Durability.Persistent));
        Assert.Equal("theirs", await ReadAsync(client, _other, Durability.Persistent));
    }

    private static TransactionId NewId() => new(
        BitConverter.ToUInt64(Guid.NewGuid().ToByteArray()), BitConverter.ToUInt64(Guid.NewGuid().ToByteArray()));

    /// <summary>Commits a transaction, and does not have it carried out at the other key.</summary>
    private async Task<bool> CommitAsync(Forwarder forwarder)
    {
        if (await RunAsync(forwarder, Prepare(_anchor, Durability.Persistent)) != OutcomeStatus.Applied
            || await RunAsync(forwarder, Prepare(_other, Durability.Persistent)) != OutcomeStatus.Applied)
        {
            // Parts of the try before are not aborted yet.
            return false;
        }

        byte[] answer = await forwarder.ForwardAsync(
            Decide(), mayHaveHappened: false, TimeSpan.FromSeconds(30), CancellationToken.None);
        Assert.True(Outcome.TryRead(answer, out Outcome outcome));
        return outcome is { Status: OutcomeStatus.Applied, Number: (long)TransactionDecision.Then };
    }

    private static string KeyIn(int partition) =>
        Enumerable.Range(0, int.MaxValue).Select(static _ => $"abandoned{Guid.NewGuid():n}/key")
            .First(key => InitialPartition.Of(key, 3) == partition);

    private static async Task<string?> ReadAsync(KahunaClient client, string key, Durability durability) =>
        (await client.KeyValues.GetAsync(key, new() { Durability = durability })).Value.AsString();

    private static async Task<OutcomeStatus> RunAsync(Forwarder forwarder, byte[] command) =>
        (OutcomeStatus)(await forwarder.ForwardAsync(
            command, mayHaveHappened: false, TimeSpan.FromSeconds(30), CancellationToken.None))[0];

    private KahunaClient ConnectClient() =>
        KahunaClient.Connect(nodes.Cluster.Endpoints, static options => options.Insecure = true);

    private Forwarder Connect() => new(
        nodes.Cluster.Nodes.Select(static node => node.Options.Advertise),
        NodeCertificates.TrustedCaFile(nodes.Cluster.Nodes[0].Options),
        new NodeCredential([]),
        NullLoggerFactory.Instance);

    /// <summary>A part that sets its key; it may be aborted after a second.</summary>
    private byte[] Prepare(string key, Durability durability)
    {
        bool isAnchor = key == _anchor;
        ByteBuffer body = ByteBuffer.Rent();
        PrepareBody.WriteHeader(
            body,
            _id,
            timeoutMs: 1_000,
            isAnchor ? PrepareFlags.Anchor : PrepareFlags.None,
            Encoding.UTF8.GetBytes(_anchor),
            isAnchor ? 2 : 0);
        foreach (string participant in isAnchor ? (string[])[_anchor, _other] : [])
        {
            PrepareBody.WriteParticipant(body, durability, Encoding.UTF8.GetBytes(participant));
        }

        TransactionBody.WriteHeader(body, 0, 1, 0);
        byte[] name = Encoding.UTF8.GetBytes(key);
        CommandList.Append(
            body,
            new Command { Kind = CommandKind.Set, Durability = durability, Key = name, Value = "theirs"u8 });
        Command prepare = new()
        {
            Kind = CommandKind.TransactionPrepare,
            Durability = durability,
            Key = name,
            Value = body.Written,
        };
        return Encode(in prepare);
    }

    private byte[] Decide()
    {
        byte[] id = new byte[TransactionId.Bytes];
        _id.Write(id);
        Command decide = new()
        {
            Kind = CommandKind.TransactionDecide,
            Durability = Durability.Persistent,
            Flags = CommandFlags.Number,
            Key = Encoding.UTF8.GetBytes(_anchor),
            Value = id,
            Number = (long)TransactionDecision.Then,
        };
        return Encode(in decide);
    }

    private static byte[] Encode(scoped in Command command)
    {
        ByteBuffer bytes = ByteBuffer.Rent(command.EncodedBytes);
        command.Write(bytes);
        return bytes.Written.ToArray();
    }
}
