namespace Kahuna.Tests.Linearizability;

/// <summary>
/// Answers of one key that no order explains, whatever all the other operations did: each of those may have taken
/// effect at any time from its call on, or never. None of <paramref name="Operations"/> can be missed. Immutable.
/// </summary>
/// <param name="Operations">In the order of their calls.</param>
/// <param name="LeftOut">How many other operations of the key there are, without those that surely did not
/// happen.</param>
/// <param name="IsMinimal">False when there was not enough time to find out whether more could be left out.</param>
internal sealed record Contradiction(IReadOnlyList<HistoryOperation> Operations, int LeftOut, bool IsMinimal)
{
    /// <summary>The rule that they break, in words; null where it is that of a register or a sequence.</summary>
    public string? Rule { get; init; }
}
