using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Tracing;

/// <summary>
/// Decorates a node's log and traces what the loops write. The inner log belongs to its opener; any thread.
/// </summary>
internal sealed class TracedLog(ILogStore log, NodeTrace trace) : ILogStore
{
    public string? RefuseWrites => log.RefuseWrites;

    public RecoveredGroup Recovered(GroupId group) => log.Recovered(group);

    public void Replay(GroupId group, LogIndex first, LogIndex last, Action<LogIndex, ReadOnlyMemory<byte>> visit) =>
        log.Replay(group, first, last, visit);

    public ILogWriter OpenWriter(ILogSink sink)
    {
        TracedLogWriter writer = new(trace, sink, log.Recovered);
        writer.Attach(log.OpenWriter(writer));
        return writer;
    }

    public void Release(GroupId group, LogIndex index) => log.Release(group, index);

    public void Abandon(GroupId group) => log.Abandon(group);

    public LogIndex StartOf(GroupId group) => log.StartOf(group);

    public long BytesSince(GroupId group, LogIndex index) => log.BytesSince(group, index);

    public long HeldBytesMax => log.HeldBytesMax;

    public ValueTask DisposeAsync() => ValueTask.CompletedTask;
}
