namespace Kahuna.Server.Primitives;

/// <summary>A node of the cluster, 1 or greater; 0 means none.</summary>
internal readonly record struct NodeId(ushort Value) : IComparable<NodeId>
{
    public static readonly NodeId None;

    public bool IsNone => Value == 0;

    public int CompareTo(NodeId other) => Value.CompareTo(other.Value);

    public override string ToString() => Value.ToString(System.Globalization.CultureInfo.InvariantCulture);
}

/// <summary>A Raft group, which is one partition: group id = partition number + 1; 0 is kept for the meta group.</summary>
internal readonly record struct GroupId(uint Value) : IComparable<GroupId>
{
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

/// <summary>Position in one group's log; the first entry is 1, 0 means before the first.</summary>
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
