using System.Diagnostics;
using System.Globalization;
using System.Text;
using Kahuna.Client.Sequences;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.KeyValues;
using Kahuna.Server.State.Locks;
using Kahuna.Server.State.Meta;
using Kahuna.Server.State.Rows;
using Kahuna.Tests.Partitions;
using Kahuna.Tests.State.Locks;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Xunit.Abstractions;

namespace Kahuna.Tests.State;

/// <summary>
/// No command walks what others have stored: each kind where it has most to do, among 100,000 rows, against a set. The
/// aim is fifty sets, and the output says how many each costs; how many exactly depends on the machine's caches. So the
/// test fails only at ten times as many, which a walk of the rows exceeds by far.
/// Samples of both alternate and medians are compared, so that a machine that is busy otherwise slows both.
/// </summary>
public sealed class CommandCostTests(ITestOutputHelper output)
{
    private const int Rows = 100_000;
    private const int Samples = 301;
    private const double RatioMax = 500;
    private const long Long = 3_600_000;

    private readonly StateMachine _state = new(new StateLimits { HashSecret = new HashSecret(1, 2) });
    private readonly Random _random = new(1);
    private readonly byte[][] _sets =
    [
        .. Enumerable.Range(0, Rows)
            .Select(static i => Encode(new Command { Kind = CommandKind.Set, Key = Key(i), Value = new byte[16] })),
    ];

    [Fact]
    public void Key_values_walk_nothing()
    {
        FillKeys();
        Compare("set with a deadline", i =>
            Encode(new Command
            {
                Kind = CommandKind.Set,
                Flags = CommandFlags.Ttl,
                Key = Key(i * 37),
                Value = new byte[16],
                TtlMs = 1 + (i % 7),
            }));
        Compare("extend", i =>
            Encode(new Command
            {
                Kind = CommandKind.Extend,
                Flags = CommandFlags.Ttl,
                Key = Key(i * 37),
                TtlMs = Samples - i + 1,
            }));
        Compare("numbered set", i =>
            Encode(new Command
            {
                Kind = CommandKind.Set,
                Flags = CommandFlags.Session | CommandFlags.Opening | CommandFlags.ReturnPrevious,
                Key = Key(i),
                Value = new byte[16],
                SessionId = (ulong)i + 1,
                Sequence = 1,
            }));
        Compare("increment", static i =>
            Encode(new Command
            {
                Kind = CommandKind.Increment,
                Flags = CommandFlags.Number,
                Key = Encoding.UTF8.GetBytes($"n{i}"),
                Number = 1,
            }));
        Compare("delete", static i => Encode(new Command { Kind = CommandKind.Delete, Key = Key(i) }));
    }

    [Fact]
    public void Locks_that_many_hold_walk_nothing()
    {
        FillKeys();
        for (int i = 0; i < Rows; i++)
        {
            Apply(LockCommands.Acquire("l", Owner(i), Long / 2, mode: LockMode.Shared));
        }

        // Tokens count from 1. The middle of the holders is what a walk from either end reaches last.
        int middle = Rows / 2;
        Compare("fenced set", i =>
            Encode(new Command
            {
                Kind = CommandKind.Set,
                Flags = CommandFlags.Fenced,
                Key = Key(i),
                Value = new byte[16],
                FenceName = Encoding.UTF8.GetBytes("l"),
                FenceToken = middle + i,
            }));
        Compare("fenced set that is refused", i =>
            Encode(new Command
            {
                Kind = CommandKind.Set,
                Flags = CommandFlags.Fenced,
                Key = Key(i),
                Value = new byte[16],
                FenceName = Encoding.UTF8.GetBytes("l"),
                FenceToken = Rows + 1 + i,
            }));
        Compare("renewal", i => LockCommands.Extend("l", Owner(middle + i), middle + i + 1, (Long / 2) + i + 1));
        Compare("acquire", static i => LockCommands.Acquire("l", Owner(Rows + i), Long, mode: LockMode.Shared));
        Compare("acquire that waits", static i => LockCommands.Acquire("l", Owner((2 * Rows) + i), Long, waitMs: Long));
        Compare("release", i => LockCommands.Release("l", Owner(middle + i), middle + i + 1));
        _state.BeginEntry(default, _state.Time + (2 * Long));
        Compare("sweep of leases", static _ => Sweep());
    }

