namespace Kahuna.Server.Api.Openings;

/// <summary>What a token bucket gives: so many at once, and afterwards so many per second. A value.</summary>
internal readonly record struct OpeningRate(int Burst, int PerSecond);
