namespace Kahuna;

/// <summary>Which keys a watch is about. Values are part of the wire format.</summary>
public enum WatchScope : byte
{
    /// <summary>One key.</summary>
    Key = 1,

    /// <summary>
    /// The keys of one bucket: those whose part before the last '/' is the name, and the key of this name if it has no
    /// '/'.
    /// </summary>
    Bucket = 2,

    /// <summary>The keys that begin with the name.</summary>
    Prefix = 3,
}
