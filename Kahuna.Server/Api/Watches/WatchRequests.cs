using System.Globalization;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Checks;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Watches;

namespace Kahuna.Server.Api.Watches;

/// <summary>
/// Checks the requests of one stream that begin watches, and reads their points. Owned by its
/// <see cref="WatchReader"/>.
/// </summary>
/// <param name="memory">The node's memory for watches; null: not counted.</param>
internal sealed class WatchRequests(WatchMemory? memory)
{
    /// <summary>Watches of one stream.</summary>
    public const int WatchesMax = 131_072;

    /// <summary>
    /// Points from which a cursor may have gone back at a time. A client begins its watches together, or one after the
    /// other from points that ascend.
    /// </summary>
    public const int ReturnsMax = 1_024;

    private byte[] _points = [];
    private ChangePoint[] _starts = [];
    private bool[] _isNamed = [];

    /// <summary>The node's memory for watches; null: not counted.</summary>
    public WatchMemory? Memory => memory;

    /// <summary>Why a watch is not begun; null: it may begin.</summary>
    public (OutcomeStatus Status, string Sentence)? Refuse(
        scoped in WatchRequest request, WatchLevel level, int watches)
    {
        string? sentence = WatchCheck.NameRefusal(request.Scope, request.Name) is { } reason
            ? Sentence(reason) : RefusePoints(in request, level);
        if (sentence is not null)
        {
            return (OutcomeStatus.InvalidArgument, sentence);
        }

        string? busy = watches >= WatchesMax
            ? string.Create(
                CultureInfo.InvariantCulture,
                $"The stream has {watches:N0} watches, its limit; this one was not begun. End others first.")
            : Array.Exists(level.Cursors, static cursor => cursor.Returns >= ReturnsMax)
            ? string.Create(
                CultureInfo.InvariantCulture,
                $"The stream went back {ReturnsMax:N0} times to begin watches at earlier points; this one was not "
                    + $"begun. Try again later.")
            : memory?.Fits(WatchMemory.BytesOf(in request)) ?? true
            ? null
            : string.Create(
                CultureInfo.InvariantCulture,
                $"The watches of the node take up {memory.BytesMax >> 20:N0} MiB, the limit; this one was not begun. "
                    + $"Try another node, or again later.");
        return busy is null ? null : (OutcomeStatus.Busy, busy);
    }

    /// <summary>Where a watch begins in each group of the level; requests with the same points share them.</summary>
    public ChangePoint[] StartsOf(scoped in WatchRequest request, WatchLevel level)
    {
        if (request.PointCount == level.Cursors.Length && request.Points.SequenceEqual(_points))
        {
            return _starts;
        }

        ChangePoint[] starts = new ChangePoint[level.Cursors.Length];
        for (int i = 0; i < starts.Length; i++)
        {
            starts[i] = level.Cursors[i].Log.Status.Applied;
        }

        for (int i = 0; i < request.PointCount; i++)
        {
            ChangePoint point = request.Point(i);
            starts[new GroupId(point.Group).Partition] = point;
        }

        if (request.PointCount == starts.Length)
        {
            (_points, _starts) = (request.Points.ToArray(), starts);
        }

        return starts;
    }

    private string? RefusePoints(scoped in WatchRequest request, WatchLevel level)
    {
        if (request.PointCount > level.Cursors.Length)
        {
            return Sentence($"it names {request.PointCount} points; there are {level.Cursors.Length} groups");
        }

        if (_isNamed.Length < level.Cursors.Length)
        {
            _isNamed = new bool[level.Cursors.Length];
        }

        _isNamed.AsSpan().Clear();
        for (int i = 0; i < request.PointCount; i++)
        {
            ChangePoint point = request.Point(i);
            int partition = new GroupId(point.Group).Partition;
            if ((uint)partition >= (uint)level.Cursors.Length
                || level.Cursors[partition].Log.Group.Value != point.Group
                || (point.Epoch != 0 && !point.IsEphemeral)
                || _isNamed[partition])
            {
                return Sentence(
                    $"a point is of group {point.Group} and epoch {point.Epoch}; it must be of one of the groups of "
                        + "the watch's durability, each once");
            }

            _isNamed[partition] = true;
        }

        return null;
    }

    private static string Sentence(string reason) => $"The watch was not begun: {reason}.";
}

/// <summary>The memory that all watches of a node may take up. Any thread.</summary>
/// <param name="bytesMax">Bytes of all watches.</param>
internal sealed class WatchMemory(long bytesMax = WatchMemory.BytesMaxDefault)
{
    /// <summary>The memory of a node: about 400,000 watches with short names.</summary>
    public const long BytesMaxDefault = 256L << 20;

    /// <summary>A watch in the tables of its stream and of the node, without its names.</summary>
    private const int WatchBytes = 400;

    private long _bytes;
    private int _watches;
    private long _losses;

    public long BytesMax => bytesMax;

    /// <summary>Number of watches.</summary>
    public int Watches => Volatile.Read(ref _watches);

    /// <summary>How often a stream was told that changes of a group are gone.</summary>
    public long Losses => Volatile.Read(ref _losses);

    /// <summary>Bytes of all watches.</summary>
    public long Bytes => Volatile.Read(ref _bytes);

    /// <summary>What a watch is counted with.</summary>
    public static long BytesOf(scoped in WatchRequest request) =>
        WatchBytes + (2 * request.Name.Length) + request.Points.Length;

    /// <summary>
    /// The node has room for a watch of this size. Watches that begin at the same time may pass the limit together.
    /// </summary>
    public bool Fits(long bytes) => Bytes + bytes <= bytesMax;

    /// <summary>Counts a watch.</summary>
    public void Add(long bytes)
    {
        Interlocked.Add(ref _bytes, bytes);
        Interlocked.Increment(ref _watches);
    }

    /// <summary>A watch has ended.</summary>
    public void Remove(long bytes)
    {
        Interlocked.Add(ref _bytes, -bytes);
        Interlocked.Decrement(ref _watches);
    }

    /// <summary>A stream is told that changes are gone.</summary>
    public void CountLoss() => Interlocked.Increment(ref _losses);
}
