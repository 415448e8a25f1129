namespace Kahuna.Server.State.Rows;

/// <summary>Which rows stand in one order of time. Values are not stored.</summary>
internal enum RowHeap : byte
{
    /// <summary>Keys that expire, by their deadline.</summary>
    Deadlines,

    /// <summary>Sessions that remember outcomes, by the time of their last command.</summary>
    LiveSessions,

    /// <summary>Sessions that have no more than their number left, by the time of their last command.</summary>
    IdleSessions,

    /// <summary>Idempotency keys, by the time of their last use.</summary>
    IdempotencyKeys,

    /// <summary>Claims that hold a lock, by the end of their lease.</summary>
    Leases,

    /// <summary>Claims that wait for a lock, by the time at which somebody has to look whether they still do.</summary>
    Waiters,

    /// <summary>Locks whose next claims are still to be granted, by the time since when.</summary>
    Grants,
}
