using System.Globalization;

namespace Kahuna;

/// <summary>
/// The version of a key: 1 or greater, and greater by 1 for each write of an existing key, deletes included. A name's
/// revisions never decrease and never repeat (docs/guarantees.md). 0 (<see cref="None"/>) means that the key does not
/// exist. Revisions of different keys cannot be compared. A value.
/// </summary>
public readonly record struct Revision(long Value) : IComparable<Revision>
{
    /// <summary>No revision: the key does not exist.</summary>
    public static readonly Revision None;

    /// <summary>True for <see cref="None"/>.</summary>
    public bool IsNone => Value == 0;

    /// <summary>True for an earlier write.</summary>
    public static bool operator <(Revision a, Revision b) => a.Value < b.Value;

    /// <summary>True for a later write.</summary>
    public static bool operator >(Revision a, Revision b) => a.Value > b.Value;

    /// <summary>True for an earlier or the same write.</summary>
    public static bool operator <=(Revision a, Revision b) => a.Value <= b.Value;

    /// <summary>True for a later or the same write.</summary>
    public static bool operator >=(Revision a, Revision b) => a.Value >= b.Value;

    /// <inheritdoc/>
    public int CompareTo(Revision other) => Value.CompareTo(other.Value);

    /// <summary>The number, as decimal digits.</summary>
    public override string ToString() => Value.ToString(CultureInfo.InvariantCulture);
}
