namespace Kahuna.Server.Api.RateLimits;

/// <summary>
/// The rate limits for new sessions and idempotency keys. A partition remembers a million of each and must keep all
/// that are younger than a command's life (six minutes), so an unlimited client could exclude all others. In six
/// minutes one address gets less than half of the quota. Stateless.
/// </summary>
internal static class SessionRateLimits
{
    /// <summary>
    /// An SDK client opens one session per stream, and another for each 4,096 writes in flight. The rest is for
    /// proxies, which put many callers on one connection.
    /// </summary>
    public static readonly RateLimit SessionsOfConnection = new(256, 10);

    /// <summary>
    /// As many clients as a node accepts connections can start at one address at once; 52,384 sessions in six minutes,
    /// a twentieth of the quota.
    /// </summary>
    public static readonly RateLimit SessionsOfAddress = new(16_384, 100);

    /// <summary>
    /// For a gateway that sends a key with every request: a third of the 2,777 per second that one partition sustains.
    /// </summary>
    public static readonly RateLimit KeysOfConnection = new(10_000, 1_000);

    /// <summary>470,000 keys in six minutes, less than half of the quota even if all belong to one partition.</summary>
    public static readonly RateLimit KeysOfAddress = new(20_000, 1_250);

    /// <summary>
    /// Sessions that a connection remembers as opened; their further calls take no token. At most 30 KB.
    /// </summary>
    public const int KnownSessionsMax = 1024;

    /// <summary>Full buckets are not searched for below this number of addresses.</summary>
    public const int AddressesMin = 1024;
}
