using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Hosting.Tracing;

/// <summary>
/// Decorates a loop's log writer and its sink, and traces appended and persisted entries. The loop calls the writer's
/// side; any thread calls the sink's.
/// </summary>
/// <param name="trace">Receives the events.</param>
/// <param name="sink">The loop.</param>
/// <param name="recovered">The recovered log of a group.</param>
internal sealed class TracedLogWriter(NodeTrace trace, ILogSink sink, Func<GroupId, RecoveredGroup> recovered)
    : ILogWriter, ILogSink
{
    private readonly Lock _gate = new();
    private readonly Dictionary<GroupId, GroupTail> _tails = [];
    private readonly HashSet<GroupId> _touched = [];
    private readonly Queue<(ulong Number, ulong Batch, GroupTail[] Tails)> _submitted = new();
    private ILogWriter _writer = null!;
    private ulong _batch = 1;

    // What the loop writes; it is told to the trace and copied to the writer when it is whole.
    private byte[] _room = [];
    private (GroupId Group, LogIndex First, int Count, int Bytes) _begun;

    public int Pending => _writer.Pending;

    public void Attach(ILogWriter writer) => _writer = writer;

    public Span<byte> BeginAppend(GroupId group, LogIndex first, int count, int bytes)
    {
        _room = _room.Length >= bytes ? _room : new byte[bytes * 2];
        _begun = (group, first, count, bytes);
        return _room.AsSpan(0, bytes);
    }

    public void EndAppend()
    {
        (GroupId group, LogIndex first, int count, int bytes) = _begun;
        ReadOnlySpan<byte> entries = _room.AsSpan(0, bytes);
        if (NodeTrace.Follows(group))
        {
            trace.Appended(group, _batch, first, entries);
        }

        Touch(
            group,
            TailOf(group) with { Last = new LogIndex(first.Value + (ulong)count - 1), LastTerm = LastTermOf(entries) });
        entries.CopyTo(_writer.BeginAppend(group, first, count, bytes));
        _writer.EndAppend();
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
        // The log may report the batch as persisted before this call returns.
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

    public void Fetch(GroupId group, NodeId follower, LogIndex first, int bytesMax) =>
        _writer.Fetch(group, follower, first, bytesMax);

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

    void ILogSink.Fetched(GroupId group, NodeId follower, LogIndex first, ByteBuffer entries) =>
        sink.Fetched(group, follower, first, entries);

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
        return new GroupTail(
            group,
            found.LastIndex,
            found.Terms is { Count: > 0 } terms ? terms[^1].Term : found.StartTerm,
            found.HardState);
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
