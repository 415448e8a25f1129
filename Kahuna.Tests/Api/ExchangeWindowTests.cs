using Kahuna.Server.Api;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Cluster;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Partitions;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Api;

/// <summary>
/// Requests of a stream count as under way until their answers have left the node; past a bound the stream is not read.
/// </summary>
public sealed class ExchangeWindowTests
{
    private const int Mega = 1 << 20;

    [Fact]
    public async Task A_stream_is_not_read_while_as_many_answers_as_it_may_have_under_way_have_not_left()
    {
        const int FrameRequests = 1_000;
        const int FullAfter = Limits.InFlightPerStreamMax / FrameRequests;
        const int Frames = 3 * FullAfter;
        ReplyRoom room = new();
        using PipedExchange exchange = new(Node(out _, room), new CallLimits { ReplyTimeout = LastNet.Span });
        await exchange.GreetAsync();

        // Their key is empty, so the admission answers them while the frame is taken in. Nobody reads the answers.
        int taken = 0;
        Task sent;
        while ((sent = SendBadAsync()).IsCompleted && taken < Frames)
        {
            taken++;
        }

        Assert.Equal(FullAfter, taken);
        Assert.True(room.Used > 0);
        for (int answers = 0; answers < FullAfter + 1; answers++)
        {
            await exchange.ReadAsync(FrameRequests);
        }

        await sent.WaitAsync(LastNet.Span);
        await SendBadAsync().WaitAsync(LastNet.Span);
        exchange.Complete();
        await exchange.ReadAsync(FrameRequests);
        await exchange.Served.WaitAsync(LastNet.Span);
        Assert.Equal(0, room.Used);

        Task SendBadAsync() =>
            exchange.SendAsync(
                FrameRequests, 0, new Command { Kind = CommandKind.Get, Durability = Durability.Persistent });
    }

    [Fact]
    public async Task Commands_that_wait_for_a_leader_elsewhere_take_up_room_until_they_are_answered()
    {
        const int Sets = 200;
        RequestBudget held = new(RequestBudget.NodeBytesMax);
        NoLeader nobody = new();
        using PipedExchange exchange = new(
            Node(out RequestAdmission admission, new ReplyRoom()),
            new CallLimits { WaitingRequests = held, RequestTimeout = LastNet.Span, ReplyTimeout = LastNet.Span });
        admission.Forward = new StreamForwarding(new UnaryExecutor(admission, nobody)).Begin;
        await exchange.GreetAsync();
        byte[] value = new byte[Mega - 1_000];
        Task sending = Task.Run(async () =>
        {
            for (int i = 0; i < Sets; i++)
            {
                await exchange.SendAsync(1, Frame.ForwardFlag, new Command
                {
                    Kind = CommandKind.Set,
                    Durability = Durability.Persistent,
                    Key = "a"u8,
                    Value = value,
                });
            }

            exchange.Complete();
        });

        // Forwarding goes on elsewhere than the taking in of frames: all that were taken in have arrived when as many
        // wait as are counted.
        await UntilAsync(
            () => nobody.Waiting == Sets || (held.Waiting == 1 && nobody.Waiting == held.Used / value.Length),
            () => $"{nobody.Waiting} sets wait for a leader, {held.Waiting} streams for "
                + $"room; {held.Used} bytes are held");
        Assert.InRange(nobody.Waiting, 2, Sets / 10);
        Assert.InRange(held.Used, 1, RequestBudget.NodeBytesMax / 16);

        nobody.GiveUp();
        Assert.Equal(Sets, (await exchange.ReadAsync(Sets))[OutcomeStatus.Busy]);
        await sending;
        await exchange.Served.WaitAsync(LastNet.Span);
        Assert.Equal((0, 0), (held.Used, held.Waiting));
    }

    [Fact]
    public async Task Forwarded_reads_past_the_bound_wait_for_their_turn()
    {
        NoLeader nobody = new();
        Node(out RequestAdmission admission, new ReplyRoom());
        UnaryExecutor calls = new(admission, nobody);
        Task<byte[]>[] reads =
            [.. Enumerable.Range(0, UnaryExecutor.ForwardedValuesMax + 100).Select(_ => ReadAsync(default))];
        await UntilAsync(
            () => nobody.Waiting >= UnaryExecutor.ForwardedValuesMax, () => $"{nobody.Waiting} reads are forwarded");
        Assert.Equal(UnaryExecutor.ForwardedValuesMax, nobody.Waiting);

        // Who goes while it waits leaves its turn to others.
        using CancellationTokenSource gone = new();
        Task<byte[]> cancelled = ReadAsync(gone.Token);
        await gone.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => cancelled);

        nobody.GiveUp();
        await Task.WhenAll(reads).WaitAsync(LastNet.Span);
        Assert.Equal(reads.Length, nobody.Waiting);

        Task<byte[]> ReadAsync(CancellationToken ct)
        {
            ByteBuffer command = ByteBuffer.Rent();
            new Command { Kind = CommandKind.Get, Durability = Durability.Persistent, Key = "a"u8 }.Write(
                command);
            return calls.OutcomeAsync(command, waitMs: 60_000, ct);
        }
    }

    /// <summary>A node whose only partition has no leader; its turns run on the thread that asks for them.</summary>
    private static ClusterService Node(out RequestAdmission admission, ReplyRoom room)
    {
        ClusterView view = new(new ClusterIdentity("test", new NodeId(1), "1", 1, [(new NodeId(1), new Uri("https://127.0.0.1:1"))]), hasEphemeral: false);
        view.ReadCommitIndexFrom(static _ => 0);
        ModelCluster cluster = new(1) { Lends = true };
        cluster.Settle();
        admission = new RequestAdmission(new Router(cluster[1].Loops!, view), Mega) { Room = room };
        return new ClusterService(view, admission, new NodeCredential(new ClusterSecrets()), default);
    }

    private static async Task UntilAsync(Func<bool> holds, Func<string> stand)
    {
        long until = Environment.TickCount64 + (long)LastNet.Span.TotalMilliseconds;
        while (!holds())
        {
            Assert.True(Environment.TickCount64 < until, stand());
            await Task.Delay(1);
        }
    }

    /// <summary>
    /// Keeps what it is to bring to a leader until it gives up; from then on all are answered with Busy. Any thread.
    /// </summary>
    private sealed class NoLeader : IForwarder
    {
        private readonly TaskCompletionSource _givesUp = new(TaskCreationOptions.RunContinuationsAsynchronously);
        private int _waiting;

        public int Waiting => Volatile.Read(ref _waiting);

        public void GiveUp() => _givesUp.TrySetResult();

        public async Task<byte[]> ForwardAsync(
            ReadOnlyMemory<byte> command, bool mayHaveHappened, TimeSpan timeLeft, CancellationToken cancellationToken)
        {
            Interlocked.Increment(ref _waiting);
            await _givesUp.Task;
            return OneOutcome(OutcomeStatus.Busy);
        }

        private static byte[] OneOutcome(OutcomeStatus status)
        {
            ByteBuffer buffer = ByteBuffer.Rent();
            Outcome.WriteError(buffer, status, "No leader was found.");
            byte[] bytes = buffer.Written.ToArray();
            buffer.Return();
            return bytes;
        }
    }
}
