using Kahuna.Client.Connection;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Simulation.Network;

/// <summary>
/// Connections of clients to nodes: bytes arrive in order after a delay, or the connection ends. Owned by one run.
/// </summary>
internal sealed class ClientNetwork(SimScheduler scheduler, SimConfig config, SimNode[] nodes, PeerNetwork peers)
{
    /// <summary>A node is a client too, when it forwards; its number as such is this and its own.</summary>
    private const int FirstNode = 1_000;

    /// <summary>
    /// How long what a client has sent survives its connection: less than anybody remembers a call for.
    /// </summary>
    private const long LateNsMax = 2_000_000_000;

    private const long AskedAgainNs = 1_000_000_000;

    private readonly SimRandom _random = new SimRandom(config.Seed).Fork(4);
    private readonly SimRandom _watches = new SimRandom(config.Seed).Fork(37);
    private readonly SimRandom _sessionIds = new SimRandom(config.Seed).Fork(9);
    private readonly HashSet<(int Client, int Node)> _cut = [];
    private long _meanNs = config.DelayNs;

    public IReadOnlyList<SimNode> Nodes => nodes;

    public SimScheduler Scheduler => scheduler;

    public SimConfig Config => config;

    public bool IsCut(int client, int node) =>
        client > FirstNode
            ? peers.IsCut(client - FirstNode, node) || peers.IsCut(node, client - FirstNode)
            : _cut.Contains((client, node));

    /// <summary>Some client does not reach some node.</summary>
    public bool HasCuts => _cut.Count > 0;

    public void Cut(int client, int node, bool cut)
    {
        if (cut)
        {
            _cut.Add((client, node));
        }
        else
        {
            _cut.Remove((client, node));
        }
    }

    /// <summary>How often the number of one request was refused to another one.</summary>
    public long NumbersRefused { get; set; }

    /// <summary>How often a number was answered that had lain idle for long.</summary>
    public long NumbersIdle { get; set; }

    /// <summary>How often a session had as many calls under way as it may, and all of them were carried out.</summary>
    public long WindowsFilled { get; set; }

    /// <summary>What a client was answered breaks a rule.</summary>
    public Action<string, string> Break { get; init; } = static (rule, words) => throw new InvalidOperationException(
        $"{rule}: {words}");

    /// <summary>The run.</summary>
    public SimCluster? Cluster { get; init; }

    public void Heal()
    {
        _cut.Clear();
        _meanNs = config.HealedDelayNs;
    }

    public long DelayNs() => (_meanNs / 10) + (long)_random.Exponential(_meanNs);

    /// <summary>Whether what was on its way over a connection that is lost arrives nevertheless, and when.</summary>
    public bool IsLate(out long delayNs)
    {
        delayNs = Math.Min(LateNsMax, (long)_random.Exponential(LateNsMax / 4));
        return _random.Chance(0.5);
    }

    /// <summary>A client's way to the nodes.</summary>
    public ClientChannel Channel(int client) => new(this, client);

    /// <summary>The way of one life of a node to the others, for what it forwards.</summary>
    public ClientChannel ChannelOfNode(int node) => new(this, FirstNode + node);

    /// <summary>A session's id, drawn for this run.</summary>
    public ulong NewSessionId() => IdempotencyKey.AsSession(_sessionIds.Next());

    /// <summary>
    /// One request and one answer. The answer comes to <paramref name="answered"/>, or never: when the way there or
    /// back is cut, or the power of the node fails.
    /// </summary>
    public void Call(int client, int nodeId, UnaryRequest request, TimeSpan timeLeft, Action<UnaryAnswer> answered)
    {
        SimNode node = nodes[nodeId - 1];
        scheduler.After(DelayNs(), () =>
        {
            if (IsCut(client, nodeId))
            {
                return;
            }

            if (!node.IsUp)
            {
                scheduler.After(DelayNs(), () => answered(UnaryAnswer.Refused));
                return;
            }

            scheduler.Note(SimEvent.UnaryCall, nodeId, client);
            node.Serve(client, request, timeLeft, answer => scheduler.After(DelayNs(), () =>
            {
                if (!IsCut(client, nodeId))
                {
                    answered(answer);
                }
            }));
        });
    }