    [Fact]
    public void Locks_that_many_wait_for_walk_nothing()
    {
        FillKeys();
        Apply(LockCommands.Acquire("l", "writer", Long));
        for (int i = 0; i < Rows; i++)
        {
            Apply(LockCommands.Acquire("l", Owner(i), Long, waitMs: Long, mode: LockMode.Shared));
        }

        Assert.Equal(Rows, _state.Locks.Metrics.Waiting);
        Apply(LockCommands.Release("l", "writer", 1));

        // Each release of a reader who was let in goes on with those who still wait.
        Compare("release that lets in", static i => LockCommands.Release("l", Owner(i), i + 2));
        Assert.True(_state.Locks.HasGrants);
        Compare("sweep that lets in", static _ => Sweep());
        Assert.True(_state.Locks.HasGrants);
        _state.BeginEntry(default, _state.Time + Long);
        Compare("sweep of waits that are over", static _ => Sweep());
        Assert.True(_state.Locks.HasGrants);
    }

    [Fact]
    public void Sweeps_of_sessions_walk_nothing()
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

        _state.BeginEntry(default, _state.Time + (2 * Long));
        Compare("sweep of sessions", static _ =>
            Encode(new Command { Kind = CommandKind.SessionSweep, Flags = CommandFlags.Number, Number = 600_000 }));
        Assert.True(_state.Sessions.HasForgettable(_state.Time, Long));
    }

    [Fact]
    public void Sweeps_of_expired_keys_walk_nothing()
    {
        FillKeys();
        for (int i = 0; i < Rows; i++)
        {
            Apply(
                Encode(new Command
                {
                    Kind = CommandKind.Set,
                    Flags = CommandFlags.Ttl,
                    Key = Encoding.UTF8.GetBytes($"gone-{i}"),
                    Value = new byte[16],
                    TtlMs = 1 + i,
                }));
        }

        // Replaced revisions that are too old and deleted keys that wait to be forgotten come on top.
        _state.BeginEntry(default, _state.Time + Long);
        Compare("sweep of expired keys", static _ =>
            Encode(new Command
            {
                Kind = CommandKind.ExpireSweep,
                Flags = CommandFlags.Number,
                Number = ExpirySweep.KeysPerCommand,
            }));
        Assert.True(_state.HasExpired(_state.Time));
    }

    [Fact]
    public void Evictions_walk_nothing()
    {
        // Each key with as many replaced revisions as are kept.
        _state.TrackUses();
        for (int i = 0; i <= new StateLimits().HistoryPerKey; i++)
        {
            FillKeys();
        }

        ByteBuffer names = ByteBuffer.Rent();
        byte[][] commands = new byte[Samples][];
        for (int i = 0; i < Samples; i++)
        {
            // All keys were used: the first search only lets them stay, and ends at its bound.
            names.Length = 0;
            Assert.True(Choose(names) || Choose(names));
            commands[i] = Encode(new Command
            {
                Kind = CommandKind.Evict,
                Durability = Durability.Ephemeral,
                Value = names.Written,
            });
        }

        Compare("eviction", i => commands[i]);
        Assert.Equal(Samples * Eviction.KeysPerCommand, _state.Counts.Evicted);
    }

    /// <summary>
    /// History has a bound of bytes: a large revision that is replaced needs the room of thousands of small ones.
    /// </summary>
    [Fact]
    public void Large_values_that_push_small_ones_out_of_history_walk_nothing()
    {
        const int Large = 31;
        for (int round = 0; round < 3; round++)
        {
            FillKeys();
        }

        for (int i = 0; i < Large; i++)
        {
            Apply(
                Encode(new Command
                {
                    Kind = CommandKind.Set,
                    Key = Encoding.UTF8.GetBytes($"large-{i}"),
                    Value = new byte[Limits.ValueBytesDefault],
                }));
        }

        // Between two of them as many sets as give their room back.
        byte[][] deletes =
        [
            .. Enumerable.Range(0, Large).Select(static i =>
                Encode(new Command { Kind = CommandKind.Delete, Key = Encoding.UTF8.GetBytes($"large-{i}") })),
        ];
        long kept = _state.Counts.History;
        Compare(
            "deletion of a large value",
            i => Apply(deletes[i]),
            Large,
            _ => Array.ForEach(_sets[..500], Apply),
            sets: 500);
        Assert.True(
            kept - _state.Counts.History > 20_000,
            $"{kept} revisions were kept before, and {_state.Counts.History} are now");
    }

    [Fact]
    public void Sequences_walk_nothing()
    {
        FillKeys();
        byte[] form = Bytes(new SequenceDefinition { Max = 1_000_000 }.ToBody());
        byte[] change = Bytes(new SequenceChange { Increment = 2 }.ToBody());
        for (int i = 0; i < Rows; i++)
        {
            Apply(Sequence(CommandKind.SequenceCreate, i, form));
        }

        Compare("create a sequence", i => Sequence(CommandKind.SequenceCreate, Rows + i, form));
        Compare("next value", static i => Sequence(CommandKind.SequenceNext, i * 37, []));
        Compare("range of values", static i => Sequence(CommandKind.SequenceNext, i * 41, [], count: 10_000));
        Compare("change a sequence", i => Sequence(CommandKind.SequenceUpdate, i * 43, change));
        Compare("delete a sequence", static i => Sequence(CommandKind.SequenceDelete, i, []));
    }

    [Fact]
    public void Commands_of_the_meta_group_walk_nothing()
    {
        const int Groups = 1_024;
        NodeId[] voters = [.. Enumerable.Range(1, 7).Select(static id => new NodeId((ushort)id))];
        StateMachine meta = new(new StateLimits { HashSecret = new HashSecret(1, 2) });
        ApplyTo(meta, Meta(new MetaCommand(CommandKind.Configure) { Number = Groups, Voters = voters }));
        FillKeys();
        ulong[] starts = new ulong[voters.Length];
        Compare("registration of a node", meta, i => new MetaCommand(CommandKind.RegisterNode)
        {
            Node = voters[i % 7],
            Incarnation = ++starts[i % 7],
            Nonce = (ulong)i,
        });
        Compare("pledge", meta, i => new MetaCommand(CommandKind.Pledge)
        {
            Node = voters[i % 7],
            Incarnation = starts[i % 7],
            Group = new GroupId((uint)((i % Groups) + 1)),
            Epoch = new Epoch(1),
            Number = (ulong)i + 1,
        });
        Compare("pledge that is given back", meta, i => new MetaCommand(CommandKind.ReleasePledge)
        {
            Node = voters[i % 7],
            Incarnation = starts[i % 7],
            Group = new GroupId((uint)((i % Groups) + 1)),
            Epoch = new Epoch(1),
            Number = (ulong)i + 1,
        });
        Compare("ceiling", meta, static i => new MetaCommand(CommandKind.RaiseCeiling)
        {
            Group = new GroupId((uint)((i % Groups) + 1)),
            Epoch = new Epoch(1),
            Number = 60_000 + (ulong)i,
        });
        Compare(
            "configuration", meta, _ => new MetaCommand(CommandKind.Configure) { Number = Groups, Voters = voters });
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public void Confirming_a_whole_window_walks_nothing(bool hasValues)
    {
        const int Sessions = 31;
        const int Window = Limits.SessionWindow;
        FillKeys();
        for (int i = 0; i < Sessions * Window; i++)
        {
            ulong number = (ulong)(i / Sessions) + 1;
            Apply(Numbered(i % Sessions, number, (ushort)(number - 1), hasValues));
        }

        byte[][] confirmations = [.. Enumerable.Range(0, Sessions).Select(i => Numbered(i, Window + 1, 0, hasValues))];
        Compare(
            hasValues ? "confirming 4,096 outcomes with values" : "confirming 4,096 outcomes",
            i => Apply(confirmations[i]),
            Sessions);
    }

    [Fact]
    public void A_held_answer_ends_without_a_walk()
    {
        FillKeys();
        LongPolls held = new();
        ModelSink sink = new();
        LongPoll[] reads = [.. Enumerable.Range(0, Rows).Select(i => new LongPoll(sink, (uint)i, 1, []))];
        Array.ForEach(reads, held.Add);

        // The oldest first, as their time comes.
        Compare("end of a held answer", i =>
        {
            reads[i].HasEnded = true;
            held.Remove(reads[i]);
        });
    }

    private bool Choose(ByteBuffer names)
    {
        long bytes = long.MaxValue;
        return _state.TryChooseVictims(
            names,
            new LoopOptions
            {
                Self = default,
                Voters = [],
                PreferredLeader = static _ => default,
                Seed = 1,
            }.EvictNamesBytesMax,
            ref bytes);
    }

    private static byte[] Numbered(int session, ulong number, ushort lag, bool returnsPrevious) => Encode(new Command
    {
        Kind = CommandKind.Set,
        Flags = CommandFlags.Session
            | CommandFlags.Opening
            | (returnsPrevious ? CommandFlags.ReturnPrevious : CommandFlags.None),
        Key = Key((session * 1_000) + (int)(number % 1_000)),
        Value = new byte[16],
        SessionId = (ulong)session + 1,
        Sequence = number,
        Lag = lag,
    });

    private static byte[] Sequence(CommandKind kind, int i, byte[] form, long count = 1) =>
        Encode(new Command
        {
            Kind = kind,
            Flags = CommandFlags.Number,
            Key = Encoding.UTF8.GetBytes($"sequence-{i}"),
            Value = form,
            Number = count,
        });

    private static byte[] Bytes(SequenceBody form)
    {
        byte[] bytes = new byte[SequenceBody.Bytes];
        form.Write(bytes);
        return bytes;
    }

    private static byte[] Meta(MetaCommand command)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        command.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    private static byte[] Sweep() => LockCommands.Encode(
        new Command { Kind = CommandKind.LockSweep, Flags = CommandFlags.Number, Number = LockTable.StepsPerSweep });

    private static byte[] Key(int i) =>
        Encoding.UTF8.GetBytes("key-" + (i % Rows).ToString("D12", CultureInfo.InvariantCulture));

    private static string Owner(int i) => "owner-" + i.ToString(CultureInfo.InvariantCulture);

    private static byte[] Encode(Command command) => LockCommands.EncodeUnchecked(command);

    private void FillKeys() => Array.ForEach(_sets, Apply);

    private void Apply(byte[] bytes) => ApplyTo(_state, bytes);

    private static void ApplyTo(StateMachine state, byte[] bytes)
    {
        Command.TryRead(bytes, out Command command);
        state.Apply(in command, null);
    }

    private void Compare(string what, StateMachine state, Func<int, MetaCommand> command)
    {
        byte[][] commands = [.. Enumerable.Range(0, Samples).Select(i => Meta(command(i)))];
        Compare(what, i => ApplyTo(state, commands[i]));
    }

    private void Compare(string what, Func<int, byte[]> command)
    {
        byte[][] commands = [.. Enumerable.Range(0, Samples).Select(command)];
        Compare(what, i => Apply(commands[i]));
    }

    /// <summary>
    /// Compares samples with a set, or with an action that makes so many sets, and comes before each of them.
    /// </summary>
    private void Compare(
        string what, Action<int> sample, int samples = Samples, Action<int>? before = null, int sets = 1)
    {
        before ??= _ => Apply(_sets[_random.Next(Rows)]);
        long[] own = new long[samples];
        long[] others = new long[samples];
        for (int i = 0; i < samples; i++)
        {
            long start = Stopwatch.GetTimestamp();
            before(i);
            others[i] = Stopwatch.GetTimestamp() - start;
            start = Stopwatch.GetTimestamp();
            sample(i);
            own[i] = Stopwatch.GetTimestamp() - start;
        }

        Array.Sort(own);
        Array.Sort(others);
        double ratio = own[samples / 2] * (double)sets / others[samples / 2];
        output.WriteLine(string.Create(
            CultureInfo.InvariantCulture,
            $"{what}: {ratio:F1} sets ({Stopwatch.GetElapsedTime(0, own[samples / 2]).TotalMicroseconds:F2} µs)"));
        Assert.True(ratio <= RatioMax, $"{what} costs as much as {ratio:F0} sets");
    }
}
