using System.Diagnostics;
using System.Globalization;
using System.Text;
using Kahuna.Client.Wire.Commands;
using Kahuna.Server.Partitions.Locks;
using Kahuna.Server.State;
using Kahuna.Server.State.Locks;
using Kahuna.Tests.Partitions;
using Kahuna.Tests.State.Locks;
using Xunit.Abstractions;

namespace Kahuna.Tests.State;

/// <summary>
/// No command costs more than fifty sets of its size, however the state lies: each kind where it has most to do, among 100,000 rows. Samples of both alternate and medians are compared, so that a machine that is
/// busy otherwise slows both.
/// </summary>
public sealed class CommandCostTests(ITestOutputHelper output)
{
    private const int Rows = 100_000;
    private const int Samples = 301;
    private const double RatioMax = 50;
    private const long Long = 3_600_000;

    private readonly StateMachine _state = new(new StateLimits { HashSecret = new HashSecret(1, 2) });
    private readonly Random _random = new(1);
    private readonly byte[][] _sets = [.. Enumerable.Range(0, Rows).Select(static i => Encode(new Command { Kind = CommandKind.Set, Key = Key(i), Value = new byte[16] }))];

    [Fact]
    public void Key_values_cost_no_more_than_fifty_sets()
    {
        FillKeys();
        Compare("set with a deadline", i => Encode(new Command { Kind = CommandKind.Set, Flags = CommandFlags.Ttl, Key = Key(i * 37), Value = new byte[16], TtlMs = 1 + (i % 7) }));
        Compare("extend", i => Encode(new Command { Kind = CommandKind.Extend, Flags = CommandFlags.Ttl, Key = Key(i * 37), TtlMs = Samples - i + 1 }));
        Compare("numbered set", i => Encode(new Command { Kind = CommandKind.Set, Flags = CommandFlags.Session | CommandFlags.Opening | CommandFlags.ReturnPrevious, Key = Key(i), Value = new byte[16], SessionId = (ulong)i + 1, Sequence = 1 }));
        Compare("increment", static i => Encode(new Command { Kind = CommandKind.Increment, Flags = CommandFlags.Number, Key = Encoding.UTF8.GetBytes($"n{i}"), Number = 1 }));
        Compare("delete", static i => Encode(new Command { Kind = CommandKind.Delete, Key = Key(i) }));
    }

    [Fact]
    public void Locks_that_many_hold_cost_no_more_than_fifty_sets()
    {
        FillKeys();
        for (int i = 0; i < Rows; i++)
        {
            Apply(LockCommands.Acquire("l", Owner(i), Long / 2, mode: LockMode.Shared));
        }

        // Tokens count from 1. The middle of the holders is what a walk from either end reaches last.
        int middle = Rows / 2;
        Compare("fenced set", i => Encode(new Command { Kind = CommandKind.Set, Flags = CommandFlags.Fenced, Key = Key(i), Value = new byte[16], FenceName = Encoding.UTF8.GetBytes("l"), FenceToken = middle + i }));
        Compare("fenced set that is refused", i => Encode(new Command { Kind = CommandKind.Set, Flags = CommandFlags.Fenced, Key = Key(i), Value = new byte[16], FenceName = Encoding.UTF8.GetBytes("l"), FenceToken = Rows + 1 + i }));
        Compare("renewal", i => LockCommands.Extend("l", Owner(middle + i), middle + i + 1, (Long / 2) + i + 1));
        Compare("acquire", static i => LockCommands.Acquire("l", Owner(Rows + i), Long, mode: LockMode.Shared));
        Compare("acquire that waits", static i => LockCommands.Acquire("l", Owner((2 * Rows) + i), Long, waitMs: Long));
        Compare("release", i => LockCommands.Release("l", Owner(middle + i), middle + i + 1));
        _state.BeginEntry(_state.TimeMs + (2 * Long));
        Compare("sweep of leases", static _ => Sweep());
    }

