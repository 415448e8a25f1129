using System.Buffers;
using System.Diagnostics;
using System.Globalization;
using System.Text;
using Kahuna.Server.Api;
using Kahuna.Server.Cluster;
using Kahuna.Server.Partitions.Loops;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Checkpoints;
using Kahuna.Tests.Partitions;
using Kahuna.Tests.Storage;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Routing;

namespace Kahuna.Tests.Tools.Serial;

/// <summary>
/// The shipped loop of one partition, from the bytes of a frame of requests to the bytes of their answers, with a log
/// that costs nothing and nobody else: what one loop can do at most. One thread.
/// </summary>
internal sealed class LoneLoop : ITurnScheduler, IPeerTransport, ILeadershipSink
{
    private const int Keys = 10_000;
    private const int ValueBytes = 128;
    private const int TickMs = 50;

    private readonly Queue<ITurns> _runnable = new();
    private readonly ForgetfulLog _log = new();
    private readonly LoopSet _loops;
    private readonly RequestAdmission _admission;
    private readonly ReadOnlySequence<byte>[] _frames;
    private readonly CountingSink _sink = new();
    private readonly int _callers;
    private int _next;

    /// <param name="kind">What the callers ask for.</param>
    /// <param name="callers">Requests of a frame.</param>
    /// <param name="times">Counts the answers; null: they are not counted.</param>
    public LoneLoop(CommandKind kind, int callers, IReadOnlyList<OperationTimes>? times)
    {
        _callers = callers;
        NodeId self = new(1);
        LoopOptions options = new()
        {
            Self = self,
            Voters = [self],
            PreferredLeader = _ => self,
            Seed = 1,
            TickMs = TickMs,
            FlushLogBytes = long.MaxValue,

        };
        FileStateStore states = new(new ModelDisk(), "/state");
        CheckpointService keeper = new(
            new CheckpointOptions { Self = self, StateLimits = options.StateLimits, FirstTransfer = 1 },
            new CheckpointPorts(states, _log, this, TimeProvider.System, static _ => { }),
            static error => throw new InvalidOperationException(error.Message, error));
        _loops = new LoopSet(options, new LoopPorts(1, TimeProvider.System, this, _log, this, this)
        {
            States = states,
            Checkpoints = keeper,
            FatalErrors = RethrownErrors.Shared,
            Times = times,
        });
        keeper.Attach(_loops, static () => { });
        ClusterView view = new(
            new ClusterIdentity("test", self, "1", 1, [(self, new Uri("https://127.0.0.1:1"))]), hasEphemeral: false);
        view.ReadCommitIndexFrom(static _ => 0);
        _admission = new RequestAdmission(new Router(_loops, view), 1 << 20);
        _frames = [.. Enumerable.Range(0, Keys / callers).Select(i => FrameOf(kind, i * callers))];
        while (!_loops.Group(0).Status.Serving)
        {
            _loops.Loops[0].PostTick();
            Settle();
        }
    }

    /// <summary>Time of one operation, in ns, over as many of them.</summary>
    public double Run(int operations)
    {
        int rounds = operations / _callers;
        long began = Stopwatch.GetTimestamp();
        for (int i = 0; i < rounds; i++)
        {
            _sink.Due = _callers;
            _admission.Accept(_frames[_next++ % _frames.Length], _sink, null);
            Settle();
            if (_sink.Due != 0)
            {
                throw new MeasureException(
                    FormattableString.Invariant($"{_sink.Due} of {_callers} requests have no answer"));
            }
        }

        return Stopwatch.GetElapsedTime(began).TotalNanoseconds / (rounds * (double)_callers);
    }

    /// <inheritdoc/>
    public void Schedule(ITurns loop, bool mayRunInline) => _runnable.Enqueue(loop);

    /// <inheritdoc/>
    public void Later(Action action, int ms)
    {
    }

    /// <inheritdoc/>
    public ByteBuffer BeginFrame() => ByteBuffer.Rent();

    /// <inheritdoc/>
    public bool HasWaiting(NodeId peer) => false;

    /// <inheritdoc/>
    public bool TrySend(NodeId peer, ByteBuffer frame, bool isUrgent)
    {
        frame.Return();
        return false;
    }

    /// <inheritdoc/>
    public void LeadershipChanged(int partition, PartitionStatus status)
    {
    }

    /// <inheritdoc/>
    public void SlotsChanged(SlotMap slots)
    {
    }

    /// <inheritdoc/>
    public void PartitionFailed(int partition, Exception error) =>
        throw new InvalidOperationException(error.Message, error);

    /// <inheritdoc/>
    public void StorageFailed(Exception error) => throw new InvalidOperationException(error.Message, error);

    private ReadOnlySequence<byte> FrameOf(CommandKind kind, int first)
    {
        ByteBuffer frame = ByteBuffer.Rent();
        Frame.Begin(frame, FrameKind.Requests);
        byte[] value = kind == CommandKind.Set ? new byte[ValueBytes] : [];
        for (int i = 0; i < _callers; i++)
        {
            Frame.AppendRequest(frame, (uint)i, 0, new Command
            {
                Kind = kind,
                Durability = Durability.Persistent,
                Key = Encoding.ASCII.GetBytes(string.Create(CultureInfo.InvariantCulture, $"bench:{first + i}")),
                Value = value,
            });
        }

        Frame.End(frame, _callers);
        ReadOnlySequence<byte> message = new(frame.Written[Frame.GrpcPrefixBytes..].ToArray());
        frame.Return();
        return message;
    }

    private void Settle()
    {
        do
        {
            while (_runnable.TryDequeue(out ITurns? loop))
            {
                loop.RunTurns(1);
            }
        }
        while (_log.Store());
    }

    private sealed class CountingSink() : ReplySink(1)
    {
        public int Due { get; set; }

        public override bool IsClosed => false;

        public override void Deliver(ByteBuffer frame, int count)
        {
            Due -= count;
            frame.Return();
        }
    }
}
