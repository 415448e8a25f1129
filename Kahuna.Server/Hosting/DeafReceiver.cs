using System.Globalization;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting;

/// <summary>
/// Drops the frames of the nodes that a test's file names, as a network that is cut does: the links stay up, and nobody
/// is told. Only tests have it (<see cref="TestFeatures"/>). Owned by the node; any thread.
/// </summary>
internal sealed class DeafReceiver : IPeerReceiver, IDisposable
{
    /// <summary>How often the file is read.</summary>
    private static readonly TimeSpan s_interval = TimeSpan.FromMilliseconds(20);

    private readonly IPeerReceiver _receiver;
    private readonly string _file;
    private readonly Timer _timer;
    private volatile int[] _ignored = [];

    private DeafReceiver(IPeerReceiver receiver, string file)
    {
        _receiver = receiver;
        _file = file;
        Read();
        _timer = new Timer(static self => ((DeafReceiver)self!).Read(), this, s_interval, s_interval);
    }

    /// <summary>The receiver itself, unless a test has named a file.</summary>
    public static IPeerReceiver Around(IPeerReceiver receiver, NodeOptions options) =>
        options.DeafFile is { } file ? new DeafReceiver(receiver, file) : receiver;

    public void Receive(NodeId from, ReadOnlySpan<byte> payload)
    {
        if (!_ignored.Contains((int)from.Value))
        {
            _receiver.Receive(from, payload);
        }
    }

    public void LinkChanged(NodeId peer, bool up) => _receiver.LinkChanged(peer, up);

    public void Dispose() => _timer.Dispose();

    private void Read()
    {
        try
        {
            string text = File.Exists(_file) ? File.ReadAllText(_file) : "";
            _ignored =
            [
                .. text.Split(',', StringSplitOptions.RemoveEmptyEntries | StringSplitOptions.TrimEntries)
                    .Select(static id => int.TryParse(id, CultureInfo.InvariantCulture, out int node) ? node : 0),
            ];
        }
        catch (IOException)
        {
            // It is being written; the next look finds it.
        }
    }
}
