namespace Kahuna.Tests.Tools;

/// <summary>The sets that are made beside watches. Immutable.</summary>
/// <param name="Workers">Callers, each with one set at a time.</param>
/// <param name="Seconds">How long.</param>
internal readonly record struct WatchLoad(int Workers, double Seconds);
