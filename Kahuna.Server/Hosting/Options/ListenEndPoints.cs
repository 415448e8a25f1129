using System.Net;
using System.Net.Sockets;

namespace Kahuna.Server.Hosting.Options;

/// <summary>Turns a <c>--listen</c> address into the end points to bind. Stateless; asks the resolver for names.</summary>
internal static class ListenEndPoints
{
    /// <summary>The end points of an address: itself for an IP address, both loopbacks for localhost, what the resolver says for another name.</summary>
    /// <exception cref="SocketException">The name is not known.</exception>
    public static IReadOnlyList<IPEndPoint> Of(Uri listen)
    {
        if (IPAddress.TryParse(listen.IdnHost, out IPAddress? address))
        {
            // All interfaces means those that there are: a machine may have no IPv6.
            return [new IPEndPoint(address.Equals(IPAddress.IPv6Any) && !Socket.OSSupportsIPv6 ? IPAddress.Any : address, listen.Port)];
        }

        if (listen.IsLoopback)
        {
            return Socket.OSSupportsIPv6
                ? [new IPEndPoint(IPAddress.Loopback, listen.Port), new IPEndPoint(IPAddress.IPv6Loopback, listen.Port)]
                : [new IPEndPoint(IPAddress.Loopback, listen.Port)];
        }

        return [.. Dns.GetHostAddresses(listen.IdnHost).Select(found => new IPEndPoint(found, listen.Port))];
    }
}
