using System.Text;
using Kahuna.Client.Locks;
using Kahuna.Server.Cluster;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Simulation.Workload;

/// <summary>
/// A coordinator of transactions over several partitions that leaves some of them at any point, as one that crashes
/// would, or stands still between two steps for longer than the partitions wait. It speaks the wire and not the SDK, so
/// that the nodes are tested by a second writer of the protocol. Owned by one caller of a run.
/// </summary>
/// <param name="cluster">The run.</param>
/// <param name="forwarder">Brings commands to leaders.</param>
/// <param name="random">Draws where it leaves.</param>
internal sealed class LeavingCoordinator(SimCluster cluster, IForwarder forwarder, SimRandom random)
{
    private const int PauseMsMax = 3_000;

    private static readonly TimeSpan s_limit = TimeSpan.FromSeconds(8);

    /// <summary>The last transaction was refused because the lock of its fence was lost.</summary>
    public bool IsFenceLost { get; private set; }

    private enum Leaves
    {
        Never,
        WhilePreparing,
        Prepared,
        WhileDeciding,
        Decided,
        WhileFinishing,
    }

    /// <summary>
    /// Writes all of the values if no key has changed: true when it did, false when it did not, null when this
    /// coordinator does not know.
    /// </summary>
    /// <param name="writes">The values.</param>
    /// <param name="fence">The decision depends on this persistent lock, whose partition makes it.</param>
    public async Task<bool?> CommitAsync(IReadOnlyList<WideWrite> writes, Fence? fence = null)
    {
        IsFenceLost = false;
        Leaves leaves = random.Pick(
        [
            Leaves.Never, Leaves.Never, Leaves.Never, Leaves.Never, Leaves.Never, Leaves.WhilePreparing,
            Leaves.Prepared, Leaves.WhileDeciding, Leaves.Decided, Leaves.WhileFinishing,
        ]);
        TransactionId id = new(random.Next(), random.Next());
        Part[] parts = PartsOf(id, writes, fence);
        Part[] sent = leaves == Leaves.WhilePreparing ? Some(parts) : parts;
        byte[][] votes = await Task.WhenAll(sent.Select(part => SendAsync(part.Prepare)));
        bool holds = votes.All(static vote => Holds(vote));
        await MayPauseAsync();
        if (leaves is Leaves.WhilePreparing or Leaves.Prepared)
        {
            // Nobody has asked for it to be committed, and nobody will.
            return false;
        }

        // Conditions that do not hold choose the second lists, which are empty here.
        TransactionDecision wanted = holds ? TransactionDecision.Then
            : votes.All(static vote => (OutcomeStatus)vote[0] == OutcomeStatus.Applied) && random.Chance(0.5)
                ? TransactionDecision.Else
                : TransactionDecision.Abort;
        Task<byte[]> decide = SendAsync(Decide(id, parts[0].AnchorKey, wanted, fence));
        if (leaves == Leaves.WhileDeciding)
        {
            return wanted == TransactionDecision.Then ? null : false;
        }

        byte[] decided = await decide;
        IsFenceLost = (OutcomeStatus)decided[0] == OutcomeStatus.FenceFailed;
        TransactionDecision? counts = DecisionOf(decided);
        if (counts is null || leaves == Leaves.Decided)
        {
            return wanted != TransactionDecision.Then ? false : Committed(counts);
        }

        await MayPauseAsync();
        if (random.Chance(0.1))
        {
            await SendAsync(Decide(id, parts[0].AnchorKey, TransactionDecision.Abort));
        }

        bool isDone = await FinishAsync(id, leaves == Leaves.WhileFinishing ? Some(parts) : parts, counts.Value);
        if (isDone && leaves == Leaves.Never && random.Chance(0.5))
        {
            await SendAsync(Encode(CommandKind.TransactionForget, parts[0].AnchorKey, IdBytes(id)));
        }

        return Committed(counts);
    }

