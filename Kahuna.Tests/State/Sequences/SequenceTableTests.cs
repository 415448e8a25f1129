using System.Text;
using Kahuna.Client.Sequences;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Tests.State.Locks;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Checks;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State.Sequences;

/// <summary>
/// Values come once, in order, without gaps and within their bounds, also at the ends of the 64-bit range.
/// </summary>
public sealed class SequenceTableTests
{
    private readonly StateMachine _state = new(new StateLimits());
    private readonly ByteBuffer _outcome = ByteBuffer.Rent();
    private long _timeMs = 1_000;

    [Fact]
    public void Values_follow_each_other()
    {
        Assert.Equal(OutcomeStatus.NotFound, Next("s").Status);
        Assert.Equal(OutcomeStatus.Applied, Create("s", new SequenceDefinition()).Status);
        Assert.Equal(OutcomeStatus.ConditionFailed, Create("s", new SequenceDefinition { Initial = 100 }).Status);
        Assert.Equal((1L, 1L), Range(Next("s")));
        Assert.Equal((2L, 11L), Range(Next("s", 10)));
        Assert.Equal((12L, 12L), Range(Next("s")));
        Assert.Equal(12, Get("s")!.Latest);
        Assert.Equal(_state.RecomputeDigest(), _state.Digest);
        Assert.Equal(0, _state.Counts.Keys);
    }

    [Theory]
    [InlineData(5, 3, 1, 20, 6)]
    [InlineData(1, 1, 1, 1, 1)]
    [InlineData(long.MaxValue - 2, 1, 1, long.MaxValue, 3)]
    [InlineData(long.MinValue + 1, -1, long.MinValue, -1, 2)]
    [InlineData(0, long.MaxValue, long.MinValue, long.MaxValue, 2)]
    [InlineData(long.MaxValue, long.MinValue, long.MinValue, long.MaxValue, 2)]
    [InlineData(10, -4, 1, 10, 3)]
    public void Past_the_bound_is_refused_and_never_wraps(long initial, long increment, long min, long max, int count)
    {
        Create("s", new SequenceDefinition { Initial = initial, Increment = increment, Min = min, Max = max });
        Int128 expected = initial;
        for (int i = 0; i < count; i++)
        {
            Outcome more = Next("s", count - i + 1);
            Assert.Equal((OutcomeStatus.Exhausted, (long)(count - i)), (more.Status, more.Number));
            Assert.Equal(((long)expected, (long)expected), Range(Next("s")));
            expected += increment;
        }

        for (int i = 0; i < 3; i++)
        {
            Outcome past = Next("s");
            Assert.Equal((OutcomeStatus.Exhausted, 0L), (past.Status, past.Number));
        }

        Assert.Equal(OutcomeStatus.Exhausted, Next("s", long.MaxValue).Status);
    }

    [Fact]
    public void The_whole_range_can_be_taken_in_one_piece()
    {
        Create("s", new SequenceDefinition());
        Assert.Equal((1L, long.MaxValue), Range(Next("s", long.MaxValue)));
        Assert.Equal(OutcomeStatus.Exhausted, Next("s").Status);
    }

    [Fact]
    public void A_cycle_begins_again_at_the_other_bound_and_a_range_does_not_run_over_it()
    {
        Create("up", new SequenceDefinition { Initial = 8, Min = 5, Max = 9, Cycle = true });
        Create("down", new SequenceDefinition { Increment = -2, Min = 1, Max = 5, Cycle = true });
        Assert.Equal([8, 9, 5, 6, 7, 8, 9, 5], Enumerable.Range(0, 8).Select(_ => Next("up").Number));
        Assert.Equal([5, 3, 1, 5, 3], Enumerable.Range(0, 5).Select(_ => Next("down").Number));
        Outcome over = Next("up", 5);
        Assert.Equal((OutcomeStatus.Exhausted, 4L), (over.Status, over.Number));
        Assert.Equal((6L, 9L), Range(Next("up", 4)));
        Assert.Equal((5L, 9L), Range(Next("up", 5)));
    }

