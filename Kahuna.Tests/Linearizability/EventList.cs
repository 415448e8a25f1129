namespace Kahuna.Tests.Linearizability;

/// <summary>
/// Calls and returns of the answered operations, in the order of time, as a doubly linked list that an operation is
/// lifted out of when it is linearized, and put back into, the latest first. Events of one moment count as concurrent:
/// calls come before returns. Owned by one search.
/// </summary>
internal sealed class EventList
{
    /// <summary>Ends every walk; the list is a ring through it.</summary>
    public const int End = 0;

    private readonly int[] _next;
    private readonly int[] _previous;

    public EventList(ReadOnlySpan<RegisterOperation> known)
    {
        int[] events = new int[2 * known.Length];
        (long, int)[] keys = new (long, int)[events.Length];
        for (int i = 0; i < known.Length; i++)
        {
            events[2 * i] = CallOf(i);
            events[(2 * i) + 1] = ReturnOf(i);
            keys[2 * i] = (known[i].CallNs, 0);
            keys[(2 * i) + 1] = (known[i].ReturnNs, 1);
        }

        Array.Sort(keys, events);
        _next = new int[events.Length + 1];
        _previous = new int[events.Length + 1];
        int last = End;
        foreach (int one in events)
        {
            _next[last] = one;
            _previous[one] = last;
            last = one;
        }

        _previous[End] = last;
    }

    public int First => _next[End];

    public int After(int one) => _next[one];

    public static bool IsCall(int one) => (one & 1) != 0;

    /// <summary>The operation that an event belongs to.</summary>
    public static int OperationOf(int one) => (one - 1) >> 1;

    public void Lift(int operation)
    {
        Unlink(CallOf(operation));
        Unlink(ReturnOf(operation));
    }

    public void PutBack(int operation)
    {
        Link(ReturnOf(operation));
        Link(CallOf(operation));
    }

    private static int CallOf(int operation) => (2 * operation) + 1;

    private static int ReturnOf(int operation) => (2 * operation) + 2;

    private void Unlink(int one)
    {
        _next[_previous[one]] = _next[one];
        _previous[_next[one]] = _previous[one];
    }

    private void Link(int one)
    {
        _next[_previous[one]] = one;
        _previous[_next[one]] = one;
    }
}
