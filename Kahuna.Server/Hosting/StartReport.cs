using System.Net;
using Kahuna.Server.Hosting.Options;

namespace Kahuna.Server.Hosting;

/// <summary>What a node says of its addresses when it has started. Stateless.</summary>
internal static class StartReport
{
    /// <summary>Writes the end points that are bound, and what an operator should know of them.</summary>
    public static void Tell(NodeOptions options, ILogger log)
    {
        IPEndPoint[] endPoints = [.. options.Listen.SelectMany(ListenEndPoints.Of).Distinct()];
        string listen = string.Join(", ", endPoints.Select(static endPoint => endPoint.ToString()));
        log.Started(options.NodeId, options.ClusterId, options.Advertise, listen, options.DataDirectory, options.Partitions);
        if (!endPoints.All(static endPoint => IPAddress.IsLoopback(endPoint.Address)))
        {
            log.OpenToTheNetwork(listen);
        }
        else if (!options.Advertise.IsLoopback)
        {
            // The name may stand for a loopback address, or for a proxy on this machine.
            log.ClosedToTheNetwork(listen, options.Advertise);
        }
    }
}
