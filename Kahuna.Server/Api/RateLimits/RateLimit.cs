namespace Kahuna.Server.Api.RateLimits;

/// <summary>The parameters of a token bucket: its capacity and the tokens added per second. A value.</summary>
internal readonly record struct RateLimit(int Burst, int PerSecond);