    [Fact]
    public void Changes_count_from_the_next_value_on_and_never_leave_the_latest_outside()
    {
        Assert.Equal(OutcomeStatus.NotFound, Update("s", new SequenceChange { Increment = 2 }).Status);
        Create("s", new SequenceDefinition { Max = 10 });
        Next("s", 4);
        Assert.Equal(OutcomeStatus.Applied, Update("s", new SequenceChange { Increment = 3 }).Status);
        Assert.Equal(7, Next("s").Number);
        Outcome refused = Update("s", new SequenceChange { Max = 6 });
        Assert.Equal((OutcomeStatus.OutOfBounds, 7L), (refused.Status, refused.Number));
        Assert.Equal(OutcomeStatus.OutOfBounds, Update("s", new SequenceChange { Min = 8 }).Status);
        Assert.Equal(OutcomeStatus.OutOfBounds, Update("s", new SequenceChange { Min = 12 }).Status);
        Assert.Equal(OutcomeStatus.Applied, Update("s", new SequenceChange { Increment = -1, Cycle = true }).Status);
        Assert.Equal((6L, 1L), Range(Next("s", 6)));
        Assert.Equal(10, Next("s").Number);
        Assert.Equal(new SequenceDescription("s", 1, -1, 1, 10, true, 10), Get("s"));
    }

    [Fact]
    public void A_key_gets_the_same_values_and_another_count_is_refused_and_a_new_incarnation_knows_no_keys()
    {
        Assert.Equal(OutcomeStatus.NotFound, Keyed("s", 77, 3).Status);
        Create("s", new SequenceDefinition { Max = 10 });
        Assert.Equal((1L, 3L), Range(Keyed("s", 77, 3)));
        Assert.Equal((4L, 4L), Range(Next("s")));
        Assert.Equal((1L, 3L), Range(Keyed("s", 77, 3)));
        Assert.Equal(OutcomeStatus.NumberReused, Keyed("s", 77, 2).Status);
        Assert.Equal(OutcomeStatus.Exhausted, Keyed("s", 78, 7).Status);
        Update("s", new SequenceChange { Max = 20 });
        Assert.Equal((5L, 11L), Range(Keyed("s", 78, 7)));

        Assert.Equal(OutcomeStatus.Applied, Do(CommandKind.SequenceDelete, "s").Status);
        Assert.Equal(OutcomeStatus.NotFound, Do(CommandKind.SequenceDelete, "s").Status);
        Assert.Equal(OutcomeStatus.NotFound, Keyed("s", 77, 3).Status);
        Create("s", new SequenceDefinition { Initial = 100 });
        Assert.Equal((100L, 101L), Range(Keyed("s", 77, 2)));
        Assert.Equal((100L, 101L), Range(Keyed("s", 77, 2)));
        Assert.Equal((102L, 102L), Range(Next("s")));
        Assert.Equal(_state.RecomputeDigest(), _state.Digest);
    }

