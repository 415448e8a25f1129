using Google.Protobuf;
using Grpc.Core;
using Kahuna.Server.Api;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Cluster;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Tests.Client;
using Kahuna.Wire.Protos;

namespace Kahuna.Tests.Api;

/// <summary>What a node does with a transfer that it is asked for: begins it, passes it on, or says why not.</summary>
public sealed class LeaderTransfersTests
{
    private static readonly NodeId s_self = new(1);

    private readonly ManualTime _time = new();
    private readonly ClusterView _view = new(
        new ClusterIdentity(
            "c", s_self, "1", 1, [(s_self, new Uri("https://one")), (new NodeId(2), new Uri("https://two"))]),
        hasEphemeral: true);

    private readonly Queue<NodeAnswer?> _answers = new();
    private MoveResult? _result = MoveResult.NotTaken;
    private int _begun;

    [Fact]
    public async Task A_node_begins_some_transfers_per_second()
    {
        Led(by: 1, term: 1);
        LeaderTransfers transfers = Transfers();
        for (int i = 0; i < LeaderTransfers.Limit.Burst; i++)
        {
            await RefusedAsync(transfers, new(), StatusCode.Aborted, "did not take the leadership of partition 0");
        }

        await RefusedAsync(transfers, new(), StatusCode.ResourceExhausted, "Try again in a second");
        Assert.Equal(LeaderTransfers.Limit.Burst, _begun);
        _time.Advance(TimeSpan.FromSeconds(1));
        for (int i = 0; i < LeaderTransfers.Limit.PerSecond; i++)
        {
            await RefusedAsync(transfers, new(), StatusCode.Aborted, "goes on leading");
        }

        await RefusedAsync(transfers, new(), StatusCode.ResourceExhausted, "has not begun");
    }

    [Fact]
    public async Task The_answer_comes_when_another_node_leads_or_says_that_it_is_not_known()
    {
        Led(by: 1, term: 4);
        _result = MoveResult.Left;
        LeaderTransfers transfers = Transfers();
        Task<TransferLeadershipResponse> call = transfers.RunAsync(new() { To = 2 }, false, default);

        // The node has lost leadership, and its own view may lag behind that.
        Assert.False(call.IsCompleted);
        Led(by: 0, term: 5);
        Assert.False(call.IsCompleted);
        Led(by: 2, term: 5);
        TransferLeadershipResponse answer = await call.WaitAsync(Wait.Longest);
        Assert.Equal((true, 2u, 1u), (answer.Moved, answer.Leader, answer.Previous));

        Led(by: 1, term: 4);
        _result = null;
        call = transfers.RunAsync(new() { To = 2 }, false, default);
        _time.Advance(TimeSpan.FromSeconds(20));
        RpcException error = await Assert.ThrowsAsync<RpcException>(() => call.WaitAsync(Wait.Longest));
        Assert.Equal(StatusCode.DeadlineExceeded, error.StatusCode);
        Assert.Equal(OutcomeErrors.Unknown, error.Trailers.GetValue(OutcomeErrors.OutcomeTrailer));
    }

    [Fact]
    public async Task Another_leader_is_asked_once()
    {
        LeaderTransfers transfers = Transfers();
        await RefusedAsync(transfers, new(), StatusCode.Unavailable, "has no leader");
        Led(by: 2, term: 1);
        _answers.Enqueue(new NodeAnswer(
            StatusCode.OK,
            "",
            false,
            new TransferLeadershipResponse { Moved = true, Leader = 1 }.ToByteArray()));
        Assert.True((await transfers.RunAsync(new() { To = 1 }, false, default)).Moved);
        _answers.Enqueue(new NodeAnswer(StatusCode.Aborted, "No.", DidNotHappen: true, []));
        await RefusedAsync(transfers, new() { To = 1 }, StatusCode.Aborted, "No.");
        _answers.Enqueue(null);
        RpcException lost = await Assert.ThrowsAsync<RpcException>(
            () => transfers.RunAsync(new() { To = 1 }, false, default));
        Assert.Equal(OutcomeErrors.Unknown, lost.Trailers.GetValue(OutcomeErrors.OutcomeTrailer));

        // A call that another node has passed on goes no further, and what is so already needs no call.
        RpcException ended = await Assert.ThrowsAsync<RpcException>(
            () => transfers.RunAsync(new() { To = 1 }, true, default));
        Assert.Equal(StatusCode.Unavailable, ended.StatusCode);
        Assert.False((await transfers.RunAsync(new() { To = 2 }, false, default)).Moved);
        Assert.False((await transfers.RunAsync(new() { From = 1 }, false, default)).Moved);
        Assert.Empty(_answers);
        Assert.Equal(0, _begun);
    }

    private LeaderTransfers Transfers() => new(
        _view,
        move =>
        {
            _begun++;
            (move.Target, move.Term) = (new NodeId(2), new Term(4));
            if (_result is { } result)
            {
                move.Answer(result);
            }

            return true;
        },
        (_, _, _, _) => Task.FromResult(_answers.Dequeue() ?? throw new NoAnswerException(wasSent: true)),
        _time);

    private void Led(ushort by, ulong term) => ((ILeadershipSink)_view).LeadershipChanged(
        0,
        new PartitionStatus(
            by == 1 ? RaftRole.Leader : RaftRole.Follower, new NodeId(by), new Term(term), Serving: true, default));

    private static async Task RefusedAsync(
        LeaderTransfers transfers, TransferLeadershipRequest request, StatusCode code, string words)
    {
        RpcException error = await Assert.ThrowsAsync<RpcException>(
            () => transfers.RunAsync(request, isPassedOn: false, default));
        Assert.Equal(code, error.StatusCode);
        Assert.Contains(words, error.Status.Detail, StringComparison.Ordinal);
        Assert.Equal(OutcomeErrors.DidNotHappen, error.Trailers.GetValue(OutcomeErrors.OutcomeTrailer));
    }
}
