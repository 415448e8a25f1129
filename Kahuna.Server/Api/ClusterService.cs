using Grpc.Core;
using Kahuna.Client.Wire.Protos;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Openings;
using Kahuna.Server.Cluster;

namespace Kahuna.Server.Api;

/// <summary>Tells callers of the cluster's members and leaders, and serves their streams. Any thread.</summary>
/// <param name="view">What is known of the cluster.</param>
/// <param name="door">Takes what streams bring.</param>
/// <param name="pass">By which streams of other nodes are known.</param>
/// <param name="stop">The node stops.</param>
internal sealed class ClusterService(ClusterView view, RequestDoor door, NodePass pass, CancellationToken stop) : Protos.Cluster.ClusterBase
{
    public override Task<DescribeClusterResponse> DescribeCluster(DescribeClusterRequest request, ServerCallContext context) =>
        Task.FromResult(view.Describe());

    /// <summary>Sends the description at once and after each change; changes that come faster than the caller reads are sent as one.</summary>
    public override async Task WatchCluster(DescribeClusterRequest request, IServerStreamWriter<DescribeClusterResponse> responseStream, ServerCallContext context)
    {
        // Not disposed: a change that is being told at this moment may come after the watch has ended, on the thread of a turn.
        SemaphoreSlim changed = new(1, 1);
        using IDisposable watch = view.Watch(() =>
        {
            if (changed.CurrentCount == 0)
            {
                try
                {
                    changed.Release();
                }
                catch (SemaphoreFullException)
                {
                    // Another change has already woken the writer.
                }
            }
        });
        while (!context.CancellationToken.IsCancellationRequested)
        {
            await changed.WaitAsync(context.CancellationToken).ConfigureAwait(false);
            await responseStream.WriteAsync(view.Describe()).ConfigureAwait(false);
        }
    }

    /// <summary>A stream of frames, read and written as bytes. What another node's brings has passed that node's door, where it was counted for those who sent it.</summary>
    public override Task Exchange(IAsyncStreamReader<Frame> requestStream, IServerStreamWriter<Frame> responseStream, ServerCallContext context)
    {
        ConnectionOpenings? openings = pass.Fits(context.Header(NodePass.Header)) ? null : context.GetHttpContext().Features.Get<ConnectionOpenings>();
        return new ExchangeStream(door, new RawStream(context), openings, stop).RunAsync();
    }
}
