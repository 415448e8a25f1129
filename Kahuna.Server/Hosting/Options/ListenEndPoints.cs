using System.Net;
using System.Net.Sockets;

namespace Kahuna.Server.Hosting.Options;

/// <summary>Turns a <c>--listen</c> address into the end points to bind. Stateless; asks the resolver for names.</summary>
internal static class ListenEndPoints
{
    private static readonly IPAddress[] s_loopbacks = [IPAddress.Loopback, IPAddress.IPv6Loopback];

    /// <summary>The end points of an address: itself for an IP address, the loopbacks that there are for localhost, what the resolver says for another name.</summary>
    /// <exception cref="SocketException">The name is not known.</exception>
    public static IReadOnlyList<IPEndPoint> Of(Uri listen) => Of(listen, IsHere);

    /// <param name="listen">The address.</param>
    /// <param name="isHere">Whether this machine has an address of its own.</param>
    public static IReadOnlyList<IPEndPoint> Of(Uri listen, Func<IPAddress, bool> isHere)
    {
        if (IPAddress.TryParse(listen.IdnHost, out IPAddress? address))
        {
            // All interfaces means those that there are: a machine may have no IPv6.
            return [new IPEndPoint(address.Equals(IPAddress.IPv6Any) && !Socket.OSSupportsIPv6 ? IPAddress.Any : address, listen.Port)];
        }

        if (listen.IsLoopback)
        {
            // A system that knows IPv6 need not have the address: in containers it is often switched off. With neither, binding says what is wrong.
            IPAddress[] here = [.. s_loopbacks.Where(isHere)];
            return [.. (here.Length > 0 ? here : s_loopbacks).Select(loopback => new IPEndPoint(loopback, listen.Port))];
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
