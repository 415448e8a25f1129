using System.Buffers.Text;
using System.Diagnostics.CodeAnalysis;
using Kahuna.Wire.Watches;

namespace Kahuna;

/// <summary>
/// A position among the changes of all keys of one durability, where a watch can begin or go on. Opaque: what it says
/// is for the cluster only. Immutable, any thread.
/// </summary>
/// <remarks>
/// Events of watches and reads that ask for it carry positions. One of a read knows the partition that was read; a
/// watch that begins there takes the other partitions as they are now.
/// </remarks>
public sealed class WatchPosition : IEquatable<WatchPosition>
{
    private readonly ChangePoint[] _points;

    /// <summary>A position of points that ascend by their group; the array is the position's from now on.</summary>
    internal WatchPosition(ulong cluster, Durability durability, ChangePoint[] points)
    {
        Cluster = cluster;
        Durability = durability;
        _points = points;
    }

    /// <summary>The durability of the keys.</summary>
    public Durability Durability { get; }

    /// <summary>Names the cluster.</summary>
    internal ulong Cluster { get; }

    /// <summary>The points, one for each group, ascending by the group.</summary>
    internal ReadOnlySpan<ChangePoint> Points => _points;

    /// <summary>True when both are the same position.</summary>
    /// <param name="left">One position.</param>
    /// <param name="right">The other.</param>
    public static bool operator ==(WatchPosition? left, WatchPosition? right) =>
        left is null ? right is null : left.Equals(right);

    /// <summary>True unless both are the same position.</summary>
    /// <param name="left">One position.</param>
    /// <param name="right">The other.</param>
    public static bool operator !=(WatchPosition? left, WatchPosition? right) => !(left == right);

    /// <summary>Reads the text of a position.</summary>
    /// <param name="text">What <see cref="ToString"/> gave.</param>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.InvalidArgument"/>: the text is no position, or was changed.
    /// </exception>
    public static WatchPosition Parse(string text)
    {
        ArgumentNullException.ThrowIfNull(text);
        return TryParse(text, out WatchPosition? position) ? position : throw Malformed();
    }

    /// <summary>Reads the text of a position; false when it is none, or was changed.</summary>
    /// <param name="text">What <see cref="ToString"/> gave.</param>
    /// <param name="position">The position.</param>
    public static bool TryParse(string? text, [NotNullWhen(true)] out WatchPosition? position)
    {
        position = null;
        return text is not null
            && Base64Url.IsValid(text)
            && TryRead(Base64Url.DecodeFromChars(text), out position);
    }

    /// <summary>Reads the bytes of a position.</summary>
    /// <param name="bytes">What <see cref="ToBytes"/> gave.</param>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.InvalidArgument"/>: the bytes are no position, or were changed.
    /// </exception>
    public static WatchPosition FromBytes(ReadOnlySpan<byte> bytes) =>
        TryRead(bytes, out WatchPosition? position) ? position : throw Malformed();

    /// <summary>The bytes of the position, to be kept and read by <see cref="FromBytes"/>.</summary>
    public byte[] ToBytes() => PositionFormat.Write(Cluster, Durability, _points);

    /// <summary>
    /// The text of the position, to be kept and read by <see cref="Parse"/>: letters, digits, - and _.
    /// </summary>
    public override string ToString() => Base64Url.EncodeToString(ToBytes());

    /// <inheritdoc/>
    public bool Equals(WatchPosition? other) =>
        ReferenceEquals(this, other)
            || (other is not null
                && Cluster == other.Cluster
                && Durability == other.Durability
                && _points.AsSpan().SequenceEqual(other._points));

    /// <inheritdoc/>
    public override bool Equals(object? obj) => Equals(obj as WatchPosition);

    /// <inheritdoc/>
    public override int GetHashCode()
    {
        HashCode hash = default;
        hash.Add(Cluster);
        hash.Add(Durability);
        foreach (ChangePoint point in _points)
        {
            hash.Add(point);
        }

        return hash.ToHashCode();
    }

    /// <summary>The place of a group's point; negative when there is none.</summary>
    internal int Find(uint group)
    {
        (int low, int high) = (0, _points.Length - 1);
        while (low <= high)
        {
            int middle = (low + high) / 2;
            if (_points[middle].Group == group)
            {
                return middle;
            }

            (low, high) = _points[middle].Group < group ? (middle + 1, high) : (low, middle - 1);
        }

        return ~low;
    }

    /// <summary>True when the group has a point, and it is the given one or a later one.</summary>
    internal bool Covers(in ChangePoint point) => Find(point.Group) is >= 0 and var at && _points[at] >= point;

    /// <summary>True when it covers every point of another position.</summary>
    internal bool Covers(WatchPosition other)
    {
        foreach (ref readonly ChangePoint point in other.Points)
        {
            if (!Covers(in point))
            {
                return false;
            }
        }

        return true;
    }

    /// <summary>This position with another point of one group.</summary>
    internal WatchPosition With(in ChangePoint point)
    {
        int at = Find(point.Group);
        if (at >= 0 && _points[at] == point)
        {
            return this;
        }

        ChangePoint[] points = at >= 0 ? [.. _points] : [.. _points[..~at], point, .. _points[~at..]];
        points[at >= 0 ? at : ~at] = point;
        return new WatchPosition(Cluster, Durability, points);
    }

    /// <summary>The later point of each group.</summary>
    internal static WatchPosition Later(WatchPosition one, WatchPosition other)
    {
        if (one.Covers(other))
        {
            return one;
        }

        if (other.Covers(one))
        {
            return other;
        }

        WatchPosition later = one;
        foreach (ref readonly ChangePoint point in other.Points)
        {
            later = later.Covers(in point) ? later : later.With(in point);
        }

        return later;
    }

    private static bool TryRead(ReadOnlySpan<byte> bytes, [NotNullWhen(true)] out WatchPosition? position)
    {
        position = PositionFormat.TryRead(
            bytes, out ulong cluster, out Durability durability, out ChangePoint[] points)
            ? new WatchPosition(cluster, durability, points)
            : null;
        return position is not null;
    }

    private static KahunaException Malformed() => new(
        KahunaErrorCode.InvalidArgument,
        OperationOutcome.DidNotHappen,
        "The position of a watch is malformed: it was cut, changed, or never given out. Nothing happened.");
}
