namespace Kahuna.Server.Storage;

/// <summary>
/// Port: schedules the log's three kinds of work. The log signals work here; threads, or a simulator, then call the
/// log's steps. Any thread; must not block.
/// </summary>
internal interface ILogShell
{
    /// <summary>A batch was submitted, or a segment may be dropped: <see cref="SegmentedLog.CommitOnce"/>.</summary>
    void WakeCommit();

    /// <summary>A segment is wanted, or one was dropped: <see cref="SegmentedLog.PrepareOnce"/>.</summary>
    void WakePrepare();

    /// <summary>
    /// Entries must be read, or the segment that was read last was dropped: <see cref="SegmentedLog.FetchOnce"/>.
    /// </summary>
    void WakeFetch();
}