    [Fact]
    public void A_list_finds_every_sequence_once_in_bounded_pages()
    {
        for (int i = 0; i < 3_000; i++)
        {
            Create($"a/{i}", new SequenceDefinition { Initial = i + 1 });
            Create($"b/{i}", new SequenceDefinition());
            _state.BeginEntry(default, new ClusterTime(_timeMs));
            byte[] key = Encoding.UTF8.GetBytes($"a/key {i}");
            _state.Apply(
                new Command { Kind = CommandKind.Set, Durability = Durability.Persistent, Key = key }, null);
        }

        Do(CommandKind.SequenceDelete, "a/7");
        Dictionary<string, SequenceDescription> found = [];
        int pages = 0;
        long cursor = 0;
        do
        {
            _outcome.Length = 0;
            _state.Read(
                new Command { Kind = CommandKind.SequenceList, Key = "a/"u8, AtRevision = cursor },
                new ClusterTime(_timeMs),
                _outcome);
            Assert.True(Outcome.TryRead(_outcome.Written, out Outcome page));
            Assert.True(page.Value.Length < 70_000);
            ReadOnlySpan<byte> rest = page.Value;
            while (!rest.IsEmpty)
            {
                int length = BitConverter.ToUInt16(rest);
                string name = Encoding.UTF8.GetString(rest.Slice(2, length));
                found.Add(name, SequenceDescription.Read(name, rest[(2 + length)..]));
                rest = rest[(2 + length + SequenceSnapshot.Bytes)..];
            }

            cursor = page.Number;
            pages++;
        }
        while (cursor != 0);
        Assert.Equal(2_999, found.Count);
        Assert.InRange(pages, 3, 6);
        Assert.All(found, pair =>
            Assert.Equal(
                pair.Value.Initial,
                int.Parse(pair.Key.AsSpan(2), System.Globalization.CultureInfo.InvariantCulture) + 1));
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public void A_list_does_not_walk_over_rows_of_other_kinds(bool reloaded)
    {
        byte[] lockCommand = LockCommands.Acquire("a/lock", "ann", leaseMs: 100_000);
        for (int i = 0; i < 40_000; i++)
        {
            _state.BeginEntry(default, new ClusterTime(_timeMs));
            _state.Apply(
                new Command
                {
                    Kind = CommandKind.Set,
                    Durability = Durability.Persistent,
                    Key = Encoding.UTF8.GetBytes($"a/key {i}"),
                },
                null);
        }

        Create("a/first", new SequenceDefinition());
        Create("a/gone", new SequenceDefinition());
        Assert.True(Command.TryRead(lockCommand, out Command acquire));
        _state.Apply(in acquire, null);
        Create("a/last", new SequenceDefinition());
        Do(CommandKind.SequenceDelete, "a/gone");
        StateMachine state = reloaded ? Reload() : _state;

        Assert.Equal(["a/first", "a/last"], Names(state, CommandKind.SequenceList, SequenceSnapshot.Bytes));
        _outcome.Length = 0;
        state.Read(new Command { Kind = CommandKind.LockList, Key = "a/"u8 }, new ClusterTime(_timeMs), _outcome);
        Assert.True(Outcome.TryRead(_outcome.Written, out Outcome locks));
        Assert.Equal(0, locks.Number);
        Assert.Equal("a/lock", Encoding.UTF8.GetString(locks.Value.Slice(2, BitConverter.ToUInt16(locks.Value))));
    }

    [Fact]
    public void A_sequence_is_stored_and_loaded_with_the_keys()
    {
        Create("s", new SequenceDefinition { Max = 50 });
        Next("s", 20);
        Keyed("s", 5, 2);
        StateMachine loaded = Reload();
        Assert.Equal(_state.Digest, loaded.Digest);
        SequenceTableTests other = new(loaded);
        Assert.Equal((21L, 22L), Range(other.Keyed("s", 5, 2)));
        Assert.Equal((23L, 23L), Range(other.Next("s")));
        Assert.Equal(OutcomeStatus.Applied, other.Do(CommandKind.SequenceDelete, "s").Status);
        Assert.Equal(OutcomeStatus.Applied, other.Create("s", new SequenceDefinition()).Status);
        Assert.Equal((1L, 2L), Range(other.Keyed("s", 5, 2)));
    }

    [Theory]
    [InlineData(8)]
    [InlineData(16)]
    public void A_sequence_takes_nothing_of_the_room_for_sessions_whatever_the_length_of_its_name(int nameBytes)
    {
        string name = new('n', nameBytes);
        Create(name, new SequenceDefinition());
        Assert.Equal(0, _state.Sessions.Bytes);
        Keyed(name, 5, 2);
        long before = _state.Sessions.Bytes;
        StateMachine loaded = Reload();
        Assert.Equal((1, before), (loaded.Sessions.Count, loaded.Sessions.Bytes));
        Assert.Equal(_state.Digest, loaded.Digest);
    }

    public SequenceTableTests()
    {
    }

    private SequenceTableTests(StateMachine state) => _state = state;

    /// <summary>The names on the one page that a list needs, whose entries have so many bytes besides.</summary>
    private List<string> Names(StateMachine state, CommandKind kind, int entryBytes)
    {
        _outcome.Length = 0;
        state.Read(new Command { Kind = kind, Key = "a/"u8 }, new ClusterTime(_timeMs), _outcome);
        Assert.True(Outcome.TryRead(_outcome.Written, out Outcome page));
        Assert.Equal(0, page.Number);
        List<string> names = [];
        for (ReadOnlySpan<byte> rest = page.Value;
            !rest.IsEmpty;
            rest = rest[(2 + BitConverter.ToUInt16(rest) + entryBytes)..])
        {
            names.Add(Encoding.UTF8.GetString(rest.Slice(2, BitConverter.ToUInt16(rest))));
        }

        return names;
    }

    private StateMachine Reload()
    {
        using StateView view = _state.ViewAll();
        StateLoader loader = new(new StateLimits(), view.Summary);
        foreach (byte[] record in StateRecords.TakeAll(view))
        {
            loader.Add(record);
        }

        return loader.Finish();
    }

    private static (long First, long Last) Range(Outcome outcome)
    {
        Assert.Equal(OutcomeStatus.Applied, outcome.Status);
        return (outcome.Number, outcome.Revision);
    }

    private Outcome Create(string name, SequenceDefinition definition) =>
        Do(CommandKind.SequenceCreate, name, definition.ToBody());

    private Outcome Update(string name, SequenceChange change) => Do(CommandKind.SequenceUpdate, name, change.ToBody());

    private Outcome Next(string name, long count = 1) => Do(CommandKind.SequenceNext, name, count: count);

    private Outcome Keyed(string name, ulong key, long count) =>
        Do(
            CommandKind.SequenceNext,
            name,
            count: count,
            flags: CommandFlags.Session | CommandFlags.Opening | CommandFlags.Keyed,
            session: key);

    private SequenceDescription? Get(string name)
    {
        _outcome.Length = 0;
        _state.Read(
            new Command { Kind = CommandKind.SequenceGet, Key = Encoding.UTF8.GetBytes(name) },
                new ClusterTime(_timeMs),
                _outcome);
        Assert.True(Outcome.TryRead(_outcome.Written, out Outcome outcome));
        return outcome.Status == OutcomeStatus.Found ? SequenceDescription.Read(name, outcome.Value) : null;
    }

    private Outcome Do(
        CommandKind kind,
        string name,
        SequenceBody? form = null,
        long count = 0,
        CommandFlags flags = CommandFlags.None,
        ulong session = 0)
    {
        byte[] value = form is null ? [] : new byte[SequenceBody.Bytes];
        form?.Write(value);
        Command command = new()
        {
            Kind = kind,
            Durability = Durability.Persistent,
            Flags = flags | (count != 0 ? CommandFlags.Number : 0),
            Key = Encoding.UTF8.GetBytes(name),
            Value = value,
            Number = count,
            SessionId = session,
            Sequence = session == 0 ? 0u : 1u,
        };
        Assert.True(CommandCheck.IsGood(command, 1 << 20, out _, out string? sentence), sentence);
        _outcome.Length = 0;
        _state.BeginEntry(default, new ClusterTime(++_timeMs));
        _state.Apply(command, _outcome);
        Assert.True(Outcome.TryRead(_outcome.Written, out Outcome outcome));
        return new Outcome(outcome.Status, outcome.Revision, outcome.Number);
    }
}
