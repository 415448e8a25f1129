namespace Kahuna.Tests.Simulation.Rules;

/// <summary>A run has shown that something promised does not hold.</summary>
internal sealed class RuleBrokenException(string rule, string words) : Exception($"{rule}: {words}")
{
    /// <summary>The rule's name, by which tables and reports call it.</summary>
    public string Rule => rule;
}
