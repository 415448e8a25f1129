using Kahuna.Client.Connection;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Nodes;

namespace Kahuna.Tests.Simulation.Network;

/// <summary>Connections of clients to nodes: bytes arrive in order after a delay, or the connection ends. Owned by one run.</summary>
internal sealed class ClientNetwork(SimScheduler scheduler, SimConfig config, SimNode[] nodes)
{
    private readonly SimRandom _random = new SimRandom(config.Seed).Fork(4);
    private readonly HashSet<(int Client, int Node)> _cut = [];
    private long _meanNs = config.DelayNs;

    public IReadOnlyList<SimNode> Nodes => nodes;

    public SimScheduler Scheduler => scheduler;

    public bool IsCut(int client, int node) => _cut.Contains((client, node));

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

    public void Heal()
    {
        _cut.Clear();
        _meanNs = config.HealedDelayNs;
    }

    public long DelayNs() => (_meanNs / 10) + (long)_random.Exponential(_meanNs);

    /// <summary>A client's way to the nodes.</summary>
    public IFrameChannel Channel(int client) => new ClientChannel(this, client);

    private sealed class ClientChannel(ClientNetwork network, int client) : IFrameChannel
    {
        public async ValueTask<IFrameStream> OpenAsync(Uri endpoint, CancellationToken ct)
        {
            int number = int.Parse(endpoint.Host.AsSpan(1), System.Globalization.CultureInfo.InvariantCulture);
            SimNode node = network.Nodes[number - 1];
            TaskCompletionSource<IFrameStream> opened = new(TaskCreationOptions.RunContinuationsAsynchronously);
            network.Scheduler.After(network.DelayNs(), () => Arrive(node, opened));
            using CancellationTokenRegistration limit = ct.UnsafeRegister(_ => opened.TrySetCanceled(ct), null);
            return await opened.Task;
        }

        public ValueTask DisposeAsync() => ValueTask.CompletedTask;

        private void Arrive(SimNode node, TaskCompletionSource<IFrameStream> opened)
        {
            if (network.IsCut(client, node.Id) || node.IsPaused)
            {
                // Nobody answers: the caller's patience ends it.
                return;
            }

            if (!node.IsUp)
            {
                opened.TrySetException(new IOException($"node {node.Id} refused the connection"));
                return;
            }

            ClientStream stream = new(network, client, node);
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
