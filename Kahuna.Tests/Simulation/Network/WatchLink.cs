using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Nodes;

namespace Kahuna.Tests.Simulation.Network;

/// <summary>
/// A watch stream between a client and a node: frames arrive in order after a delay, wait while the way is cut, or are
/// lost with the connection. What the client does not read fills a window, and then waits at the node. Its delays are
/// draws of its own, so that a run with watchers is otherwise as it was. Owned by one run.
/// </summary>
internal sealed class WatchLink(SimCluster cluster, SimRandom random, int client, SimNode node)
{
    private const int WindowBytes = 64 * 1024;
    private const long RetryNs = 50_000_000;

    private readonly Queue<byte[]> _received = new();
    private readonly Way _toNode = new();
    private readonly Way _toClient = new();
    private int _unreadBytes;
    private long _cuts;

    public SimNode Node => node;

    /// <summary>The number of the client.</summary>
    public int Client => client;

    /// <summary>The node's end.</summary>
    public WatchSession? Session { get; set; }

    /// <summary>The client has heard that the stream is over, or has ended it.</summary>
    public bool HasEnded { get; private set; }

    /// <summary>The node may send more.</summary>
    public bool HasRoom => _unreadBytes < WindowBytes;

    /// <summary>How often something had to wait for the way to be whole, or for the node to go on.</summary>
    public long Waits => _cuts + (Session?.Waits ?? 0);

    /// <summary>A frame has arrived, or the end.</summary>
    public Action? Arrived { get; set; }

    /// <summary>The client says hello, and the node does.</summary>
    public void Greet() => Carry(_toNode, () => Session?.Greet());

    public void SendToNode(byte[] frame) => Carry(_toNode, () => Session?.Received(frame));

    public void SendToClient(byte[] frame)
    {
        _unreadBytes += frame.Length;
        Carry(_toClient, () =>
        {
            _received.Enqueue(frame);
            Arrived?.Invoke();
        });
    }

    /// <summary>The node ends the stream, behind what it has sent.</summary>
    public void EndFromNode() => Carry(_toClient, () =>
    {
        HasEnded = true;
        Arrived?.Invoke();
    });

    /// <summary>The client takes a frame; null: none is there.</summary>
    public byte[]? Take()
    {
        if (!_received.TryDequeue(out byte[]? frame))
        {
            return null;
        }

        _unreadBytes -= frame.Length;
        cluster.Scheduler.After(DelayNs(), () => Session?.Wake());
        return frame;
    }

    /// <summary>The client, or the network, ends the stream: what is on its way is lost.</summary>
    public void Abort()
    {
        HasEnded = true;
        _received.Clear();
        WatchSession? session = Session;
        Session = null;
        cluster.Scheduler.After(DelayNs(), () => session?.End());
    }

    private long DelayNs() => (cluster.Config.DelayNs / 10) + (long)random.Exponential(cluster.Config.DelayNs);

    private void Carry(Way way, Action arrive)
    {
        way.Waiting.Enqueue(arrive);
        way.LastNs = Math.Max(way.LastNs, cluster.Scheduler.NowNs + DelayNs());
        cluster.Scheduler.At(way.LastNs, () =>
        {
            way.Due++;
            Pass(way);
        });
    }

    private void Pass(Way way)
    {
        while (way.Due > 0 && !HasEnded)
        {
            if (cluster.Clients.IsCut(client, node.Id))
            {
                _cuts++;
                if (!way.Retries)
                {
                    way.Retries = true;
                    cluster.Scheduler.After(RetryNs, () =>
                    {
                        way.Retries = false;
                        Pass(way);
                    });
                }

                return;
            }

            way.Due--;
            way.Waiting.Dequeue()();
        }
    }

    /// <summary>What is on its way in one direction, in order.</summary>
    private sealed class Way
    {
        public Queue<Action> Waiting { get; } = new();

        public long LastNs { get; set; }

        public int Due { get; set; }

        public bool Retries { get; set; }
    }
}
