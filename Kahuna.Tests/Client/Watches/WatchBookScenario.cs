using System.Text;
using Kahuna.Client.Watches;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Watches;
using static Kahuna.Tests.Client.Watches.WatchFrames;

namespace Kahuna.Tests.Client.Watches;

/// <summary>
/// A book of watches beside a node that says what the test says. The basis of tests; each owns its own.
/// </summary>
public abstract class WatchBookScenario
{
    private protected const ulong Cluster = 7;

    private protected WatchBook Book { get; } = new();

    /// <summary>The ids that the book has asked for in <see cref="Begin(string, ulong)"/>.</summary>
    private protected List<uint> AskedFor { get; } = [];

    private protected static SentChange Part(ulong index, uint n, string key, params uint[] watches) =>
        new(index, key, watches) { N = n, Transaction = 1 };

    private protected static WatchFilter Filter(string prefix, Durability durability = Durability.Persistent) =>
        new(durability, WatchScope.Prefix, withValues: true, Encoding.UTF8.GetBytes(prefix));

    private protected static WatchPosition Position(params ChangePoint[] points) =>
        new(Cluster, Durability.Persistent, points);

    private protected static string[] Told(IEnumerable<WatchEvent> events) =>
        [.. events.Select(static one => one.Key.Length > 0 ? $"{one.Key}@{one.Place.Index}" : one.Kind.ToString())];

    private protected static WatchEvent[] Take(WatchQueue queue) => Take(queue, out _);

    private protected static WatchEvent[] Take(WatchQueue queue, out WatchPosition? resumesAt)
    {
        List<WatchEvent> events = [];
        while (queue.TryTake(out WatchEvent taken, out resumesAt))
        {
            events.Add(taken);
        }

        return [.. events];
    }

    private protected static WatchQueue New(WatchOptions options) => new(new Reader(), options);

    private protected WatchQueue Begin(string prefix, ulong index) => Begin(prefix, At(index));

    private protected WatchQueue Begin(string prefix, params ChangePoint[] points) =>
        Begin(prefix, WatchOrigin.Given, points);

    /// <summary>A watch that the node has begun, if it was asked to.</summary>
    private protected WatchQueue Begin(string prefix, WatchOrigin origin, params ChangePoint[] points)
    {
        WatchQueue queue = New(new WatchOptions());
        Book.Begin(queue, Filter(prefix), Position(points), origin);
        foreach ((uint id, _) in Requested())
        {
            AskedFor.Add(id);
            Begun(id);
        }

        return queue;
    }

    private protected void Begun(uint id) => Assert.True(Notice(WatchNoticeCode.Begun, id));

    private protected bool Notice(
        WatchNoticeCode code, uint watch, ChangePoint point = default, uint status = 0, string text = "") =>
        Deliver(FrameKind.Notices, WatchFrames.Notice(code, watch, point, status, text));

    private protected void Changes(params ReadOnlySpan<SentChange> changes) =>
        Deliver(FrameKind.Changes, WatchFrames.Changes(changes), count: changes.Length);

    private protected void Progress(ChangePoint point) =>
        Deliver(FrameKind.Progress, WatchFrames.Progress(new WatchProgress(point, 0)));

    private protected bool Deliver(FrameKind kind, byte[] body, long nowMs = 0, int count = 1) =>
        Book.Deliver(kind, body, count, new WatchMoment(nowMs, 1));

    private protected void NextStream()
    {
        Book.OnStreamEnded();
        Book.OnStreamBegan(Cluster);
    }

    /// <summary>The points with which the book asks for a watch now.</summary>
    private protected ChangePoint[] Points(uint id) => Asked().Single(asked => asked.Id == id).Points;

    private protected (uint Id, WatchOperation Operation)[] Requested() =>
        [.. Asked().Select(static asked => (asked.Id, asked.Operation))];

    private protected List<(uint Id, WatchOperation Operation, ChangePoint[] Points)> Asked()
    {
        List<(uint Id, WatchOperation Operation, ChangePoint[] Points)> asked = [];
        ByteBuffer frame = ByteBuffer.Rent();
        while (Book.TakeRequests(frame) > 0)
        {
            ReadOnlySpan<byte> rest = frame.Written;
            while (WatchRequest.TryRead(ref rest, out WatchRequest request))
            {
                ChangePoint[] points = new ChangePoint[request.PointCount];
                for (int i = 0; i < points.Length; i++)
                {
                    points[i] = request.Point(i);
                }

                asked.Add((request.Id, request.Operation, points));
            }

            Assert.True(rest.IsEmpty);
            frame.Length = 0;
        }

        frame.Return();
        return asked;
    }

    /// <summary>Nobody waits in these tests.</summary>
    private sealed class Reader : IWatchReader
    {
        public void OnReady() => Assert.Fail("nobody waits");
    }
}
