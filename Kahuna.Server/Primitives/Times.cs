using System.Globalization;

namespace Kahuna.Server.Primitives;

/// <summary>
/// A moment of a partition's own clock, in milliseconds. Its leader stamps commands with it, and every node judges
/// leases and times to live by the stamps alone. It never goes back. Not comparable with <see cref="NodeTime"/>. A
/// value.
/// </summary>
internal readonly record struct ClusterTime(long Ms) : IComparable<ClusterTime>
{
    /// <summary>Later than every moment: what has no deadline ends then.</summary>
    public static readonly ClusterTime Never = new(long.MaxValue);

    public static bool operator <(ClusterTime a, ClusterTime b) => a.Ms < b.Ms;

    public static bool operator >(ClusterTime a, ClusterTime b) => a.Ms > b.Ms;

    public static bool operator <=(ClusterTime a, ClusterTime b) => a.Ms <= b.Ms;

    public static bool operator >=(ClusterTime a, ClusterTime b) => a.Ms >= b.Ms;

    /// <summary>The later of two moments.</summary>
    public static ClusterTime Max(ClusterTime a, ClusterTime b) => a > b ? a : b;

    /// <summary>The earlier of two moments.</summary>
    public static ClusterTime Min(ClusterTime a, ClusterTime b) => a < b ? a : b;

    public static ClusterTime operator +(ClusterTime a, long ms) => new(a.Ms + ms);

    public static ClusterTime operator -(ClusterTime a, long ms) => new(a.Ms - ms);

    /// <summary>The milliseconds from <paramref name="b"/> to <paramref name="a"/>.</summary>
    public static long operator -(ClusterTime a, ClusterTime b) => a.Ms - b.Ms;

    public int CompareTo(ClusterTime other) => Ms.CompareTo(other.Ms);

    public override string ToString() => Ms.ToString(CultureInfo.InvariantCulture);
}

/// <summary>
/// A moment of this node's monotonic clock, in milliseconds since an arbitrary start: ticks, timeouts and deadlines of
/// waiting work. It means nothing on another node. Not comparable with <see cref="ClusterTime"/>. A value.
/// </summary>
internal readonly record struct NodeTime(long Ms) : IComparable<NodeTime>
{
    /// <summary>Later than every moment.</summary>
    public static readonly NodeTime Never = new(long.MaxValue);

    public static bool operator <(NodeTime a, NodeTime b) => a.Ms < b.Ms;

    public static bool operator >(NodeTime a, NodeTime b) => a.Ms > b.Ms;

    public static bool operator <=(NodeTime a, NodeTime b) => a.Ms <= b.Ms;

    public static bool operator >=(NodeTime a, NodeTime b) => a.Ms >= b.Ms;

    /// <summary>The later of two moments.</summary>
    public static NodeTime Max(NodeTime a, NodeTime b) => a > b ? a : b;

    /// <summary>The earlier of two moments.</summary>
    public static NodeTime Min(NodeTime a, NodeTime b) => a < b ? a : b;

    public static NodeTime operator +(NodeTime a, long ms) => new(a.Ms + ms);

    public static NodeTime operator -(NodeTime a, long ms) => new(a.Ms - ms);

    /// <summary>The milliseconds from <paramref name="b"/> to <paramref name="a"/>.</summary>
    public static long operator -(NodeTime a, NodeTime b) => a.Ms - b.Ms;

    public int CompareTo(NodeTime other) => Ms.CompareTo(other.Ms);

    public override string ToString() => Ms.ToString(CultureInfo.InvariantCulture);
}
