using Kahuna.Client.Wire.Buffers;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Tracing;

/// <summary>
/// Stands between a loop and its log writer, both ways, and tells the trace what goes to the log and what the log says is on stable storage. The loop calls the
/// writer's side, any thread the sink's.
/// </summary>
/// <param name="trace">Gets the lines.</param>
/// <param name="sink">The loop.</param>
/// <param name="recovered">What the log holds of a group at the start.</param>
internal sealed class TracedLogWriter(NodeTrace trace, ILogSink sink, Func<GroupId, RecoveredGroup> recovered) : ILogWriter, ILogSink
{
    private readonly Lock _gate = new();
    private readonly Dictionary<GroupId, GroupTail> _tails = [];
    private readonly HashSet<GroupId> _touched = [];
    private readonly Queue<(ulong Number, ulong Batch, GroupTail[] Tails)> _submitted = new();
    private ILogWriter _writer = null!;
    private ulong _batch = 1;

    public int Pending => _writer.Pending;

    public void Attach(ILogWriter writer) => _writer = writer;

    public void Append(GroupId group, LogIndex first, int count, ReadOnlySpan<byte> entries)
    {
        if (NodeTrace.Follows(group))
        {
            trace.Appended(group, _batch, first, entries);
        }

        Touch(group, TailOf(group) with { Last = new LogIndex(first.Value + (ulong)count - 1), LastTerm = LastTermOf(entries) });
        _writer.Append(group, first, count, entries);
    }

    public void Save(GroupId group, in HardState state)
    {
        Touch(group, TailOf(group) with { HardState = state });
        _writer.Save(group, state);
    }

    public void Restart(GroupId group, LogIndex index, Term term)
    {
        if (NodeTrace.Follows(group))
        {
            trace.LogRestarted(group, _batch, index, term);
        }

        Touch(group, TailOf(group) with { Last = index, LastTerm = term });
        _writer.Restart(group, index, term);
    }

    public ulong Submit()
    {
        // The log may say that the batch is on disk before this call returns.
        lock (_gate)
        {
            ulong number = _writer.Submit();
            if (number != 0)
            {
                _submitted.Enqueue((number, _batch, [.. _touched.Select(group => _tails[group])]));
                _touched.Clear();
                _batch++;
            }

            return number;
        }
    }

    public void Fetch(GroupId group, NodeId follower, LogIndex first, int bytesMax) => _writer.Fetch(group, follower, first, bytesMax);

    void ILogSink.Persisted(ulong batch)
    {
        lock (_gate)
        {
            while (_submitted.TryPeek(out var next) && next.Number <= batch)
            {
                _submitted.Dequeue();
                foreach (GroupTail tail in next.Tails)
                {
                    trace.Persisted(next.Batch, tail);
                }
            }
        }

        sink.Persisted(batch);
    }

    void ILogSink.Fetched(GroupId group, NodeId follower, LogIndex first, ByteBuffer entries) => sink.Fetched(group, follower, first, entries);

    void ILogSink.Failed(Exception error) => sink.Failed(error);

    private static Term LastTermOf(ReadOnlySpan<byte> entries)
    {
        Term last = default;
        while (EntryCodec.TryRead(ref entries, out Term term, out _, out _))
        {
            last = term;
        }

        return last;
    }

    private GroupTail TailOf(GroupId group)
    {
        if (_tails.TryGetValue(group, out GroupTail tail))
        {
            return tail;
        }

        RecoveredGroup found = recovered(group);
        return new GroupTail(group, found.LastIndex, found.Terms is { Count: > 0 } terms ? terms[^1].Term : found.StartTerm, found.HardState);
    }

    private void Touch(GroupId group, in GroupTail tail)
    {
        if (NodeTrace.Follows(group))
        {
            _tails[group] = tail;
            _touched.Add(group);
        }
    }
}
