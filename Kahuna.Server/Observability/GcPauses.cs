using System.Diagnostics.Tracing;

namespace Kahuna.Server.Observability;

/// <summary>
/// Counts the pauses of the garbage collector and keeps the longest and the latest ones. Reads the runtime's events.
/// Any thread; one per process.
/// </summary>
internal sealed class GcPauses : EventListener
{
    private const int SuspendBegin = 9;
    private const int RestartEnd = 3;
    private const EventKeywords GcKeyword = (EventKeywords)0x1;

    /// <summary>Number of latest pauses kept, enough for an occasional reader to see each of them.</summary>
    private const int LatestMax = 256;

    private readonly long[] _latestTicks = new long[LatestMax];
    private long _begunAt;
    private long _count;
    private long _longestTicks;

    /// <summary>The instance of this process.</summary>
    public static GcPauses Shared { get; } = new();

    public long Count => Volatile.Read(ref _count);

    /// <summary>Longest pause of all threads since the start.</summary>
    public TimeSpan Longest => TimeSpan.FromTicks(Volatile.Read(ref _longestTicks));

    /// <summary>The latest pauses, oldest first, at most 256.</summary>
    public TimeSpan[] Latest()
    {
        long count = Count;
        int kept = (int)Math.Min(count, LatestMax);
        TimeSpan[] latest = new TimeSpan[kept];
        for (int i = 0; i < kept; i++)
        {
            latest[i] = TimeSpan.FromTicks(Volatile.Read(ref _latestTicks[(count - kept + i) % LatestMax]));
        }

        return latest;
    }

    protected override void OnEventSourceCreated(EventSource eventSource)
    {
        if (eventSource.Name == "Microsoft-Windows-DotNETRuntime")
        {
            EnableEvents(eventSource, EventLevel.Informational, GcKeyword);
        }
    }

    protected override void OnEventWritten(EventWrittenEventArgs eventData)
    {
        switch (eventData.EventId)
        {
            case SuspendBegin:
                _begunAt = eventData.TimeStamp.Ticks;
                break;
            case RestartEnd when _begunAt != 0:
                long ticks = eventData.TimeStamp.Ticks - _begunAt;
                _begunAt = 0;
                Volatile.Write(ref _latestTicks[_count % LatestMax], ticks);
                Volatile.Write(ref _count, _count + 1);
                if (ticks > Volatile.Read(ref _longestTicks))
                {
                    Volatile.Write(ref _longestTicks, ticks);
                }

                break;
        }
    }
}
