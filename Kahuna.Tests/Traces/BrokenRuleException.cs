namespace Kahuna.Tests.Traces;

/// <summary>The traces show that a rule does not hold.</summary>
internal sealed class BrokenRuleException(string rule, string words, IReadOnlyList<TracePlace> places)
    : Exception($"{rule}: {words}")
{
    public string Rule => rule;

    public string Words => words;

    /// <summary>The lines that show it, the latest last.</summary>
    public IReadOnlyList<TracePlace> Places => places;
}