    /// <summary>A client's connections to nodes, each opened when it is asked for.</summary>
    public sealed class ClientChannel(ClientNetwork network, int client) : IFrameChannel
    {
        private readonly List<ClientStream> _streams = [];
        private bool _dead;

        /// <summary>Its owner is gone, and with it all connections.</summary>
        public void Die()
        {
            _dead = true;
            foreach (ClientStream stream in _streams)
            {
                stream.Reset();
            }
        }

        public async ValueTask<IFrameStream> OpenAsync(Uri endpoint, string? authorization, CancellationToken ct)
        {
            int number = int.Parse(endpoint.Host.AsSpan(1), System.Globalization.CultureInfo.InvariantCulture);
            SimNode node = network.Nodes[number - 1];
            TaskCompletionSource<IFrameStream> opened = new(TaskCreationOptions.RunContinuationsAsynchronously);
            network.Scheduler.After(network.DelayNs(), () => Arrive(node, opened, AskedAgainNs));
            using CancellationTokenRegistration limit = ct.UnsafeRegister(_ => opened.TrySetCanceled(ct), null);
            return await opened.Task;
        }

        public async ValueTask<IFrameStream> OpenWatchAsync(Uri endpoint, string? authorization, CancellationToken ct)
        {
            int number = int.Parse(endpoint.Host.AsSpan(1), System.Globalization.CultureInfo.InvariantCulture);
            SimNode node = network.Nodes[number - 1];
            TaskCompletionSource<IFrameStream> opened = new(TaskCreationOptions.RunContinuationsAsynchronously);
            network.Scheduler.After(network._watches.Between(1L, 2 * network._meanNs), () =>
            {
                // Where nobody answers the caller's patience ends it.
                if (node is { IsUp: true, IsPaused: false, Watches: { } serving }
                    && !network.IsCut(client, number)
                    && !opened.Task.IsCompleted)
                {
                    SimRandom delays = network._watches.Fork(network._watches.Next());
                    WatchLink link = new(network.Cluster!, delays, client, node);
                    link.Session = serving.Open(link, network.Cluster!);
                    opened.TrySetResult(new WatchFrameStream(network.Cluster!, link));
                }
                else if (!node.IsUp)
                {
                    opened.TrySetException(new IOException($"node {node.Id} refused the connection"));
                }
            });
            using CancellationTokenRegistration limit = ct.UnsafeRegister(_ => opened.TrySetCanceled(ct), null);
            return await opened.Task;
        }

        public ValueTask DisposeAsync() => ValueTask.CompletedTask;

        private void Arrive(SimNode node, TaskCompletionSource<IFrameStream> opened, long againNs)
        {
            if (_dead)
            {
                return;
            }

            if (network.IsCut(client, node.Id) || node.IsPaused)
            {
                // Nobody answers. The client's system asks again after 1 s, 2 s, 4 s and so on (RFC 6298), until the
                // caller's patience ends it.
                if (!opened.Task.IsCompleted)
                {
                    network.Scheduler.After(againNs, () => Arrive(node, opened, 2 * againNs));
                }

                return;
            }

            if (!node.IsUp)
            {
                opened.TrySetException(new IOException($"node {node.Id} refused the connection"));
                return;
            }

            ClientStream stream = new(network, client, node);
            _streams.RemoveAll(static old => old.HasEnded);
            _streams.Add(stream);
            network.Scheduler.Note(SimEvent.StreamOpen, node.Id, client);
            network.Scheduler.After(network.DelayNs(), () =>
            {
                if (!opened.TrySetResult(stream))
                {
                    stream.Abort();
                }
            });
        }
    }
}
