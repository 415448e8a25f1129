using Kahuna.Wire.Watches;

namespace Kahuna.Client.Watches;

/// <summary>
/// One event of a watch. A value. Watches of one client may share the bytes behind a value: do not change them.
/// </summary>
public readonly struct WatchEvent
{
    /// <summary>The position before the change, or of an event that is no change; null: there is none yet.</summary>
    private readonly WatchPosition? _points;
    private readonly string? _key;

    /// <summary>What few events have; null: they have none of it.</summary>
    private readonly WatchEventDetails? _details;

    internal WatchEvent(WatchEventKind kind, WatchPosition? points)
    {
        Kind = kind;
        _points = points;
    }

    /// <summary>What the event says.</summary>
    public WatchEventKind Kind { get; }

    /// <summary>The key; empty for events that concern no single key.</summary>
    public string Key
    {
        get => _key ?? "";
        internal init => _key = value;
    }

    /// <summary>
    /// The value of <see cref="WatchEventKind.Current"/> and <see cref="WatchEventKind.Set"/>; null with
    /// <see cref="WatchOptions.KeysOnly"/>.
    /// </summary>
    public KahunaValue Value { get; internal init; }

    /// <summary>
    /// The value before the change. Null when there was none, history no longer has it, or
    /// <see cref="WatchOptions.PreviousValues"/> is not set.
    /// </summary>
    public KahunaValue? Previous => _details?.Previous;

    /// <summary>The revision of the value, or of the deletion.</summary>
    public Revision Revision { get; internal init; }

    /// <summary>
    /// The next event is of the same transaction. A consumer that acts on a transaction as a whole waits for the event
    /// without it.
    /// </summary>
    public bool HasMore { get; internal init; }

    /// <summary>
    /// Of <see cref="WatchEventKind.Progress"/>: how old the node's view of the keys was when the event was made, the
    /// time on the network not counted; null when the node does not know.
    /// </summary>
    public TimeSpan? Behind => _details?.Behind;

    /// <summary>
    /// A watch that begins here goes on behind this event. While a transaction has more events it is the position
    /// before the transaction, so that a watch never goes on in the middle. Null until the state is complete.
    /// </summary>
    public WatchPosition? Position => HasMore || Place.Group == 0 ? _points : _points?.With(Place);

    /// <summary>Where the change stands; group 0: it is no change.</summary>
    internal ChangePoint Place { get; init; }

    /// <summary>History had the value before the change when it was made.</summary>
    internal bool IsPreviousKept { get; init; }

    /// <summary>When the node's view was complete, as a timestamp of the client's clock; null: unknown.</summary>
    internal long? AsOf => _details?.AsOf;

    /// <summary>What the event takes up while it waits.</summary>
    internal long Bytes => (2L * Key.Length) + Value.Memory.Length;

    /// <summary>The change as it is told: where its watch was before, and whether more of its transaction follows.
    /// </summary>
    internal WatchEvent Told(WatchPosition? before, bool hasMore) => new(Kind, before)
    {
        Key = Key,
        Value = Value,
        Revision = Revision,
        HasMore = hasMore,
        Place = Place,
        IsPreviousKept = IsPreviousKept,
        Details = _details,
    };

    /// <summary>The event with the value before the change.</summary>
    internal WatchEvent WithPrevious(KahunaValue previous) =>
        this with { Details = new WatchEventDetails(previous, null, null) };

    /// <summary>What few events have.</summary>
    internal WatchEventDetails? Details
    {
        init => _details = value;
    }
}

/// <summary>What few events have. Immutable.</summary>
/// <param name="Previous">The value before the change.</param>
/// <param name="Behind">How old the node's view was.</param>
/// <param name="AsOf">When it was complete, as a timestamp.</param>
internal sealed record WatchEventDetails(KahunaValue? Previous, TimeSpan? Behind, long? AsOf);
