using System.Text;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Api;

/// <summary>
/// The steps of one transaction over two keys, of which the first one is the anchor's, sent one by one to real nodes.
/// Each part sets its key to <see cref="Value"/>. Used by one test.
/// </summary>
/// <param name="nodes">The nodes.</param>
/// <param name="anchor">The anchor's key, which is persistent.</param>
/// <param name="other">The key of the other part.</param>
/// <param name="durability">The durability of the other part.</param>
/// <param name="timeoutMs">When the nodes may abort the transaction.</param>
internal sealed class TransactionSteps(
    IReadOnlyList<KahunaNode> nodes, string anchor, string other, Durability durability, uint timeoutMs)
    : IAsyncDisposable
{
    /// <summary>What the transaction writes.</summary>
    public const string Value = "theirs";

    private readonly Forwarder _forwarder = new(
        nodes.Select(static node => node.Options.Advertise),
        NodeCertificates.TrustedCaFile(nodes[0].Options),
        new NodeCredential(new ClusterSecrets()),
        NullLoggerFactory.Instance);

    /// <summary>The transaction.</summary>
    public TransactionId Id { get; init; } = NewId();

    public ValueTask DisposeAsync() => _forwarder.DisposeAsync();

    /// <summary>An id that no other transaction has.</summary>
    public static TransactionId NewId() => new(
        BitConverter.ToUInt64(Guid.NewGuid().ToByteArray()), BitConverter.ToUInt64(Guid.NewGuid().ToByteArray()));

    /// <summary>A key in a partition, of a bucket of its own.</summary>
    public static string KeyIn(int partition, int partitions) =>
        Enumerable.Range(0, int.MaxValue).Select(static _ => $"steps{Guid.NewGuid():n}/key")
            .First(key => InitialPartition.Of(key, partitions) == partition);

    /// <summary>Prepares both parts. False: a node has refused one.</summary>
    public async Task<bool> PrepareAsync() =>
        await PrepareAnchorAsync() == OutcomeStatus.Applied && await PrepareOtherAsync() == OutcomeStatus.Applied;

    /// <summary>Prepares the part of the anchor.</summary>
    public async Task<OutcomeStatus> PrepareAnchorAsync() =>
        (await RunAsync(Prepare(anchor, Durability.Persistent))).Status;

    /// <summary>Prepares the other part.</summary>
    public async Task<OutcomeStatus> PrepareOtherAsync() => (await RunAsync(Prepare(other, durability))).Status;

    /// <summary>Commits. False: the nodes had aborted the transaction.</summary>
    public async Task<bool> DecideAsync()
    {
        Step answer = await RunAsync(WithId(CommandKind.TransactionDecide, anchor, Durability.Persistent));
        return answer is { Status: OutcomeStatus.Applied, Number: (long)TransactionDecision.Then };
    }

    /// <summary>Has the other part carry the decision out. NotFound: nothing is prepared there.</summary>
    public async Task<OutcomeStatus> FinishOtherAsync() =>
        (await RunAsync(WithId(CommandKind.TransactionFinish, other, durability))).Status;

    private async Task<Step> RunAsync(byte[] command)
    {
        byte[] answer = await _forwarder.ForwardAsync(
            command, mayHaveHappened: false, TimeSpan.FromSeconds(30), CancellationToken.None);
        Assert.True(Outcome.TryRead(answer, out Outcome outcome));
        return new Step(outcome.Status, outcome.Number);
    }

    private byte[] Prepare(string key, Durability level)
    {
        bool isAnchor = key == anchor;
        ByteBuffer body = ByteBuffer.Rent();
        PrepareBody.WriteHeader(
            body,
            Id,
            timeoutMs,
            isAnchor ? PrepareFlags.Anchor : PrepareFlags.None,
            Encoding.UTF8.GetBytes(anchor),
            isAnchor ? 2 : 0);
        if (isAnchor)
        {
            PrepareBody.WriteParticipant(body, Durability.Persistent, Encoding.UTF8.GetBytes(anchor));
            PrepareBody.WriteParticipant(body, durability, Encoding.UTF8.GetBytes(other));
        }

        TransactionBody.WriteHeader(body, 0, 1, 0);
        byte[] name = Encoding.UTF8.GetBytes(key);
        byte[] value = Encoding.UTF8.GetBytes(Value);
        CommandList.Append(
            body, new Command { Kind = CommandKind.Set, Durability = level, Key = name, Value = value });
        Command prepare = new()
        {
            Kind = CommandKind.TransactionPrepare,
            Durability = level,
            Key = name,
            Value = body.Written,
        };
        return Encode(in prepare);
    }

    private byte[] WithId(CommandKind kind, string key, Durability level)
    {
        byte[] id = new byte[TransactionId.Bytes];
        Id.Write(id);
        Command command = new()
        {
            Kind = kind,
            Durability = level,
            Flags = CommandFlags.Number,
            Key = Encoding.UTF8.GetBytes(key),
            Value = id,
            Number = (long)TransactionDecision.Then,
        };
        return Encode(in command);
    }

    private static byte[] Encode(scoped in Command command)
    {
        ByteBuffer bytes = ByteBuffer.Rent(command.EncodedBytes);
        command.Write(bytes);
        return bytes.Written.ToArray();
    }

    private readonly record struct Step(OutcomeStatus Status, long Number);
}
