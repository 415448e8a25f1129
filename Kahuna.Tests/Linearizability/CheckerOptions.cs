namespace Kahuna.Tests.Linearizability;

/// <summary>How strict the checker is, and how long it tries. Immutable.</summary>
internal sealed record CheckerOptions
{
    /// <summary>
    /// So much earlier than its time to live, counted from the call, a key may be seen expired. Cluster time counts
    /// whole milliseconds and stamps an entry with the beginning of the turn that proposes it: both can be a little
    /// before the call. Where node clocks drift against the history's, the drift over the longest time to live comes on
    /// top.
    /// </summary>
    public TimeSpan TtlSlack { get; init; } = TimeSpan.FromMilliseconds(10);

    /// <summary>
    /// So much later than its time to live, counted from the answer, a key may still be seen. Null, the default: at any
    /// time, as a change of leader stretches it.
    /// </summary>
    public TimeSpan? TtlLatenessMax { get; init; }

    /// <summary>
    /// Holdings of a lock are compared by the time at which they were believed in: who has it alone, and in which
    /// order. False where the clocks by which clients believe run slower than the history's, so that a holding may be
    /// recorded longer than it was.
    /// </summary>
    public bool LockExclusion { get; init; } = true;

    /// <summary>
    /// The search for one key gives up with <see cref="Verdict.Undecided"/> after so many states; each takes 100 to 250
    /// bytes.
    /// </summary>
    public int StatesMax { get; init; } = 2_000_000;

    /// <summary>
    /// Time for finding the operations that contradict each other, over all keys together. Zero: they are not looked
    /// for.
    /// </summary>
    public TimeSpan ExplainTimeMax { get; init; } = TimeSpan.FromSeconds(20);
}
