using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>
/// Steps the shipped keeper of states when it has something to do or something comes due, as the shipped state thread
/// does. Owned by one life of a node.
/// </summary>
internal sealed class CheckpointSteps(SimNode node, CheckpointService keeper, SimRandom random, long delayNs)
{
    private bool _stepping;
    private int _timer;

    public void Wake()
    {
        if (!_stepping)
        {
            _stepping = true;
            node.After((long)random.Exponential(delayNs), () => node.Hung.Use(Step));
        }
    }

    private void Step()
    {
        _stepping = false;
        if (keeper.Step())
        {
            node.Scheduler.Note(SimEvent.KeeperStep, node.Id);
            Wake();
        }
        else if (keeper.Due is var due && due != NodeTime.Never)
        {
            int timer = ++_timer;
            node.After(node.Clock.ToRun(Math.Clamp(due - keeper.Now, 1, 60_000) * 1_000_000), () =>
            {
                if (!_stepping && timer == _timer)
                {
                    _stepping = true;
                    node.Hung.Use(Step);
                }
            });
        }
    }
}
