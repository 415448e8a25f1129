namespace Kahuna.Server.Primitives;

/// <summary>Id of a node, 1 or greater; 0 means none.</summary>
internal readonly record struct NodeId(ushort Value) : IComparable<NodeId>
{
    public static readonly NodeId None;

    public bool IsNone => Value == 0;

    public int CompareTo(NodeId other) => Value.CompareTo(other.Value);

    public override string ToString() => Value.ToString(System.Globalization.CultureInfo.InvariantCulture);
}

/// <summary>
/// Id of a Raft group. 0 is the meta group. Partition n has group n + 1 for persistent keys, and the same number with
/// <see cref="EphemeralBit"/> for ephemeral keys.
/// </summary>
internal readonly record struct GroupId(uint Value) : IComparable<GroupId>
{
    public const uint EphemeralBit = 1u << 30;

    /// <summary>The group of the cluster's own records.</summary>
    public static readonly GroupId Meta;

    /// <summary>Not a group: the log keeps the node's own records under this number.</summary>
    public static readonly GroupId Node = new(uint.MaxValue);

    public bool IsMeta => Value == 0;

    public bool IsEphemeral => (Value & EphemeralBit) != 0;

    /// <summary>Number of the partition; -1 for the meta group.</summary>
    public int Partition => (int)(Value & ~EphemeralBit) - 1;

    /// <summary>Name for operators, within a sentence.</summary>
    public string Name => IsMeta
        ? "the meta group"
        : string.Create(
            System.Globalization.CultureInfo.InvariantCulture,
            $"{(IsEphemeral ? "ephemeral partition" : "partition")} {Partition}");

    /// <summary>Name for operators, at the beginning of a line.</summary>
    public string Title => IsMeta ? "Meta group" : char.ToUpperInvariant(Name[0]) + Name[1..];

    public static GroupId Of(int partition, bool isEphemeral) =>
        new(((uint)partition + 1) | (isEphemeral ? EphemeralBit : 0));

    public int CompareTo(GroupId other) => Value.CompareTo(other.Value);

    public override string ToString() => Value.ToString(System.Globalization.CultureInfo.InvariantCulture);
}

/// <summary>A Raft term; 0 before the first election.</summary>
internal readonly record struct Term(ulong Value) : IComparable<Term>
{
    public static bool operator <(Term a, Term b) => a.Value < b.Value;

    public static bool operator >(Term a, Term b) => a.Value > b.Value;

    public static bool operator <=(Term a, Term b) => a.Value <= b.Value;

    public static bool operator >=(Term a, Term b) => a.Value >= b.Value;

    public Term Next() => new(Value + 1);

    public int CompareTo(Term other) => Value.CompareTo(other.Value);

    public override string ToString() => Value.ToString(System.Globalization.CultureInfo.InvariantCulture);
}

/// <summary>Position in a group's log. The first entry has 1; 0 means before the first.</summary>
internal readonly record struct LogIndex(ulong Value) : IComparable<LogIndex>
{
    public static bool operator <(LogIndex a, LogIndex b) => a.Value < b.Value;

    public static bool operator >(LogIndex a, LogIndex b) => a.Value > b.Value;

    public static bool operator <=(LogIndex a, LogIndex b) => a.Value <= b.Value;

    public static bool operator >=(LogIndex a, LogIndex b) => a.Value >= b.Value;

    public static LogIndex operator +(LogIndex a, ulong count) => new(a.Value + count);

    public LogIndex Next() => new(Value + 1);

    public LogIndex Previous() => new(Value - 1);

    public int CompareTo(LogIndex other) => Value.CompareTo(other.Value);

    public override string ToString() => Value.ToString(System.Globalization.CultureInfo.InvariantCulture);
}
