using Google.Protobuf;
using Grpc.Core;
using Kahuna.Server.Api.Errors;
using Kahuna.Wire.Watches;

namespace Kahuna.Server.Api;

/// <summary>
/// Where the watch of a foreign client begins in each partition, and which changes the entries before it have shown.
/// Owned by its call; filled before the watch begins.
/// </summary>
/// <param name="cluster">Names the cluster in positions.</param>
/// <param name="durability">The durability of the keys.</param>
/// <param name="partitions">Number of partitions.</param>
internal sealed class WatchStart(ulong cluster, Durability durability, int partitions)
{
    /// <summary>Pages of a partition whose borders are kept; neighbours with one point are one.</summary>
    private const int PagesMax = 100_000;

    private readonly List<(byte[]? Last, ChangePoint Point)>?[] _pages =
        new List<(byte[]? Last, ChangePoint Point)>?[partitions];

    /// <summary>The points, by partition.</summary>
    public ChangePoint[] Points { get; } = new ChangePoint[partitions];

    /// <summary>Begins at a position of an earlier message instead, where it names a partition.</summary>
    /// <exception cref="RpcException">INVALID_ARGUMENT: it is not of this cluster and durability, was changed, or lies
    /// ahead of the points, which are those of now.</exception>
    public void GoTo(ByteString position)
    {
        if (!PositionFormat.TryRead(
            position.Span, out ulong ofCluster, out Durability ofDurability, out ChangePoint[] points))
        {
            throw Refuse("is malformed: it was cut, changed, or never given out");
        }

        if (ofCluster != cluster || ofDurability != durability)
        {
            throw Refuse(ofCluster != cluster ? "is of another cluster" : "is of keys of the other durability");
        }

        foreach (ChangePoint point in points)
        {
            int place = Array.FindIndex(Points, now => now.Group == point.Group);
            if (place < 0)
            {
                throw Refuse("is of another cluster");
            }

            if (point > Points[place])
            {
                throw Refuse("lies in the future: the cluster has not made its changes");
            }

            Points[place] = point;
        }
    }

    /// <summary>A page of entries was read of a partition, in the order of the keys.</summary>
    /// <param name="partition">The partition.</param>
    /// <param name="last">The last key that was looked at; null: the page reaches the end.</param>
    /// <param name="point">What it has seen.</param>
    /// <exception cref="RpcException">RESOURCE_EXHAUSTED: there are too many pages.</exception>
    public void AddPage(int partition, byte[]? last, ChangePoint point)
    {
        List<(byte[]? Last, ChangePoint Point)> pages = _pages[partition] ??= [];
        if (pages.Count == 0)
        {
            Points[partition] = point;
        }

        if (pages.Count > 0 && pages[^1].Point == point)
        {
            pages[^1] = (last, point);
            return;
        }

        if (pages.Count == PagesMax)
        {
            throw OutcomeErrors.Build(
                StatusCode.ResourceExhausted,
                "The keys change too fast, or are too many, for one watch with its state; nothing was changed. Watch "
                    + "fewer keys, or read them yourself and watch from a position.",
                OutcomeErrors.DidNotHappen);
        }

        pages.Add((last, point));
    }

    /// <summary>The entries have shown a key as it is since this change, or later.</summary>
    public bool IsShown(int partition, ReadOnlySpan<byte> key, ChangePoint point)
    {
        if (_pages[partition] is not { } pages || point > pages[^1].Point)
        {
            return false;
        }

        (int low, int high) = (0, pages.Count - 1);
        while (low < high)
        {
            int middle = (low + high) / 2;
            if (pages[middle].Last is { } last && key.SequenceCompareTo(last) > 0)
            {
                low = middle + 1;
            }
            else
            {
                high = middle;
            }
        }

        return point <= pages[low].Point;
    }

    /// <summary>Behind these points no change was shown by the entries.</summary>
    public bool IsPassed(ReadOnlySpan<ChangePoint> points)
    {
        for (int i = 0; i < points.Length; i++)
        {
            if (_pages[i] is { } pages && points[i] < pages[^1].Point)
            {
                return false;
            }
        }

        return true;
    }

    /// <summary>The position of these points.</summary>
    public byte[] Encode(ReadOnlySpan<ChangePoint> points) => PositionFormat.Write(cluster, durability, points);

    private static RpcException Refuse(string reason) => OutcomeErrors.Build(
        StatusCode.InvalidArgument, $"from_position {reason}; nothing happened.", OutcomeErrors.DidNotHappen);
}
