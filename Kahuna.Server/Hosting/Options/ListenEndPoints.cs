using System.Net;
using System.Net.Sockets;

namespace Kahuna.Server.Hosting.Options;

/// <summary>Converts a <c>--listen</c> address to the end points to bind. Stateless; resolves names.</summary>
internal static class ListenEndPoints
{
    private static readonly IPAddress[] s_loopbacks = [IPAddress.Loopback, IPAddress.IPv6Loopback];

    /// <summary>
    /// The end points of an address: an IP address itself, the available loopback addresses for localhost, or what
    /// another name resolves to.
    /// </summary>
    /// <exception cref="SocketException">The name cannot be resolved.</exception>
    public static IReadOnlyList<IPEndPoint> Of(Uri listen) => Of(listen, IsHere);

    /// <param name="listen">The address.</param>
    /// <param name="isHere">Whether this machine has an address.</param>
    public static IReadOnlyList<IPEndPoint> Of(Uri listen, Func<IPAddress, bool> isHere)
    {
        if (IPAddress.TryParse(listen.IdnHost, out IPAddress? address))
        {
            // All interfaces of the available kinds: a machine may have no IPv6.
            return
            [
                new IPEndPoint(
                    address.Equals(IPAddress.IPv6Any) && !Socket.OSSupportsIPv6 ? IPAddress.Any : address, listen.Port),
            ];
        }

        if (listen.IsLoopback)
        {
            // A system with IPv6 may still lack the loopback address; containers often disable it. With neither,
            // binding reports the error.
            IPAddress[] here = [.. s_loopbacks.Where(isHere)];
            return
            [
                .. (here.Length > 0 ? here : s_loopbacks).Select(loopback => new IPEndPoint(loopback, listen.Port)),
            ];
        }

        return [.. Dns.GetHostAddresses(listen.IdnHost).Select(found => new IPEndPoint(found, listen.Port))];
    }

    /// <summary>Whether an address can be bound, on any port.</summary>
    internal static bool IsHere(IPAddress address)
    {
        try
        {
            using Socket socket = new(address.AddressFamily, SocketType.Stream, ProtocolType.Tcp);
            socket.Bind(new IPEndPoint(address, 0));
            return true;
        }
        catch (SocketException)
        {
            return false;
        }
    }
}
