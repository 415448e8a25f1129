using Grpc.Core;
using Kahuna.Server.Access;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.RateLimits;
using Kahuna.Server.Api.Watches;
using Kahuna.Server.Cluster;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Protos;
using Kahuna.Wire.Sockets;
using Microsoft.AspNetCore.Http.Features;

namespace Kahuna.Server.Api;

/// <summary>The cluster service: describes members and leaders, and serves framed streams. Any thread.</summary>
/// <param name="view">The cluster as this node knows it.</param>
/// <param name="admission">Accepts the requests of streams.</param>
/// <param name="credential">Identifies streams of other nodes.</param>
/// <param name="stop">Cancelled when the node stops.</param>
/// <param name="watches">The node's watches; null: it serves none.</param>
/// <param name="links">Carry the frames of streams whose clients want it; null: none.</param>
internal sealed class ClusterService(
    ClusterView view,
    RequestAdmission admission,
    NodeCredential credential,
    CancellationToken stop,
    WatchHub? watches = null,
    LinkOffers? links = null)
    : Protos.Cluster.ClusterBase
{
    public override Task<DescribeClusterResponse> DescribeCluster(
        DescribeClusterRequest request, ServerCallContext context) =>
        Task.FromResult(view.Describe());

    /// <summary>
    /// Sends the description at once and after each change. Changes that are faster than the caller's reads are merged.
    /// </summary>
    public override async Task WatchCluster(
        DescribeClusterRequest request,
        IServerStreamWriter<DescribeClusterResponse> responseStream,
        ServerCallContext context)
    {
        // Not disposed: a notification that is in progress may arrive after the watch has ended, on the thread of a
        // turn.
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
                    // A concurrent change has already woken the writer.
                }
            }
        });
        while (!context.CancellationToken.IsCancellationRequested)
        {
            await changed.WaitAsync(context.CancellationToken).ConfigureAwait(false);
            await responseStream.WriteAsync(view.Describe()).ConfigureAwait(false);
        }
    }

    /// <summary>
    /// Serves a stream of frames, as raw bytes. Streams of other nodes are not rate-limited here: the node that
    /// received those requests has applied the limits of their callers.
    /// </summary>
    public override Task Exchange(
        IAsyncStreamReader<Frame> requestStream, IServerStreamWriter<Frame> responseStream, ServerCallContext context)
    {
        IFeatureCollection features = context.GetHttpContext().Features;
        ConnectionRateLimiter? rateLimiter =
            credential.IsNode(context.Header(NodeCredential.Header), features.Get<ShownCertificate>())
                ? null
                : features.Get<ConnectionRateLimiter>();
        Caller? caller = features.Get<Caller>();
        LinkOffers? offered = context.Header(DirectLinkProtocol.Header) == DirectLinkProtocol.Wanted ? links : null;
        return new ExchangeStream(admission, new RawStream(context), rateLimiter, stop, caller, offered).RunAsync();
    }

    /// <summary>Serves a stream of watches, as raw bytes.</summary>
    public override Task Watch(
        IAsyncStreamReader<Frame> requestStream,
        IServerStreamWriter<Frame> responseStream,
        ServerCallContext context)
    {
        WatchAccess? access = admission.Gate is { } gate
            ? new WatchAccess(gate, context.GetHttpContext().Features.Get<Caller>()) : null;
        return watches is null
            ? base.Watch(requestStream, responseStream, context)
            : new WatchStream(watches, new RawStream(context), () => view.Slots.Version, stop, access).RunAsync();
    }
}
