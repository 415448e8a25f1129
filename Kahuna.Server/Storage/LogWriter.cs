using System.Runtime.InteropServices;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Storage;

/// <summary>One loop's writer. Owned by its loop, except for <see cref="Complete"/>, which the log thread calls.</summary>
internal sealed class LogWriter(SegmentedLog log, ILogSink sink) : ILogWriter
{
    private readonly Dictionary<uint, Extent> _extents = [];
    private LogBuffer _open = new();
    private ulong _submitted;
    private ulong _persisted;

    public ILogSink Sink => sink;

    /// <summary>Log thread only: the highest batch in the write that is under way, 0 for none.</summary>
    public ulong Written { get; set; }

    public int Pending => (int)(_submitted - Volatile.Read(ref _persisted));

    public void Append(GroupId group, LogIndex first, int count, ReadOnlySpan<byte> entries)
    {
        // What recovery would refuse must not be written.
        InvariantException.Require(entries.Length <= LogRecord.PayloadBytesMax && LogRecord.CountEntries(entries) == count, "appended bytes are as many entries as said");
        ref Extent extent = ref CollectionsMarshal.GetValueRefOrAddDefault(_extents, group.Value, out bool known);
        if (!known)
        {
            RecoveredGroup found = log.Recovered(group);
            extent = new Extent(found.Start, found.LastIndex);
        }

        InvariantException.Require(first > extent.Start && first <= extent.Last.Next(), "appended entries follow on those of the group");
        extent = extent with { Last = new LogIndex(first.Value + (ulong)count - 1) };
        LogRecord.WriteEntries(_open, group, first, count, entries);
    }

    public void Save(GroupId group, in HardState state) => LogRecord.WriteHardState(_open, group, state);

    public void Restart(GroupId group, LogIndex index, Term term)
    {
        _extents[group.Value] = new Extent(index, index);
        LogRecord.WriteRestart(_open, group, index, term);
    }

    public ulong Submit()
    {
        if (_open.IsEmpty)
        {
            return 0;
        }

        _submitted++;
        _open = log.Submit(new SubmittedBatch(this, _open, _submitted));
        return _submitted;
    }

    public void Fetch(GroupId group, NodeId follower, LogIndex first, int bytesMax) =>
        log.Fetch(new FetchRequest(sink, group, follower, first, bytesMax));

    /// <summary>The batch and those before it are on stable storage.</summary>
    public void Complete(ulong batch)
    {
        Volatile.Write(ref _persisted, batch);
        sink.Persisted(batch);
    }

    /// <summary>A group's log with what this writer added: the index before the first entry, and the last.</summary>
    private readonly record struct Extent(LogIndex Start, LogIndex Last);
}