    private static bool? Committed(TransactionDecision? decision) =>
        decision is { } known ? known == TransactionDecision.Then : null;

    private async Task<bool> FinishAsync(TransactionId id, Part[] parts, TransactionDecision decision)
    {
        Part[] others = [.. parts.Where(static part => !part.IsAnchor)];
        byte[][] ends = await Task.WhenAll(
            others.Select(part => SendAsync(Finish(id, part.Key, decision))));
        return ends.All(
            static end => (OutcomeStatus)end[0] is OutcomeStatus.Applied or OutcomeStatus.NotFound);
    }

    private static bool Holds(byte[] vote) =>
        Outcome.TryRead(vote, out Outcome outcome)
        && outcome.Status == OutcomeStatus.Applied
        && PrepareVote.TryRead(outcome.Value, out PrepareVote read, out _)
        && read is { Holds: true, Then.Status: OutcomeStatus.Applied };

    private static TransactionDecision? DecisionOf(byte[] answer) =>
        Outcome.TryRead(answer, out Outcome outcome) && outcome.Status == OutcomeStatus.Applied
            ? (TransactionDecision)outcome.Number
            : null;

    /// <summary>One part for each partition; one of them, or a further partition, keeps the decision.</summary>
    private Part[] PartsOf(TransactionId id, IReadOnlyList<WideWrite> writes, Fence? fence)
    {
        int partitions = cluster.Config.Groups;
        IGrouping<int, WideWrite>[] groups =
            [.. writes.GroupBy(write => InitialPartition.Of(write.Key, partitions))];
        int free = Enumerable.Range(0, partitions).FirstOrDefault(i => groups.All(group => group.Key != i), -1);
        int anchor = fence is { } given ? PlaceOf(given, groups)
            : free >= 0 && random.Chance(0.15) ? -1
            : random.Next(groups.Length);
        bool isApart = anchor < 0;
        string anchorKey = fence?.Resource
            ?? (isApart ? WideBank.KeyIn(free, partitions, "anchor") : groups[anchor].First().Key);
        uint timeoutMs = (uint)random.Pick([100, 500, 2_000, 5_000]);
        PrepareFlags flags = random.Chance(0.5) ? PrepareFlags.OnlyIfHolds : PrepareFlags.None;
        Header header = new(id, timeoutMs, anchorKey, [.. groups.Select(static group => group.First().Key)]);
        List<Part> parts = [];
        for (int i = 0; i < groups.Length; i++)
        {
            bool isAnchor = i == anchor;
            parts.Add(new Part(
                groups[i].First().Key,
                anchorKey,
                isAnchor,
                Prepare(header, isAnchor ? flags | PrepareFlags.Anchor : flags, [.. groups[i]])));
        }

        if (isApart)
        {
            parts.Add(new Part(
                anchorKey, anchorKey, IsAnchor: true, Prepare(header, flags | PrepareFlags.Anchor, [])));
        }

        return [.. parts];
    }

    /// <summary>The part in the partition of the lock; -1: it has a part of its own.</summary>
    private int PlaceOf(Fence fence, IGrouping<int, WideWrite>[] groups) =>
        Array.FindIndex(groups, group => group.Key == InitialPartition.Of(fence.Resource, cluster.Config.Groups));

