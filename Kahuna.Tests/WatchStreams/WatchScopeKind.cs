namespace Kahuna.Tests.WatchStreams;

/// <summary>Which keys a recorded watch is told of.</summary>
internal enum WatchScopeKind
{
    /// <summary>The key of this name.</summary>
    Key,

    /// <summary>The keys whose bucket, the part before the last slash, has this name.</summary>
    Bucket,

    /// <summary>The keys whose names begin so.</summary>
    Prefix,
}
