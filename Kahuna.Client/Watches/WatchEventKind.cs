namespace Kahuna.Client.Watches;

/// <summary>What an event of a watch says.</summary>
public enum WatchEventKind
{
    /// <summary>Not an event.</summary>
    None = 0,

    /// <summary>With <see cref="WatchOptions.WithState"/>: a key as it is.</summary>
    Current = 1,

    /// <summary>
    /// With <see cref="WatchOptions.WithState"/>: the state is complete. The keys of each partition, with the changes
    /// that came before this event, are what they were at its position.
    /// </summary>
    CurrentEnd = 2,

    /// <summary>A value was written.</summary>
    Set = 3,

    /// <summary>A key was deleted.</summary>
    Deleted = 4,

    /// <summary>A key's time to live has passed.</summary>
    Expired = 5,

    /// <summary>An ephemeral key went because there was no room.</summary>
    Evicted = 6,

    /// <summary>Every change up to the position was returned before.</summary>
    Progress = 7,

    /// <summary>
    /// The consumer was slow, and events waited up to the limit. The watch goes on where it was; nothing is missing
    /// unless <see cref="Compacted"/> says so.
    /// </summary>
    Lagging = 8,

    /// <summary>Changes before the position are missing: no node that was asked has them any longer.</summary>
    Compacted = 9,

    /// <summary>
    /// A partition of ephemeral keys has lost its data and begins anew: all its keys are gone.
    /// </summary>
    EpochBegan = 10,
}
