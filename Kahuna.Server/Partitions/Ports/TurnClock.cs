namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// The time of a loop's turns: it stands still within a turn. It also tells whether the process was paused lately
/// (docs/adr/0020-failover.md). Owned by one loop; not thread-safe.
/// </summary>
/// <param name="pauseMs">A gap of more than this between two turns is a pause of the process.</param>
/// <param name="nowMs">Monotonic ms at which the loop is built; valid until the first turn.</param>
internal sealed class TurnClock(int pauseMs, long nowMs)
{
    private bool _hasTurned;

    /// <summary>Monotonic ms at the beginning of the turn.</summary>
    public long NowMs { get; private set; } = nowMs;

    /// <summary>Monotonic ms of the first turn after the last pause; 0 when there was none.</summary>
    public long ResumedMs { get; private set; }

    /// <summary>
    /// The process was paused a short time ago: what arrives now may have waited here as long as the pause lasted.
    /// </summary>
    public bool IsAfterPause => ResumedMs > 0 && NowMs - ResumedMs < pauseMs;

    /// <summary>A turn begins.</summary>
    public void BeginTurn(long nowMs)
    {
        // The time between the construction and the first turn is spent on loading what is stored.
        if (_hasTurned && nowMs - NowMs > pauseMs)
        {
            ResumedMs = nowMs;
        }

        _hasTurned = true;
        NowMs = nowMs;
    }
}
