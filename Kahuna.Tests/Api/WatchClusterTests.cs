using Kahuna.Server.Api;
using Kahuna.Server.Api.Protos;
using Kahuna.Server.Cluster;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Wire.Protos;

namespace Kahuna.Tests.Api;

/// <summary>
/// A change of leadership is told on the thread of a turn: a watch that ends at that moment must not harm it.
/// </summary>
public sealed class WatchClusterTests
{
    [Fact]
    public async Task A_change_that_is_told_while_a_watch_ends_does_not_throw()
    {
        ClusterView view = new(new ClusterIdentity("test", new NodeId(1), "1", 1, [(new NodeId(1), new Uri("https://127.0.0.1:1"))]), hasEphemeral: false);
        view.ReadCommitIndexFrom(static _ => 0);
        TaskCompletionSource ended = new(TaskCreationOptions.RunContinuationsAsynchronously);
        Action? whileTelling = null;

        // The first to hear of a change: what it does comes between the list of watchers and the call of the second.
        using IDisposable first = view.Watch(() => whileTelling?.Invoke());
        await using GrpcTestHost host = await GrpcTestHost.StartAsync(grpc => grpc.AddService(
            ClusterReflection.Descriptor.Services[0],
            service => service
            .ServerStreaming<DescribeClusterRequest, DescribeClusterResponse>(
                "WatchCluster", async (request, writer, context) =>
            {
                try
                {
                    await new ClusterService(view, null!, new NodeCredential(new()), default).WatchCluster(
                        request, writer, context);
                }
                finally
                {
                    ended.SetResult();
                }
            })));
        using CancellationTokenSource cancelled = new();
        IAsyncEnumerator<DescribeClusterResponse> watch = host.Channel
            .ServerStreamingAsync(
                "/kahuna.v1.Cluster/WatchCluster", new DescribeClusterRequest(), DescribeClusterResponse.Parser)
            .GetAsyncEnumerator(cancelled.Token);
        Assert.True(await watch.MoveNextAsync());
        Task<bool> next = watch.MoveNextAsync().AsTask();
        whileTelling = () =>
        {
            cancelled.Cancel();
            ended.Task.Wait(TimeSpan.FromSeconds(60));
        };
        ((ILeadershipSink)view).LeadershipChanged(
            0, new PartitionStatus(RaftRole.Leader, new NodeId(1), new Term(1), true, Epoch.None));
        Assert.True(ended.Task.IsCompleted);
        await Assert.ThrowsAnyAsync<Exception>(() => next);
    }
}
