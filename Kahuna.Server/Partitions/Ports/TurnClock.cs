using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// The time of a loop's turns: it stands still within a turn. It also tells whether the process was paused lately
/// (docs/adr/0020-failover.md). Owned by one loop; not thread-safe.
/// </summary>
/// <param name="pauseMs">A gap of more than this between two turns is a pause of the process.</param>
/// <param name="now">When the loop is built; valid until the first turn.</param>
internal sealed class TurnClock(int pauseMs, NodeTime now)
{
    private bool _hasTurned;

    /// <summary>When the turn began.</summary>
    public NodeTime Now { get; private set; } = now;

    /// <summary>When the first turn after the last pause began; 0 when there was none.</summary>
    public NodeTime Resumed { get; private set; }

    /// <summary>
    /// The process was paused a short time ago: what arrives now may have waited here as long as the pause lasted.
    /// </summary>
    public bool IsAfterPause => Resumed > default(NodeTime) && Now - Resumed < pauseMs;

    /// <summary>A turn begins.</summary>
    public void BeginTurn(NodeTime now)
    {
        // The time between the construction and the first turn is spent on loading what is stored.
        if (_hasTurned && now - Now > pauseMs)
        {
            Resumed = now;
        }

        _hasTurned = true;
        Now = now;
    }
}
