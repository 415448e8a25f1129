using System.Globalization;

namespace Kahuna.Tests.WatchStreams;

/// <summary>One watch as its reader saw it, one line of a history file (docs/histories.md). Immutable.</summary>
internal sealed record WatchStream
{
    /// <summary>Begins with changes after the call.</summary>
    public const string Now = "now";

    /// <summary>Begins with the keys as they are.</summary>
    public const string State = "state";

    public required string Name { get; init; }

    public required WatchScopeKind Scope { get; init; }

    /// <summary><see cref="Now"/>, <see cref="State"/>, or the name of a position.</summary>
    public required string From { get; init; }

    public required long CallNs { get; init; }

    /// <summary>In the order in which the reader had them.</summary>
    public required IReadOnlyList<StreamEvent> Events { get; init; }

    /// <summary>The line of the file, from 1 on.</summary>
    public required int Line { get; init; }

    /// <summary>Whether the watch is told of a key.</summary>
    public bool Covers(string key) => Scope switch
    {
        WatchScopeKind.Key => key == Name,
        WatchScopeKind.Bucket => BucketOf(key) == Name,
        _ => key.StartsWith(Name, StringComparison.Ordinal),
    };

    public override string ToString() =>
        string.Create(CultureInfo.InvariantCulture, $"line {Line}: watch of {Scope} '{Name}' from {From}");

    /// <summary>The part of a key before its last slash; a key without one is a bucket of its own.</summary>
    public static string BucketOf(string key) => key.LastIndexOf('/') is var slash and >= 0 ? key[..slash] : key;
}
