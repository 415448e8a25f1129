using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage;
using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>
/// The shipped log of one life of a node: runs its steps as the three threads of the shipped shell would, each when the
/// run's time says so, and tells the node's witness what it hears.
/// </summary>
internal sealed class SimLog : ILogStore, ILogShell
{
    private const long SecondNs = 1_000_000_000;

    private readonly SimNode _node;
    private readonly SegmentedLog _log;
    private readonly List<SimLogWriter> _writers = [];
    private long _workedNs;
    private bool _committing;
    private bool _preparing;
    private bool _fetching;

    public SimLog(SimNode node, SegmentedLog log)
    {
        _node = node;
        _log = log;
        log.Attach(this);
        _node.After(SecondNs, Look);
    }

    public long HeldBytesMax => _log.HeldBytesMax;

    public string? RefuseWrites => _log.RefuseWrites;

    public RecoveredGroup Recovered(GroupId group) => _log.Recovered(group);

    public void Replay(GroupId group, LogIndex first, LogIndex last, Action<LogIndex, ReadOnlyMemory<byte>> visit) =>
        _log.Replay(group, first, last, visit);

    public ILogWriter OpenWriter(ILogSink sink)
    {
        SimLogWriter writer = new(_node, _writers.Count, sink);
        writer.Attach(_log.OpenWriter(writer));
        _writers.Add(writer);
        return writer;
    }

    public void Release(GroupId group, LogIndex index) => _log.Release(group, index);

    public void Abandon(GroupId group) => _log.Abandon(group);

    public LogIndex StartOf(GroupId group) => _log.StartOf(group);

    public long BytesSince(GroupId group, LogIndex index) => _log.BytesSince(group, index);

    public ValueTask DisposeAsync() => _log.DisposeAsync();

    /// <summary>All that the log has, for the witness.</summary>
    public GroupImage[] Images(GroupLayout layout)
    {
        List<GroupImage> images = [];
        foreach (GroupId group in LogWitness.All(layout))
        {
            RecoveredGroup found = _log.Recovered(group);
            GroupImage image = new() { HardState = found.HardState };
            images.Add(image);
            image.Restart(found.Start.Value);
            if (found.LastIndex > found.Start)
            {
                _log.Replay(group, found.Start.Next(), found.LastIndex, (first, chunk) =>
                    image.Append(first.Value, SimLogWriter.Ids(chunk.Span)));
            }
        }

        return [.. images];
    }

    void ILogShell.WakeCommit()
    {
        if (!_committing)
        {
            _committing = true;
            _node.After(_node.SyncNs(), () => _node.Hung.Use(Commit));
        }
    }

    void ILogShell.WakePrepare()
    {
        if (!_preparing)
        {
            _preparing = true;
            _node.After(_node.SyncNs(), () => _node.Hung.Use(() =>
            {
                _preparing = false;
                _log.PrepareOnce();
            }));
        }
    }

    void ILogShell.WakeFetch()
    {
        if (!_fetching)
        {
            _fetching = true;
            _node.After(_node.SyncNs() / 4, () => _node.Hung.Use(Fetch));
        }
    }

    private void Commit()
    {
        _committing = false;
        if (_log.CommitOnce())
        {
            _workedNs = _node.Scheduler.NowNs;
            _node.Scheduler.Note(SimEvent.Commit, _node.Id);
            ((ILogShell)this).WakeCommit();
        }
    }

    private void Fetch()
    {
        _fetching = false;
        if (_log.FetchOnce())
        {
            _node.Scheduler.Note(SimEvent.Fetch, _node.Id);
            ((ILogShell)this).WakeFetch();
        }
    }

    /// <summary>About once a second, as the shipped shell does.</summary>
    private void Look()
    {
        if (_node.Scheduler.NowNs - _workedNs >= SecondNs)
        {
            _log.MarkIdle();
        }

        _log.CheckSpace();
        _node.After(SecondNs, Look);
    }
}
