namespace Kahuna.Tests.Linearizability;

/// <summary>What the search found for one key. Immutable.</summary>
/// <param name="Key">The key.</param>
/// <param name="Verdict">How it ended.</param>
/// <param name="States">States that were visited; the measure of the work.</param>
/// <param name="Contradiction">For a key that is not linearizable, unless there was no time for it.</param>
internal sealed record KeyVerdict(string Key, Verdict Verdict, int States, Contradiction? Contradiction);
