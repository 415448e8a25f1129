namespace Kahuna.Server.Api.Openings;

/// <summary>The size of a token bucket and the tokens that it gains per second. A value.</summary>
internal readonly record struct OpeningRate(int Burst, int PerSecond);
