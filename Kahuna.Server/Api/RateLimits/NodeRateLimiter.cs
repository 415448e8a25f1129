using System.Net;
using System.Net.Sockets;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Microsoft.AspNetCore.Connections;

namespace Kahuna.Server.Api.RateLimits;

/// <summary>
/// Token buckets per client address for new sessions and idempotency keys, so that no address can use up the quota of a
/// partition. Owned by the node; any thread.
/// </summary>
/// <param name="time">The clock.</param>
internal sealed class NodeRateLimiter(TimeProvider time)
{
    /// <summary>Bytes of an IPv6 prefix, which usually belongs to one host.</summary>
    private const int PrefixBytes = 8;

    private readonly Lock _lock = new();
    private readonly Dictionary<IPAddress, (TokenBucket Sessions, TokenBucket Keys)> _addresses = [];
    private int _cleanupAt = SessionRateLimits.AddressesMin;

    /// <summary>This node's monotonic time.</summary>
    public NodeTime Now => time.Now();

    /// <summary>Number of addresses with buckets, which includes every address whose buckets are not full.</summary>
    public int Addresses
    {
        get
        {
            lock (_lock)
            {
                return _addresses.Count;
            }
        }
    }

    /// <summary>
    /// The middleware of an endpoint. It gives each connection its <see cref="ConnectionRateLimiter"/> as a feature.
    /// </summary>
    public ConnectionDelegate Middleware(ConnectionDelegate next) => connection =>
    {
        connection.Features.Set(ForConnection((connection.RemoteEndPoint as IPEndPoint)?.Address ?? IPAddress.None));
        return next(connection);
    };

    /// <summary>Creates the limiter of a new connection from this address.</summary>
    public ConnectionRateLimiter ForConnection(IPAddress address) => new(this, PrefixOf(address));

    /// <summary>Takes a token of an address; false if there is none.</summary>
    internal bool TryTake(IPAddress address, bool isKey, NodeTime now)
    {
        lock (_lock)
        {
            if (!_addresses.TryGetValue(address, out (TokenBucket Sessions, TokenBucket Keys) buckets))
            {
                RemoveIdle(now);
                buckets =
                    (
                        new TokenBucket(SessionRateLimits.SessionsOfAddress, now),
                        new TokenBucket(SessionRateLimits.KeysOfAddress, now));
                _addresses.Add(address, buckets);
            }

            return (isKey ? buckets.Keys : buckets.Sessions).TryTake(now);
        }
    }

    /// <summary>Removes addresses with full buckets, each time the number of addresses has doubled.</summary>
    private void RemoveIdle(NodeTime now)
    {
        if (_addresses.Count < _cleanupAt)
        {
            return;
        }

        foreach ((IPAddress address, (TokenBucket sessions, TokenBucket keys)) in _addresses)
        {
            if (sessions.IsFull(now) && keys.IsFull(now))
            {
                _addresses.Remove(address);
            }
        }

        _cleanupAt = Math.Max(SessionRateLimits.AddressesMin, 2 * _addresses.Count);
    }

    private static IPAddress PrefixOf(IPAddress address)
    {
        if (address.IsIPv4MappedToIPv6)
        {
            return address.MapToIPv4();
        }

        if (address.AddressFamily != AddressFamily.InterNetworkV6)
        {
            return address;
        }

        byte[] bytes = address.GetAddressBytes();
        bytes.AsSpan(PrefixBytes).Clear();
        return new IPAddress(bytes);
    }
}
