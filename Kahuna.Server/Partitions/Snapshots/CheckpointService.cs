using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Snapshots;

/// <summary>
/// The work of the node's checkpoint thread: brings states to the store, sends them to followers that the log does not
/// reach, takes in those that arrive. It has no thread of its own: its owner calls <see cref="Step"/> until that
/// is false, and again when woken or at <see cref="Due"/>. Loops and links reach it by messages only, from any
/// thread; everything else belongs to the thread that steps.
/// </summary>
internal sealed class CheckpointService : ICheckpointInbox, IDisposable
{
    private readonly Lock _lock = new();
    private readonly Queue<CheckpointEvent> _inbox = new();
    private readonly TimeProvider _clock;
    private readonly CheckpointOptions _options;
    private readonly StateFlush _flush;
    private readonly SnapshotSource _source;
    private readonly List<SnapshotWanted> _freshening = [];
    private readonly SnapshotSink _sink;
    private readonly Action<Exception> _failed;
    private Action _wake = static () => { };
    private int _arrivedBytes;
    private bool _closed;

    /// <param name="options">Sizes and rates.</param>
    /// <param name="ports">What it reaches the world through.</param>
    /// <param name="failed">Gets the error after which the node must stop; once.</param>
    public CheckpointService(CheckpointOptions options, CheckpointPorts ports, Action<Exception> failed)
    {
        _options = options;
        Counts = ports.Counts;
        _clock = ports.Clock;
        _failed = failed;
        _flush = new StateFlush(options, ports) { Over = SendFresh };
        _source = new SnapshotSource(options, ports);
        _sink = new SnapshotSink(options, ports);
    }

    /// <summary>
    /// When <see cref="Step"/> is due without being woken, in ms of the clock; <see cref="long.MaxValue"/> when it is
    /// not.
    /// </summary>
    public NodeTime Due =>
        _closed ? NodeTime.Never : NodeTime.Min(_flush.Due, NodeTime.Min(_source.Due, _sink.Due));

    /// <summary>What was done so far; any thread.</summary>
    public CheckpointCounts Counts { get; }

    /// <summary>Ms of the clock.</summary>
    public NodeTime Now => _clock.Now();

    /// <summary>Names the loops and who is to be told that there is work; before the first message.</summary>
    public void Attach(ICheckpointLoops loops, Action wake)
    {
        _flush.Loops = loops;
        _source.Loops = loops;
        _sink.Loops = loops;
        _wake = wake;
    }

    /// <inheritdoc/>
    public void Post(CheckpointEvent message)
    {
        lock (_lock)
        {
            _inbox.Enqueue(message);
        }

        _wake();
    }

    /// <inheritdoc/>
    public void Receive(NodeId from, ReadOnlySpan<byte> frame)
    {
        lock (_lock)
        {
            if (_arrivedBytes > _options.ArrivedBytesMax)
            {
                return;
            }

            _arrivedBytes += frame.Length;
            ByteBuffer copy = ByteBuffer.Rent(frame.Length);
            copy.Append(frame);
            _inbox.Enqueue(new SnapshotArrived(SnapshotFrame.ReadHeader(frame).Group, from, copy));
        }

        _wake();
    }

    /// <summary>Does one piece of work. False when there is none now.</summary>
    public bool Step()
    {
        if (_closed)
        {
            return false;
        }

        try
        {
            if (TryTake(out CheckpointEvent? message))
            {
                Handle(message!);
                return true;
            }

            NodeTime now = Now;
            return _flush.Step(now) || _source.Step(now) || _sink.Step(now);
        }
        catch (Exception error)
        {
            // Whatever it was, what is stored cannot be relied on from here: the node stops and says so.
            _closed = true;
            _failed(error);
            return false;
        }
    }

    /// <summary>Drops what is under way; the store is the caller's. Not while a step runs.</summary>
    public void Dispose()
    {
        _closed = true;
        _flush.Dispose();
        _source.Dispose();
        _sink.Dispose();
    }

    /// <summary>The state that followers wait for was stored, or that failed: they get what is stored.</summary>
    private void SendFresh(GroupId group)
    {
        foreach (SnapshotWanted wanted in _freshening.FindAll(wanted => wanted.Group == group))
        {
            _freshening.Remove(wanted);
            _source.Begin(wanted, Now);
        }
    }

    private bool TryTake(out CheckpointEvent? message)
    {
        lock (_lock)
        {
            if (!_inbox.TryDequeue(out message))
            {
                return false;
            }

            if (message is SnapshotArrived arrived)
            {
                _arrivedBytes -= arrived.Frame.Length;
            }

            return true;
        }
    }

    private void Handle(CheckpointEvent message)
    {
        NodeTime now = Now;
        switch (message)
        {
            case FlushDue due:
                _flush.Want(due.Group);
                break;
            case ViewBegun { Transfer: 0 } begun:
                _flush.Begun(begun, now);
                break;
            case ViewBegun begun:
                _source.Begun(begun, now);
                break;
            case RecordsTaken { Transfer: 0 } taken:
                _flush.Taken(taken, now);
                break;
            case RecordsTaken taken:
                _source.Taken(taken, now);
                break;
            case SnapshotWanted wanted:
                _freshening.RemoveAll(other => other.Group == wanted.Group && other.Follower == wanted.Follower);
                if (!wanted.Group.IsEphemeral && _flush.Freshen(wanted.Group))
                {
                    _freshening.Add(wanted);
                }
                else
                {
                    _source.Begin(wanted, now);
                }

                break;
            case SnapshotsVoid ended:
                _freshening.RemoveAll(wanted => wanted.Group == ended.Group);
                _source.End(ended.Group);
                break;
            case InstallAnswered answered:
                _sink.Answered(answered, now);
                break;
            case SnapshotArrived { Frame: var frame } arrived:
                if (frame.Array[4] == SnapshotFrame.ChunkKind)
                {
                    _sink.Arrived(arrived.From, frame.Written, now);
                }
                else
                {
                    _source.Answered(arrived.From, SnapshotFrame.ReadHeader(frame.Written), now);
                }

                frame.Return();
                break;
        }
    }
}
