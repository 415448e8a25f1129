namespace Kahuna.Tests.Linearizability;

/// <summary>
/// The states that a search has visited (Lowe, "Testing for linearizability", 2017): each is the set of answered
/// operations that took effect, one bit each, the set of those of unknown outcome, and the packed state of the key
/// after them. One that was reached with fewer of the unknown ones stands for all that needed these and more, because
/// what is left can be left out. Only so many are compared in this way, because each is compared with each. Owned by
/// one search.
/// </summary>
/// <param name="knownWords">Words of the first set.</param>
/// <param name="unknownWords">Words of the second set.</param>
internal sealed class StateCache(int knownWords, int unknownWords)
{
    private const int ComparedMax = 32;

    private readonly StateTable _compared = new(knownWords, knownWords + unknownWords, ComparedMax);
    private readonly StateTable _others = new(knownWords + unknownWords, knownWords + unknownWords, int.MaxValue);

    public int Count => _compared.Count + _others.Count;

    /// <summary>False when it was there already, or one that stands for it.</summary>
    /// <param name="sets">Both sets, one after the other.</param>
    /// <param name="state">The packed state.</param>
    public bool Add(ReadOnlySpan<ulong> sets, ulong state)
    {
        StateTable.Addition addition = _compared.Add(sets, state);
        return addition == StateTable.Addition.Added
            || (addition == StateTable.Addition.TooManyAlike && _others.Add(sets, state) == StateTable.Addition.Added);
    }
}
