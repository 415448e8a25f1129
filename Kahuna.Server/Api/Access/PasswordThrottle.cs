using System.Net;
using System.Net.Sockets;
using Kahuna.Server.Access;
using Kahuna.Server.Api.RateLimits;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Api.Access;

/// <summary>
/// How often passwords may be tried: per user and per address. A password that was right gives its try back, so the
/// limits are about wrong ones. Any thread.
/// </summary>
/// <param name="time">The clock.</param>
internal sealed class PasswordThrottle(TimeProvider time)
{
    /// <summary>
    /// Ten at once is a person with a list of own passwords; five per second are 158 million in a year.
    /// </summary>
    public static readonly RateLimit OfUser = new(Burst: 10, PerSecond: 5);

    /// <summary>An address may be a gateway with many people behind it.</summary>
    public static readonly RateLimit OfAddress = new(Burst: 40, PerSecond: 20);

    /// <summary>Users, and addresses, whose tries are counted apart; about 1 MB.</summary>
    public const int TrackedMax = 4096;

    /// <summary>Longer names are no user's; they are counted as one.</summary>
    private const int UserCharactersMax = AccessRules.NameCharactersMax;

    /// <summary>Bytes of an IPv6 prefix, which usually belongs to one host.</summary>
    private const int PrefixBytes = 8;

    private readonly Lock _lock = new();
    private readonly BucketTable<string> _users = new(OfUser, TrackedMax);
    private readonly BucketTable<IPAddress> _addresses = new(OfAddress, TrackedMax);

    /// <summary>Users and addresses that are tracked now.</summary>
    public (int Users, int Addresses) Tracked
    {
        get
        {
            lock (_lock)
            {
                return (_users.Count, _addresses.Count);
            }
        }
    }

    /// <summary>Takes a try; false, and nothing taken from the user, if there is none.</summary>
    public bool TryTake(string user, IPAddress address)
    {
        NodeTime now = time.Now();
        lock (_lock)
        {
            return _addresses.Of(PrefixOf(address), now).TryTake(now) && _users.Of(NameOf(user), now).TryTake(now);
        }
    }

    /// <summary>The password was right: the try does not count.</summary>
    public void GiveBack(string user, IPAddress address)
    {
        NodeTime now = time.Now();
        lock (_lock)
        {
            _addresses.Of(PrefixOf(address), now).GiveBack();
            _users.Of(NameOf(user), now).GiveBack();
        }
    }

    private static string NameOf(string user) => user.Length <= UserCharactersMax ? user : "";

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

    /// <summary>
    /// Buckets by key. Full ones are forgotten when the table is full; if none is, what comes new shares one bucket.
    /// </summary>
    private sealed class BucketTable<TKey>(RateLimit rate, int max)
        where TKey : notnull
    {
        /// <summary>Milliseconds between two searches for full buckets, which look at all.</summary>
        private const long CleanupMs = 1000;

        private readonly Dictionary<TKey, TokenBucket> _buckets = [];
        private TokenBucket? _shared;
        private NodeTime _cleanupAt;

        public int Count => _buckets.Count;

        public TokenBucket Of(TKey key, NodeTime now)
        {
            if (_buckets.TryGetValue(key, out TokenBucket? bucket))
            {
                return bucket;
            }

            if (_buckets.Count >= max)
            {
                RemoveFull(now);
            }

            if (_buckets.Count >= max)
            {
                return _shared ??= new TokenBucket(rate, now);
            }

            bucket = new TokenBucket(rate, now);
            _buckets.Add(key, bucket);
            return bucket;
        }

        private void RemoveFull(NodeTime now)
        {
            if (now < _cleanupAt)
            {
                return;
            }

            _cleanupAt = now + CleanupMs;
            foreach ((TKey key, TokenBucket bucket) in _buckets)
            {
                if (bucket.IsFull(now))
                {
                    _buckets.Remove(key);
                }
            }
        }
    }
}
