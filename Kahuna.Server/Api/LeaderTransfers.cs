using System.Globalization;
using Google.Protobuf;
using Grpc.Core;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Api.RateLimits;
using Kahuna.Server.Cluster;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Protos;

namespace Kahuna.Server.Api;

/// <summary>
/// Moves leaderships for administrators: on the node that leads, or by passing the call on to it. Owned by the node;
/// any thread.
/// </summary>
/// <param name="view">The cluster as this node knows it.</param>
/// <param name="move">Asks a group of this node; false: the node stops.</param>
/// <param name="call">Makes a call to another node, as this node.</param>
/// <param name="time">The clock.</param>
internal sealed class LeaderTransfers(
    ClusterView view,
    Func<LeaderMove, bool> move,
    Func<Uri, string, byte[], CancellationToken, Task<NodeAnswer>> call,
    TimeProvider time)
{
    /// <summary>
    /// Transfers that a node begins: all groups of a node with 32 partitions at once, and then a few per second. Each
    /// refuses the writes of its group for some milliseconds, and for an election timeout at worst.
    /// </summary>
    internal static readonly RateLimit Limit = new(Burst: 64, PerSecond: 8);

    /// <summary>
    /// Some election timeouts: the group answers within one, and the next leader is known a heartbeat later.
    /// </summary>
    private static readonly TimeSpan s_patience = TimeSpan.FromSeconds(10);

    private const string Path = "/kahuna.v1.Admin/TransferLeadership";
    private const string OrAnother = "Try again later, or name another node.";

    private readonly Lock _lock = new();
    private readonly TokenBucket _begun = new(Limit, time.Now());

    /// <summary>What is asked for, for the audit log.</summary>
    public static string SubjectOf(TransferLeadershipRequest request) => string.Create(
        CultureInfo.InvariantCulture,
        $"{KindOf(request.Group)} {request.Partition} "
            + $"{(request.From == 0 ? "" : $"from node {request.From} ")}"
            + $"to {(request.Preferred ? "the preferred node" : request.To == 0 ? "any node" : $"node {request.To}")}");

    /// <summary>Moves the leadership of a group, and returns when another node leads it.</summary>
    /// <param name="request">The group and the node.</param>
    /// <param name="isPassedOn">Another node has passed the call on: it is not passed on again.</param>
    /// <param name="ct">Ends the wait; the transfer goes on.</param>
    /// <exception cref="RpcException">See admin.proto.</exception>
    public async Task<TransferLeadershipResponse> RunAsync(
        TransferLeadershipRequest request, bool isPassedOn, CancellationToken ct)
    {
        GroupId group = GroupOf(request);
        Check(request);
        PartitionStatus status = view.Status(view.Layout.IndexOf(group));
        NodeId leader = status.Leader;
        if (leader.IsNone)
        {
            throw Refusal(StatusCode.Unavailable, $"{group.Title} has no leader at the moment. Try again.");
        }

        if (leader.Value == request.To || (request.From != 0 && leader.Value != request.From))
        {
            return new TransferLeadershipResponse { Leader = leader.Value, Previous = leader.Value };
        }

        if (leader != view.Identity.Self)
        {
            return isPassedOn
                ? throw NotLeading(group)
                : await PassOnAsync(leader, request, ct).ConfigureAwait(false);
        }

        Begin(group);
        LeaderMove asked = new(group) { To = new NodeId((ushort)request.To), ToPreferred = request.Preferred };
        return move(asked)
            ? await EndAsync(asked, ct).ConfigureAwait(false)
            : throw Refusal(StatusCode.Unavailable, "The node is stopping, and hands over its leaderships by itself.");
    }

    private async Task<TransferLeadershipResponse> EndAsync(LeaderMove asked, CancellationToken ct)
    {
        using CancellationTokenSource patience = new(s_patience, time);
        using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(patience.Token, ct);
        uint self = view.Identity.Self.Value;
        try
        {
            MoveResult result = await asked.Answered.WaitAsync(limit.Token).ConfigureAwait(false);
            if (result == MoveResult.Leads)
            {
                return new TransferLeadershipResponse { Leader = self, Previous = self };
            }

            NodeId next = result == MoveResult.Left
                ? await NextLeaderAsync(asked, limit.Token).ConfigureAwait(false)
                : throw Refusal(asked, result);
            return next != view.Identity.Self
                ? new TransferLeadershipResponse { Moved = true, Leader = next.Value, Previous = self }
                : throw Refusal(
                    StatusCode.Aborted,
                    $"{asked.Group.Title} has elected node {self} again. Nothing was lost; try again.");
        }
        catch (OperationCanceledException) when (!ct.IsCancellationRequested)
        {
            throw OutcomeErrors.Build(
                StatusCode.DeadlineExceeded,
                $"It is not known yet which node leads {asked.Group.Name}: leadership was to move to node "
                    + $"{asked.Target}. Look at the partitions.",
                OutcomeErrors.Unknown);
        }
    }

    /// <summary>The leader of a later term than the one in which the move was asked for.</summary>
    private async Task<NodeId> NextLeaderAsync(LeaderMove asked, CancellationToken ct)
    {
        TaskCompletionSource changed = new(TaskCreationOptions.RunContinuationsAsynchronously);
        using IDisposable watch = view.Watch(() => Volatile.Read(ref changed).TrySetResult());
        int index = view.Layout.IndexOf(asked.Group);
        while (true)
        {
            PartitionStatus status = view.Status(index);
            if (status.Term > asked.Term && !status.Leader.IsNone)
            {
                return status.Leader;
            }

            await Volatile.Read(ref changed).Task.WaitAsync(ct).ConfigureAwait(false);
            Volatile.Write(ref changed, new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously));
        }
    }

    private async Task<TransferLeadershipResponse> PassOnAsync(
        NodeId leader, TransferLeadershipRequest request, CancellationToken ct)
    {
        using CancellationTokenSource patience = new(s_patience + s_patience, time);
        using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(patience.Token, ct);
        Uri node = view.Identity.Nodes.Single(member => member.Id == leader).Endpoint;
        try
        {
            NodeAnswer answer = await call(node, Path, request.ToByteArray(), limit.Token).ConfigureAwait(false);
            return answer.Code == StatusCode.OK
                ? TransferLeadershipResponse.Parser.ParseFrom(answer.Message)
                : throw OutcomeErrors.Build(
                    answer.Code,
                    answer.Sentence,
                    answer.DidNotHappen ? OutcomeErrors.DidNotHappen : OutcomeErrors.Unknown);
        }
        catch (NoAnswerException lost)
        {
            if (lost.WasSent)
            {
                throw Lost(leader);
            }

            throw Refusal(
                StatusCode.Unavailable,
                $"Node {leader}, which leads, cannot be reached from node {view.Identity.Self}; nothing was changed.");
        }
        catch (OperationCanceledException) when (!ct.IsCancellationRequested)
        {
            throw Lost(leader);
        }
    }

    /// <summary>Counts a transfer that begins here.</summary>
    private void Begin(GroupId group)
    {
        lock (_lock)
        {
            if (!_begun.TryTake(time.Now()))
            {
                throw Refusal(
                    StatusCode.ResourceExhausted,
                    $"Node {view.Identity.Self} begins at most {Limit.PerSecond} transfers per second; that of "
                        + $"{group.Name} has not begun. Try again in a second.");
            }
        }
    }

    private GroupId GroupOf(TransferLeadershipRequest request)
    {
        int partitions = view.Partitions;
        return request.Group switch
        {
            LedGroup.Meta when request.Partition == 0 => GroupId.Meta,
            LedGroup.Meta => throw Invalid("The meta group serves no partition; leave the partition at 0."),
            not (LedGroup.Persistent or LedGroup.Ephemeral) => throw Invalid(
                $"{(int)request.Group} is not a group that this version knows."),
            _ when request.Partition >= partitions => throw Invalid(
                $"There is no partition {request.Partition}; the partitions are 0 to {partitions - 1}."),
            _ => GroupId.Of((int)request.Partition, request.Group == LedGroup.Ephemeral),
        };
    }

    private void Check(TransferLeadershipRequest request)
    {
        if (request.To != 0 && (request.Preferred || request.To == request.From))
        {
            throw Invalid("The node to move to contradicts the rest of the request.");
        }

        foreach (uint node in (ReadOnlySpan<uint>)[request.To, request.From])
        {
            if (node != 0 && !view.Identity.Nodes.Any(member => member.Id.Value == node))
            {
                string members = string.Join(", ", view.Identity.Nodes.Select(static member => member.Id));
                throw Invalid($"Node {node} is not a member; the nodes are {members}.");
            }
        }
    }

    private RpcException Refusal(LeaderMove asked, MoveResult result)
    {
        string name = asked.Group.Name;
        string target = $"Node {asked.Target}";
        string unchanged = $"node {view.Identity.Self} goes on leading {name}";
        return result switch
        {
            MoveResult.NotLeader => NotLeading(asked.Group),
            MoveResult.Busy => Refusal(
                StatusCode.Aborted,
                $"Leadership of {name} is being moved already, or has only just moved. Nothing was done; try again."),
            MoveResult.Draining => Refusal(
                StatusCode.Unavailable, "The node is stopping, and hands over its leaderships by itself."),
            MoveResult.Stopped => Refusal(
                StatusCode.FailedPrecondition,
                $"{asked.Group.Title} has stopped on an internal error on node {view.Identity.Self}; see its log."),
            MoveResult.NoSuccessor => Refusal(
                StatusCode.FailedPrecondition,
                $"No other node can lead {name} now; {unchanged}. Try again when another node is ready."),
            MoveResult.NoVoter => Refusal(
                StatusCode.FailedPrecondition,
                $"{target} does not vote, so that it cannot lead; {unchanged}. Name another node."),
            MoveResult.Behind => Refusal(
                StatusCode.FailedPrecondition,
                $"{target} is so far behind that it needs a snapshot of {name} first; {unchanged}. It gets one by "
                    + $"itself. {OrAnother}"),
            MoveResult.Stalled => Refusal(
                StatusCode.FailedPrecondition,
                $"The disk of node {asked.Target} stands still; {unchanged}. {OrAnother}"),
            MoveResult.Paused => Refusal(
                StatusCode.FailedPrecondition,
                $"{target} stood still a moment ago and may do so again; {unchanged}. {OrAnother}"),
            MoveResult.Silent => Refusal(
                StatusCode.FailedPrecondition,
                $"{target} does not answer; {unchanged}. Start it, or name another node."),
            _ => Refusal(
                StatusCode.Aborted,
                $"{target} did not take the leadership of {name} within an election timeout; {unchanged}. {OrAnother}"),
        };
    }

    private RpcException NotLeading(GroupId group) => Refusal(
        StatusCode.Unavailable,
        $"Node {view.Identity.Self} does not lead {group.Name} now, and nothing was changed. Try again.");

    private static RpcException Lost(NodeId leader) => OutcomeErrors.Build(
        StatusCode.DeadlineExceeded,
        $"Node {leader}, which led, has not answered; whether leadership has moved is not known. Look at the "
            + "partitions.",
        OutcomeErrors.Unknown);

    private static RpcException Invalid(string sentence) => Refusal(StatusCode.InvalidArgument, sentence);

    private static RpcException Refusal(StatusCode code, string sentence) =>
        OutcomeErrors.Build(code, sentence, OutcomeErrors.DidNotHappen);

    private static string KindOf(LedGroup group) => group switch
    {
        LedGroup.Persistent => "partition",
        LedGroup.Ephemeral => "ephemeral partition",
        LedGroup.Meta => "meta group",
        _ => "unknown group",
    };
}
