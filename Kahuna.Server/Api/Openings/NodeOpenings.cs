using System.Net;
using System.Net.Sockets;
using Microsoft.AspNetCore.Connections;

namespace Kahuna.Server.Api.Openings;

/// <summary>
/// Token buckets for beginning sessions and idempotency keys, by client address, so that no address uses up what a
/// partition remembers. Owned by the node; any thread.
/// </summary>
/// <param name="time">The clock.</param>
internal sealed class NodeOpenings(TimeProvider time)
{
    /// <summary>An IPv6 host has the whole of such a prefix to itself.</summary>
    private const int PrefixBytes = 8;

    private readonly Lock _lock = new();
    private readonly Dictionary<IPAddress, (TokenBucket Sessions, TokenBucket Keys)> _addresses = [];
    private int _tidiesAt = OpeningLimits.AddressesMin;

    /// <summary>This node's monotonic time.</summary>
    public long NowMs => (long)(time.GetTimestamp() * 1000.0 / time.TimestampFrequency);

    /// <summary>Addresses that have begun something and have not got all of it back.</summary>
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

    /// <summary>The middleware of an endpoint that gives each connection its <see cref="ConnectionOpenings"/>, a feature of the connection.</summary>
    public ConnectionDelegate Counting(ConnectionDelegate next) => connection =>
    {
        connection.Features.Set(Of((connection.RemoteEndPoint as IPEndPoint)?.Address ?? IPAddress.None));
        return next(connection);
    };

    /// <summary>For a new connection from an address.</summary>
    public ConnectionOpenings Of(IPAddress address) => new(this, Shared(address));

    /// <summary>Takes a token of an address.</summary>
    internal bool TryTake(IPAddress address, bool isKey, long nowMs)
    {
        lock (_lock)
        {
            if (!_addresses.TryGetValue(address, out (TokenBucket Sessions, TokenBucket Keys) buckets))
            {
                Tidy(nowMs);
                buckets = (new TokenBucket(OpeningLimits.SessionsOfAddress, nowMs), new TokenBucket(OpeningLimits.KeysOfAddress, nowMs));
                _addresses.Add(address, buckets);
            }

            return (isKey ? buckets.Keys : buckets.Sessions).TryTake(nowMs);
        }
    }

    /// <summary>Drops addresses whose buckets are full, each time the number of addresses has doubled.</summary>
    private void Tidy(long nowMs)
    {
        if (_addresses.Count < _tidiesAt)
        {
            return;
        }

        foreach ((IPAddress address, (TokenBucket sessions, TokenBucket keys)) in _addresses)
        {
            if (sessions.IsFull(nowMs) && keys.IsFull(nowMs))
            {
                _addresses.Remove(address);
            }
        }

        _tidiesAt = Math.Max(OpeningLimits.AddressesMin, 2 * _addresses.Count);
    }

    private static IPAddress Shared(IPAddress address)
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
