namespace Kahuna.Tests.Tools;

/// <summary>What watches cost, in one round. Immutable.</summary>
/// <param name="RoundTrips">Milliseconds of each set at half of the greatest rate.</param>
/// <param name="Late">Milliseconds from the beginning of such a set until a watch delivered its change.</param>
/// <param name="Alone">Sets per second without watches.</param>
/// <param name="Beside">Sets per second beside watches.</param>
internal sealed record WatchFigures(
    IReadOnlyList<double> RoundTrips, IReadOnlyList<double> Late, double Alone, double Beside);
