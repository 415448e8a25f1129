namespace Kahuna.Tests.Linearizability;

/// <summary>
/// For each value how many answers that saw it are still to be explained, and how many operations that can write it are
/// left. When a value is replaced, has not been seen by all, and nobody is left to write it again, the search is at a
/// dead end long before it gets to the answer in question. Owned by one search.
/// </summary>
internal sealed class ValueSupply
{
    private readonly int[] _sightings;
    private readonly int[] _writers;
    private readonly int[] _comparisons;
    private readonly int _anonymous;

    public ValueSupply(KeyHistory history)
    {
        _sightings = new int[history.Values.Count];
        _writers = new int[history.Values.Count];
        _comparisons = new int[history.Values.Count];
        _anonymous = history.Anonymous;
        for (int value = 0; value < _writers.Length; value++)
        {
            // Increments can make any integer, at any time.
            _writers[value] = history.CountsIntegers && history.Values.IsInteger(value, out _) ? 1 : 0;
            _comparisons[value] = _writers[value];
        }

        foreach (RegisterOperation operation in history.Operations)
        {
            PutBack(operation);
        }
    }

    /// <summary>Some answer saw a value that nobody can have written.</summary>
    public bool IsMissedFromTheStart => Enumerable.Range(0, _writers.Length).Any(IsMissed);

    /// <summary>The operation is linearized.</summary>
    public void Take(RegisterOperation operation) => Count(operation, -1);

    public void PutBack(RegisterOperation operation) => Count(operation, 1);

    /// <summary>When this value is replaced, it will be missed.</summary>
    public bool IsMissed(int value) =>
        (uint)value < (uint)_sightings.Length && _sightings[value] > 0 && _writers[value] == 0;

    /// <summary>The state with its value forgotten if nothing that is left can tell it from others.</summary>
    public RegisterState Told(RegisterState state) =>
        state.Exists
            && state.Value < _sightings.Length
            && _sightings[state.Value] == 0
            && _comparisons[state.Value] == 0
            ? state with { Value = _anonymous }
            : state;

    private void Count(RegisterOperation operation, int by)
    {
        if (operation.SeenValue != RegisterOperation.Anything)
        {
            _sightings[operation.SeenValue] += by;
        }

        if (operation.OnlyIfValue != RegisterOperation.Anything)
        {
            _comparisons[operation.OnlyIfValue] += by;
        }

        if (operation.Kind == OperationKind.Set)
        {
            _writers[operation.Value] += by;
        }
    }
}
