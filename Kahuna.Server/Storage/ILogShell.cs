namespace Kahuna.Server.Storage;

/// <summary>
/// Port: who runs the log's three kinds of work. The log calls it when there is some; threads (or a simulator) then call the
/// log's step. Any thread; must not block.
/// </summary>
internal interface ILogShell
{
    /// <summary>A batch was submitted, or a segment may be dropped: <see cref="SegmentedLog.CommitOnce"/>.</summary>
    void WakeCommit();

    /// <summary>A segment is wanted, or one was dropped: <see cref="SegmentedLog.PrepareOnce"/>.</summary>
    void WakePrepare();

    /// <summary>Entries are to be read, or the file that was read last was dropped: <see cref="SegmentedLog.FetchOnce"/>.</summary>
    void WakeFetch();
}
