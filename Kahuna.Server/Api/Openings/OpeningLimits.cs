namespace Kahuna.Server.Api.Openings;

/// <summary>
/// Rates at which sessions and idempotency keys may be begun. A partition remembers a million of each and may forget none
/// that is younger than a command's life (six minutes), so a client without a bound would keep all others out. In six
/// minutes one address gets less than half of them. Stateless.
/// </summary>
internal static class OpeningLimits
{
    /// <summary>An SDK client begins one session per stream, and one more for each 4,096 writes under way; the rest is for proxies, which put many callers on one connection.</summary>
    public static readonly OpeningRate SessionsOfConnection = new(256, 10);

    /// <summary>As many clients as a node has connections may start at one address at the same time; 52,384 in six minutes, a twentieth of the quota.</summary>
    public static readonly OpeningRate SessionsOfAddress = new(16_384, 100);

    /// <summary>A gateway whose every request has a key: a third of what one partition can remember in the long run, which is 2,777 per second.</summary>
    public static readonly OpeningRate KeysOfConnection = new(10_000, 1_000);

    /// <summary>470,000 in six minutes, less than half of the quota, also when all of them are for one partition.</summary>
    public static readonly OpeningRate KeysOfAddress = new(20_000, 1_250);

    /// <summary>
    /// Sessions that a connection remembers as begun; their further calls need no token. They take up 30 KB at most.
    /// </summary>
    public const int KnownSessionsMax = 1024;

    /// <summary>Addresses below which those that owe nothing are not looked for.</summary>
    public const int AddressesMin = 1024;
}
