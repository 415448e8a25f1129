using System.Diagnostics;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Transport;

namespace Kahuna.Tests.Tools.Serial;

/// <summary>
/// The shipped link between two nodes over loopback, with TLS, from frames to frames: what one link can do at most. As
/// a leader's loop, one thread sends, with a few frames on the way; the link's own thread receives.
/// </summary>
internal sealed class LonePeerLink : IPeerReceiver, IAsyncDisposable
{
    private const int OnTheWayMax = 4;

    private readonly SemaphoreSlim _places = new(OnTheWayMax);
    private readonly byte[] _payload;
    private readonly int _callers;
    private TestNode _receiver = null!;
    private TestNode _sender = null!;

    private LonePeerLink(int callers)
    {
        _callers = callers;
        _payload = new byte[callers * LoneLog.CommandBytes];
    }

    /// <summary>Links both nodes.</summary>
    /// <param name="directory">Where their certificate lies.</param>
    /// <param name="callers">Writes in a frame.</param>
    public static async Task<LonePeerLink> OpenAsync(string directory, int callers)
    {
        LonePeerLink link = new(callers);
        NodeTls tls = new DevelopmentCertificates(directory, TimeProvider.System).Ensure([]);
        link._receiver = await TestNode.StartAsync(TestNode.Options(1, tls), receiver: link);
        link._sender = await TestNode.StartAsync(TestNode.Options(2, tls, link._receiver.Address));
        link._sender.Frames.WaitChanges(true);
        return link;
    }

    /// <summary>Time of one write, in ns, over as many of them.</summary>
    public double Run(int operations)
    {
        int frames = Math.Max(1, operations / _callers);
        long began = Stopwatch.GetTimestamp();
        for (int i = 0; i < frames; i++)
        {
            _places.Wait();
            if (!_sender.Send(1, _payload))
            {
                throw new MeasureException("a frame was dropped");
            }
        }

        for (int i = 0; i < OnTheWayMax; i++)
        {
            _places.Wait();
        }

        double taken = Stopwatch.GetElapsedTime(began).TotalNanoseconds;
        _places.Release(OnTheWayMax);
        return taken / (frames * (double)_callers);
    }

    /// <inheritdoc/>
    public void Receive(NodeId from, ReadOnlySpan<byte> payload) => _places.Release();

    /// <inheritdoc/>
    public void LinkChanged(NodeId peer, bool up)
    {
    }

    /// <inheritdoc/>
    public async ValueTask DisposeAsync()
    {
        await _sender.DisposeAsync();
        await _receiver.DisposeAsync();
        _places.Dispose();
    }
}
