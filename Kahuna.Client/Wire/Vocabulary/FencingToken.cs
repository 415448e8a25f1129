using System.Globalization;

namespace Kahuna;

/// <summary>
/// The number of one grant of a lock: 1 or greater, and greater than that of every earlier grant of the same lock. A
/// resource that remembers the greatest token it has seen can refuse the writes of a former holder. 0
/// (<see cref="None"/>) means that nobody holds the lock. A value.
/// </summary>
public readonly record struct FencingToken(long Value) : IComparable<FencingToken>
{
    /// <summary>No token: nobody holds the lock.</summary>
    public static readonly FencingToken None;

    /// <summary>True for <see cref="None"/>.</summary>
    public bool IsNone => Value == 0;

    /// <summary>True for an earlier grant.</summary>
    public static bool operator <(FencingToken a, FencingToken b) => a.Value < b.Value;

    /// <summary>True for a later grant.</summary>
    public static bool operator >(FencingToken a, FencingToken b) => a.Value > b.Value;

    /// <summary>True for an earlier or the same grant.</summary>
    public static bool operator <=(FencingToken a, FencingToken b) => a.Value <= b.Value;

    /// <summary>True for a later or the same grant.</summary>
    public static bool operator >=(FencingToken a, FencingToken b) => a.Value >= b.Value;

    /// <inheritdoc/>
    public int CompareTo(FencingToken other) => Value.CompareTo(other.Value);

    /// <summary>The number, as decimal digits.</summary>
    public override string ToString() => Value.ToString(CultureInfo.InvariantCulture);
}
