using System.Net;
using Kahuna.Server.Hosting.Options;

namespace Kahuna.Server.Hosting;

/// <summary>Logs the addresses of a started node. Stateless.</summary>
internal static class StartReport
{
    /// <summary>Logs the bound end points, and warns of addresses that are too open or unreachable.</summary>
    public static void Write(NodeOptions options, ILogger log)
    {
        IPEndPoint[] endPoints = [.. options.Listen.SelectMany(ListenEndPoints.Of).Distinct()];
        string listen = string.Join(", ", endPoints.Select(static endPoint => endPoint.ToString()));
        log.Started(
            options.NodeId, options.ClusterId, options.Advertise, listen, options.DataDirectory, options.Partitions);
        if (!endPoints.All(static endPoint => IPAddress.IsLoopback(endPoint.Address)))
        {
            if (options.Access.Mode == AuthMode.None)
            {
                log.OpenToTheNetwork(listen);
            }
        }
        else if (!options.Advertise.IsLoopback)
        {
            // The name may resolve to a loopback address, or to a proxy on this machine.
            log.ClosedToTheNetwork(listen, options.Advertise);
        }
    }
}