    private byte[] Prepare(Header header, PrepareFlags flags, WideWrite[] writes)
    {
        bool isAnchor = (flags & PrepareFlags.Anchor) != 0;
        ByteBuffer body = ByteBuffer.Rent();
        PrepareBody.WriteHeader(
            body,
            header.Id,
            header.TimeoutMs,
            flags,
            Encoding.UTF8.GetBytes(header.AnchorKey),
            isAnchor ? header.Participants.Length : 0);
        foreach (string participant in isAnchor ? header.Participants : [])
        {
            PrepareBody.WriteParticipant(body, Durability.Persistent, Encoding.UTF8.GetBytes(participant));
        }

        TransactionBody.WriteHeader(body, writes.Length, writes.Length, 0);
        foreach (WideWrite write in writes)
        {
            Command condition = new()
            {
                Kind = CommandKind.Exists,
                Durability = Durability.Persistent,
                Flags = write.Revision == 0 ? CommandFlags.IfAbsent : CommandFlags.IfRevision,
                Key = Encoding.UTF8.GetBytes(write.Key),
                ComparedRevision = write.Revision,
            };
            CommandList.Append(body, in condition);
        }

        foreach (WideWrite write in writes)
        {
            Command set = new()
            {
                Kind = CommandKind.Set,
                Durability = Durability.Persistent,
                Key = Encoding.UTF8.GetBytes(write.Key),
                Value = Encoding.UTF8.GetBytes(write.Value),
            };
            CommandList.Append(body, in set);
        }

        byte[] value = body.Written.ToArray();
        body.Return();
        return Encode(
            CommandKind.TransactionPrepare, writes.Length > 0 ? writes[0].Key : header.AnchorKey, value);
    }

    private byte[] Decide(
        TransactionId id, string anchorKey, TransactionDecision decision, Fence? fence = null) => Encode(
        CommandKind.TransactionDecide,
        anchorKey,
        IdBytes(id),
        decision,
        decision == TransactionDecision.Abort ? null : fence);

    private byte[] Finish(TransactionId id, string key, TransactionDecision decision) =>
        Encode(CommandKind.TransactionFinish, key, IdBytes(id), decision);

    /// <summary>Half of the commands have a number: those are sent again when their end is not known.</summary>
    private byte[] Encode(
        CommandKind kind,
        string key,
        byte[] value,
        TransactionDecision decision = TransactionDecision.Pending,
        Fence? fence = null)
    {
        bool isNumbered = random.Chance(0.5);
        Command command = new()
        {
            Kind = kind,
            Durability = Durability.Persistent,
            Flags = (decision == TransactionDecision.Pending ? CommandFlags.None : CommandFlags.Number)
                | (isNumbered ? CommandFlags.Session | CommandFlags.Opening : CommandFlags.None)
                | (fence is null ? CommandFlags.None : CommandFlags.Fenced),
            Key = Encoding.UTF8.GetBytes(key),
            Value = value,
            Number = (long)decision,
            SessionId = isNumbered ? cluster.Clients.NewSessionId() : 0,
            Sequence = isNumbered ? 1UL : 0,
            FenceName = fence is { } held ? Encoding.UTF8.GetBytes(held.Resource) : default,
            FenceToken = fence?.Token.Value ?? 0,
        };
        ByteBuffer buffer = ByteBuffer.Rent(command.EncodedBytes);
        command.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    private static byte[] IdBytes(TransactionId id)
    {
        byte[] bytes = new byte[TransactionId.Bytes];
        id.Write(bytes);
        return bytes;
    }

    private Task<byte[]> SendAsync(byte[] command) =>
        forwarder.ForwardAsync(command, mayHaveHappened: false, s_limit, CancellationToken.None);

    /// <summary>At least one, and not all where there are several.</summary>
    private Part[] Some(Part[] parts)
    {
        Part[] mixed = [.. parts];
        random.Shuffle(mixed);
        return mixed[..Math.Max(1, random.Next(mixed.Length))];
    }

    private async Task MayPauseAsync()
    {
        if (random.Chance(0.15))
        {
            await cluster.PauseAsync(random.Between(100, PauseMsMax));
        }
    }

    private sealed record Header(TransactionId Id, uint TimeoutMs, string AnchorKey, string[] Participants);

    /// <summary>What one partition is asked for.</summary>
    private sealed record Part(string Key, string AnchorKey, bool IsAnchor, byte[] Prepare);
}

/// <summary>A key is to get a value, if it has this revision; 0: if it does not exist. Immutable.</summary>
internal readonly record struct WideWrite(string Key, long Revision, string Value);
