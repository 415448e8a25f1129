namespace Kahuna.Tests.Simulation.Workload;

/// <summary>What a hostile client does.</summary>
internal enum HostileKind
{
    /// <summary>Streams that ask for large values and do not read the answers.</summary>
    SlowReaders,

    /// <summary>Writes, each under an idempotency key or as the first of a session of its own.</summary>
    KeyedCalls,

    /// <summary>Calls that wait for news of one lock.</summary>
    Observers,

    /// <summary>Many who want to share one lock and wait for it at the same time.</summary>
    Claims,

    /// <summary>Large values, some of them larger than a server takes.</summary>
    LargeValues,

    /// <summary>As many calls under way in one session as it may have.</summary>
    FullWindow,

    /// <summary>Keys of one partition whose published hashes end in the same 32 bits, set and deleted again.</summary>
    CollidingKeys,

    /// <summary>Streams that ask for many pages of keys at a time, and do not read all of them.</summary>
    Pages,
}
