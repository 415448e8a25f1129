using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Tests.State.Locks;
using Kahuna.Tests.Tools;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Partitions.Requests;

/// <summary>
/// What clients cost that do nothing but be there: counted by the garbage collector, so that nothing is left out.
/// </summary>
public sealed class LockFootprintTests
{
    internal const string Content = "locks";

    private const int Count = 100_000;
    private const int LeaseMs = 3_600_000;
    private const long Budget = 100_000_000;

    /// <summary>Questions of one connection that are held back at a time.</summary>
    private const int PerConnection = 1_000;

    [Fact]
    public void A_hundred_thousand_sessions_locks_and_waiters_take_less_than_100_MB_at_their_leader() =>
        Assert.InRange(HeapCommand.InOwnProcess(Content), Budget / 4, Budget);

    internal static long Hold()
    {
        ModelCluster cluster = new(1);
        ModelSink[] connections = [.. Enumerable.Range(0, Count / PerConnection).Select(static _ => new ModelSink())];
        StateLimits limits = new();
        LoopOptions options = new()
        {
            Self = cluster.Ids[0],
            Voters = cluster.Ids,
            StateLimits = limits,
            PreferredLeader = _ => cluster.Ids[0],
            Seed = 1,
        };
        long before = HeapCommand.Live();

        StateMachine state = new(limits);
        for (int i = 0; i < Count; i++)
        {
            Apply(state, LockCommands.Acquire($"orders/{i}", Owner(i), LeaseMs), session: i, number: 1);
        }

        long[] tokens = new long[Count];
        for (int i = 0; i < Count; i++)
        {
            Apply(
                state,
                LockCommands.Acquire($"orders/{i}", Owner(i + 1), LeaseMs, waitMs: LeaseMs),
                session: (i + 1) % Count,
                number: 2);
            tokens[i] = Count + i + 1;
        }

        state.BeginEntry(default, new ClusterTime(limits.CommandLifeMs + 1));
        int sessions = Count;
        while (state.Sessions.HasForgettable(state.Time, limits.SessionIdleMs))
        {
            sessions -= state.Sessions.Sweep(state.Time, limits.SessionIdleMs, 512);
        }

        ReplyFrames replies = new(cluster[1].Loops!.Loops[0], trace: null);
        LockWaiters desk = new(
            options,
            new TurnClock(options.PauseMs, default),
            replies,
            new AppliedState(state),
            new ParkedReads(replies));
        for (int i = 0; i < Count; i++)
        {
            desk.Serve(
                connections[i / PerConnection],
                (uint)(i % PerConnection),
                LockCommands.Await($"orders/{i}", Owner(i + 1), tokens[i], holdMs: 30_000),
                state.Time);
        }

        long taken = HeapCommand.Live() - before;
        Assert.Equal(
            (Count, Count, Count, Count), (sessions, state.Locks.Metrics.Held, state.Locks.Metrics.Waiting, desk.Held));
        GC.KeepAlive(state);
        GC.KeepAlive(desk);
        return taken;
    }

    private static string Owner(int number) => $"worker-{number % Count:x16}";

    private static void Apply(StateMachine state, byte[] bytes, int session, ulong number)
    {
        Assert.True(Command.TryRead(bytes, out Command command));
        command.Flags |= CommandFlags.Session | CommandFlags.Opening;
        command.SessionId = (ulong)session + 1;
        command.Sequence = number;
        state.Apply(in command, null);
    }
}
