namespace Kahuna.Tests.WatchStreams;

/// <summary>What an event of a recorded watch says.</summary>
internal enum StreamEventKind
{
    /// <summary>A key as it is, of a watch that begins with the state.</summary>
    Current,

    /// <summary>The state is complete.</summary>
    CurrentEnd,

    Set,
    Deleted,
    Expired,
    Evicted,

    /// <summary>Every change until then was told.</summary>
    Progress,

    /// <summary>The reader was slow; nothing is missing.</summary>
    Lagging,

    /// <summary>Changes before this event may be missing.</summary>
    Compacted,

    /// <summary>The keys before this event are gone.</summary>
    Epoch,
}
