namespace Kahuna.Tests.WatchStreams;

/// <summary>What is wrong with a recorded watch. Immutable.</summary>
/// <param name="Rule">The name of the rule that is violated.</param>
/// <param name="Sentence">What happened.</param>
/// <param name="Stream">The watch.</param>
internal sealed record WatchFinding(string Rule, string Sentence, WatchStream Stream)
{
    public override string ToString() => $"{Rule}: {Sentence}\n  {Stream}";
}
