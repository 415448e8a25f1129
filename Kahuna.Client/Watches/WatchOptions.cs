namespace Kahuna.Client.Watches;

/// <summary>Options of a watch. Immutable, so one instance may serve many concurrent calls.</summary>
public sealed record WatchOptions
{
    /// <summary>Which keys the name stands for. Default <see cref="WatchScope.Prefix"/>.</summary>
    public WatchScope Scope { get; init; } = WatchScope.Prefix;

    /// <summary>
    /// Begins behind this position; null begins now. A position of another cluster or durability, or one that the
    /// cluster has not reached, is refused.
    /// </summary>
    public WatchPosition? From { get; init; }

    /// <summary>
    /// Returns the keys as they are first (<see cref="WatchEventKind.Current"/>), then every change. After
    /// <see cref="WatchEventKind.Compacted"/> and <see cref="WatchEventKind.EpochBegan"/> the keys are returned again.
    /// Not together with <see cref="From"/>.
    /// </summary>
    public bool WithState { get; init; }

    /// <summary>The durability, which is part of the keys' names; null for the client's.</summary>
    public Durability? Durability { get; init; }

    /// <summary>Without the values, which are null then.</summary>
    public bool KeysOnly { get; init; }

    /// <summary>
    /// Events carry the value before the change, where history still has it. Each costs a read.
    /// </summary>
    public bool PreviousValues { get; init; }

    /// <summary>
    /// Returns <see cref="WatchEventKind.Progress"/> about this often while nothing else happens, and once at the
    /// beginning; null for never. Nodes report their progress once a second.
    /// </summary>
    public TimeSpan? ProgressInterval { get; init; }

    /// <summary>
    /// How many events may wait for the consumer, 1 or more. Beyond it the watch falls behind: it returns
    /// <see cref="WatchEventKind.Lagging"/> and goes on where it was when the consumer has taken what waits. Default
    /// 10,000.
    /// </summary>
    public int BufferedEvents { get; init; } = 10_000;

    /// <summary>How many bytes of keys and values may wait, 1 or more. Default 16 MiB.</summary>
    public long BufferedBytes { get; init; } = 16 << 20;

    /// <exception cref="ArgumentException">An option is outside its range, or two contradict each other.</exception>
    internal void Check()
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(BufferedEvents, 1);
        ArgumentOutOfRangeException.ThrowIfLessThan(BufferedBytes, 1);
        if (ProgressInterval is { } interval)
        {
            ArgumentOutOfRangeException.ThrowIfLessThan(interval, TimeSpan.Zero, nameof(ProgressInterval));
        }

        if (Scope is not (WatchScope.Key or WatchScope.Bucket or WatchScope.Prefix))
        {
            throw new ArgumentOutOfRangeException(nameof(Scope), Scope, "Scope must be Key, Bucket or Prefix.");
        }

        if (WithState && From is not null)
        {
            throw new ArgumentException("WithState begins with the keys as they are now; From contradicts it.");
        }
    }
}
