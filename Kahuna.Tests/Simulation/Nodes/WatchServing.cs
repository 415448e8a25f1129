using Kahuna.Server.Api.Watches;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Network;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>
/// Serves the watch streams of one life of a node, in the place of the shipped hub, which is bound to the thread pool:
/// with the shipped dispatcher, or by looking at every stream from time to time. Owned by its node.
/// </summary>
internal sealed class WatchServing
{
    private readonly List<WatchSession> _sessions = [];
    private readonly SimNode _node;
    private readonly int _life;
    private readonly SimRandom _random;

    public WatchServing(SimNode node, SimConfig config, ChangeLogs logs, ulong start)
    {
        _node = node;
        _life = node.Life;
        _random = new SimRandom(start).Fork(38);
        Logs = logs;
        Dispatcher = config.DispatchesWatches ? new WatchDispatcher(logs, Queue) : null;
    }

    public SimNode Node => _node;

    public ChangeLogs Logs { get; }

    public SimRandom Random => _random;

    /// <summary>Wakes the streams that a change concerns; null: each is looked at from time to time.</summary>
    public WatchDispatcher? Dispatcher { get; }

    /// <summary>How often the node was paused when something was to be done.</summary>
    public long Waits { get; private set; }

    /// <summary>That life has not ended.</summary>
    public bool IsAlive => _node.Life == _life && _node.IsUp;

    public WatchSession Open(WatchLink link, SimCluster cluster)
    {
        WatchSession session = new(this, link, cluster);
        _sessions.RemoveAll(static old => old.HasEnded);
        _sessions.Add(session);
        return session;
    }

    /// <summary>The process is gone; nobody is told when the power failed.</summary>
    public void Die(bool silently)
    {
        foreach (WatchSession session in _sessions)
        {
            session.Die(silently);
        }
    }

    /// <summary>Connections of clients are lost.</summary>
    public void Reset()
    {
        foreach (WatchSession session in _sessions.ToArray())
        {
            session.Reset();
        }
    }

    /// <summary>Runs something of that life some time from now; a paused node does it later.</summary>
    public void Later(double meanMs, Action action) =>
        After(1_000 + (long)(_random.Exponential(meanMs) * 1_000_000), action);

    /// <inheritdoc cref="Later"/>
    public void After(long delayNs, Action action) => _node.Scheduler.After(delayNs, () => RunOrWait(action));

    private void RunOrWait(Action action)
    {
        if (IsAlive && _node.IsPaused)
        {
            Waits++;
            Later(50, action);
        }
        else if (IsAlive)
        {
            action();
        }
    }

    private void Queue(IThreadPoolWorkItem item) => Later(0.1, item.Execute);
}
