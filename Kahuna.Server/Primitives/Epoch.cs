using System.Globalization;

namespace Kahuna.Server.Primitives;

/// <summary>
/// Epoch of an ephemeral group. It increases when a majority of the members has lost the group's data; everything of
/// earlier epochs is void. 0 before the first. A value.
/// </summary>
internal readonly record struct Epoch(ulong Value) : IComparable<Epoch>
{
    public static readonly Epoch None;

    public bool IsNone => Value == 0;

    /// <summary>The part that a command carries: the lower 16 bits (docs/wire-format.md).</summary>
    public ushort Short => (ushort)Value;

    public static bool operator <(Epoch a, Epoch b) => a.Value < b.Value;

    public static bool operator >(Epoch a, Epoch b) => a.Value > b.Value;

    public static bool operator <=(Epoch a, Epoch b) => a.Value <= b.Value;

    public static bool operator >=(Epoch a, Epoch b) => a.Value >= b.Value;

    public Epoch Next() => new(Value + 1);

    public int CompareTo(Epoch other) => Value.CompareTo(other.Value);

    public override string ToString() => Value.ToString(CultureInfo.InvariantCulture);
}
