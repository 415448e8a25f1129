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
using Kahuna.Wire.Outcomes;
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
    private const int LeaseMs = 30_000;

    private static readonly byte[] s_owner = new byte[16];

    private readonly Queue<ITurns> _runnable = new();
    private readonly ForgetfulLog _log = new();
    private readonly LoopSet _loops;
    private readonly RequestAdmission _admission;
    private readonly CommandKind _kind;
    private readonly ReadOnlySequence<byte>[] _frames;
    private readonly CountingSink _sink = new();
    private readonly int _callers;
    private int _next;
    private FencingToken _token = new(1);

    /// <param name="kind">What the callers ask for; every second frame of acquisitions is one of releases.</param>
    /// <param name="callers">Requests of a frame.</param>
    /// <param name="times">Counts the answers; null: they are not counted.</param>
    public LoneLoop(CommandKind kind, int callers, IReadOnlyList<OperationTimes>? times)
    {
        (_kind, _callers) = (kind, callers);
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
        ReadOnlySequence<byte>[] frames = [.. Enumerable.Range(0, operations / _callers).Select(_ => NextFrame())];
        long began = Stopwatch.GetTimestamp();
        foreach (ReadOnlySequence<byte> frame in frames)
        {
            _sink.Due = _callers;
            _admission.Accept(frame, _sink, null);
            Settle();
            if (_sink.Due != 0)
            {
                throw new MeasureException(
                    FormattableString.Invariant($"{_sink.Due} of {_callers} requests have no answer"));
            }
        }

        double ns = Stopwatch.GetElapsedTime(began).TotalNanoseconds / (frames.Length * (double)_callers);
        return _sink.Status == (_kind == CommandKind.Get ? OutcomeStatus.NotFound : OutcomeStatus.Applied)
            ? ns
            : throw new MeasureException(FormattableString.Invariant($"a request ended as {_sink.Status}"));
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

    private ReadOnlySequence<byte> NextFrame()
    {
        if (_kind != CommandKind.LockAcquire)
        {
            return _frames[_next++ % _frames.Length];
        }

        // A lock is released by the frame after the one that has acquired it.
        int frame = _next++ / 2 % _frames.Length;
        return _next % 2 == 1 ? _frames[frame] : FrameOf(CommandKind.LockRelease, frame * _callers);
    }

    private ReadOnlySequence<byte> FrameOf(CommandKind kind, int first)
    {
        ByteBuffer frame = ByteBuffer.Rent();
        Frame.Begin(frame, FrameKind.Requests);
        for (int i = 0; i < _callers; i++)
        {
            byte[] key = Encoding.ASCII.GetBytes(string.Create(CultureInfo.InvariantCulture, $"bench:{first + i}"));
            Frame.AppendRequest(frame, (uint)i, 0, CommandOf(kind, key));
        }

        Frame.End(frame, _callers);
        ReadOnlySequence<byte> message = new(frame.Written[Frame.GrpcPrefixBytes..].ToArray());
        frame.Return();
        return message;
    }

    private Command CommandOf(CommandKind kind, byte[] key)
    {
        switch (kind)
        {
            case CommandKind.LockAcquire:
                LockBody claim = new() { Mode = LockMode.Exclusive, Owner = s_owner };
                byte[] form = new byte[claim.EncodedBytes];
                claim.Write(form);
                return LockAcquire.ToCommand(key, form, LeaseMs, null) with { Durability = Durability.Persistent };
            case CommandKind.LockRelease:
                Command release = LockRelease.ToCommand(key, s_owner, _token, onlyPlace: false);
                release.Durability = Durability.Persistent;
                _token = new FencingToken(_token.Value + 1);
                return release;
            default:
                return new Command
                {
                    Kind = kind,
                    Durability = Durability.Persistent,
                    Key = key,
                    Value = kind == CommandKind.Set ? new byte[ValueBytes] : [],
                };
        }
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

        /// <summary>How the first request of the last frame of answers ended.</summary>
        public OutcomeStatus Status { get; private set; }

        public override bool IsClosed => false;

        public override void Deliver(ByteBuffer frame, int count)
        {
            Due -= count;
            Frame.End(frame, count);
            Frame.TryGetPayload(frame.Written[Frame.GrpcPrefixBytes..], out ReadOnlySpan<byte> payload);
            Status = (OutcomeStatus)payload[Frame.HeaderBytes + Frame.ReplyHeaderBytes];
            frame.Return();
        }
    }
}