    [Fact]
    public void Locks_that_many_wait_for_cost_no_more_than_fifty_sets()
    {
        FillKeys();
        Apply(LockCommands.Acquire("l", "writer", Long));
        for (int i = 0; i < Rows; i++)
        {
            Apply(LockCommands.Acquire("l", Owner(i), Long, waitMs: Long, mode: LockMode.Shared));
        }

        Assert.Equal(Rows, _state.Locks.Figures.Waiting);
        Apply(LockCommands.Release("l", "writer", 1));

        // Each release of a reader who was let in goes on with those who still wait.
        Compare("release that lets in", static i => LockCommands.Release("l", Owner(i), i + 2));
        Assert.True(_state.Locks.HasGrants);
        Compare("sweep that lets in", static _ => Sweep());
        Assert.True(_state.Locks.HasGrants);
        _state.BeginEntry(_state.TimeMs + Long);
        Compare("sweep of waits that are over", static _ => Sweep());
        Assert.True(_state.Locks.HasGrants);
    }

    [Fact]
    public void Sweeps_of_sessions_cost_no_more_than_fifty_sets()
    {
        FillKeys();
        for (int i = 0; i < Rows; i++)
        {
            ulong number = (ulong)(i / 100) + 1;
            Apply(Encode(new Command
            {
                Kind = CommandKind.Set,
                Flags = CommandFlags.Session | CommandFlags.Opening | CommandFlags.ReturnPrevious,
                Key = Key(i),
                Value = new byte[16],
                SessionId = (ulong)(i % 100) + 1,
                Sequence = number,
                Lag = (ushort)(number - 1),
            }));
        }

        _state.BeginEntry(_state.TimeMs + (2 * Long));
        Compare("sweep of sessions", static _ => Encode(new Command { Kind = CommandKind.SessionSweep, Flags = CommandFlags.Number, Number = 600_000 }));
        Assert.True(_state.Sessions.HasForgettable(_state.TimeMs, Long));
    }

    [Fact]
    public void A_held_answer_ends_at_the_cost_of_no_more_than_fifty_sets()
    {
        FillKeys();
        HeldReads held = new();
        ModelSink sink = new();
        HeldRead[] reads = [.. Enumerable.Range(0, Rows).Select(i => new HeldRead(sink, (uint)i, 1, []))];
        Array.ForEach(reads, held.Add);

        // The oldest first, as their time comes.
        Compare("end of a held answer", i => held.Remove(reads[i]));
    }

    private static byte[] Sweep() => LockCommands.Encode(new Command { Kind = CommandKind.LockSweep, Flags = CommandFlags.Number, Number = LockTable.StepsPerSweep });

    private static byte[] Key(int i) => Encoding.UTF8.GetBytes("key-" + (i % Rows).ToString("D12", CultureInfo.InvariantCulture));

    private static string Owner(int i) => "owner-" + i.ToString(CultureInfo.InvariantCulture);

    private static byte[] Encode(Command command) => LockCommands.EncodeUnchecked(command);

    private void FillKeys() => Array.ForEach(_sets, Apply);

    private void Apply(byte[] bytes)
    {
        Command.TryRead(bytes, out Command command);
        _state.Apply(in command, null);
    }

    private void Compare(string what, Func<int, byte[]> command)
    {
        byte[][] commands = [.. Enumerable.Range(0, Samples).Select(command)];
        Compare(what, i => Apply(commands[i]));
    }

    private void Compare(string what, Action<int> sample)
    {
        long[] own = new long[Samples];
        long[] sets = new long[Samples];
        for (int i = 0; i < Samples; i++)
        {
            byte[] set = _sets[_random.Next(Rows)];
            long start = Stopwatch.GetTimestamp();
            Apply(set);
            sets[i] = Stopwatch.GetTimestamp() - start;
            start = Stopwatch.GetTimestamp();
            sample(i);
            own[i] = Stopwatch.GetTimestamp() - start;
        }

        Array.Sort(own);
        Array.Sort(sets);
        double ratio = own[Samples / 2] / (double)sets[Samples / 2];
        output.WriteLine(string.Create(CultureInfo.InvariantCulture, $"{what}: {ratio:F1} sets ({Stopwatch.GetElapsedTime(0, own[Samples / 2]).TotalMicroseconds:F2} µs)"));
        Assert.True(ratio <= RatioMax, $"{what} costs as much as {ratio:F0} sets");
    }
}
