using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// Says when this node had everything that its leader had committed, for those who watch its changes. Owned by one
/// group; not thread-safe.
/// </summary>
internal sealed class ViewAge(LoopOptions options, TurnClock clock)
{
    private NodeTime _tickedAt = clock.Now;
    private NodeTime _trustedFrom;

    /// <summary>The last time at which this node is known to have had everything; null: none yet.</summary>
    public NodeTime? CaughtUpAt { get; private set; }

    /// <summary>
    /// A tick. After a standstill, what this node takes for new may be as old as that: for two election timeouts it
    /// does not say that it has everything.
    /// </summary>
    public void Tick()
    {
        int electionMs = options.ElectionTicks * options.TickMs;
        if (clock.Now - _tickedAt > electionMs / 2)
        {
            _trustedFrom = clock.Now + (2 * electionMs);
        }

        _tickedAt = clock.Now;
    }

    /// <summary>
    /// This node had everything at this time. It is no count of ticks: a group that stands still counts none.
    /// </summary>
    public void CaughtUp(AppliedState applied, NodeTime at)
    {
        if (_tickedAt >= _trustedFrom && (CaughtUpAt is not { } known || at > known))
        {
            CaughtUpAt = at;
            applied.Changes?.CaughtUp(at);
        }
    }
}
