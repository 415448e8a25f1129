using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State;

/// <summary>What each operation promises, one rule per test.</summary>
public sealed class KeyValueTests
{
    private readonly StateDriver _state = new();

    [Fact]
    public void The_first_revision_is_one_and_each_write_adds_one()
    {
        Assert.Equal(Applied(1), _state.Set("k", "a"));
        Assert.Equal(Applied(2, 1), _state.Set("k", "b"));
        Assert.Equal(Applied(3, 2), _state.Delete("k"));
        Assert.Equal(Applied(4), _state.Set("k", "c"));
        Assert.Equal(Applied(1), _state.Set("other", "x"));
        Assert.Equal(Found(4, "c"), _state.Get("k"));
    }

    [Fact]
    public void A_missing_key_is_not_found()
    {
        Assert.Equal(Missing(0), _state.Get("k"));
        Assert.Equal(Missing(0), _state.Exists("k"));
        Assert.Equal(Missing(0), _state.Get("k", 1));
        Assert.Equal(Missing(0), _state.Delete("k"));
        Assert.Equal(Missing(0), _state.Extend("k", 5));
        Assert.Equal(0, _state.Machine.Counts.Keys);
        _state.Set("k", "a");
        _state.Delete("k");
        Assert.Equal(Missing(2), _state.Get("k"));
        Assert.Equal(Missing(2), _state.Exists("k"));
        Assert.Equal(Missing(0), _state.Delete("k"));
        Assert.Equal(Missing(0), _state.Extend("k", 5));
    }

    [Fact]
    public void Null_and_empty_differ()
    {
        _state.Set("null", null);
        _state.Set("empty", string.Empty);
        Assert.Equal(new Answer(OutcomeStatus.Found, 1, -1, string.Empty, true), _state.Get("null"));
        Assert.Equal(new Answer(OutcomeStatus.Found, 1, -1, string.Empty, false), _state.Get("empty"));
        Assert.Equal(Failed(1), CompareAndSet("null", string.Empty, "x"));
        Assert.Equal(Failed(1), CompareAndSet("empty", null, "x"));
        Assert.Equal(Applied(2, 1), CompareAndSet("null", null, "x"));
        Assert.Equal(Applied(2, 1), CompareAndSet("empty", string.Empty, "x"));
        Assert.Equal(
            new Answer(OutcomeStatus.Applied, 3, 2, "x", false), _state.Set("null", null, CommandFlags.ReturnPrevious));
        Assert.Equal(
            new Answer(OutcomeStatus.Applied, 4, 3, string.Empty, true),
            _state.Set("null", "y", CommandFlags.ReturnPrevious));
        Assert.Equal(new Answer(OutcomeStatus.Found, 3, -1, string.Empty, true), _state.Get("null", 3));
    }

    [Fact]
    public void If_absent_sets_only_a_key_that_does_not_exist()
    {
        Assert.Equal(Applied(1), _state.Set("k", "a", CommandFlags.IfAbsent));
        Assert.Equal(Failed(1), _state.Set("k", "b", CommandFlags.IfAbsent));
        Assert.Equal(Found(1, "a"), _state.Get("k"));
        _state.Delete("k");
        Assert.Equal(Applied(3), _state.Set("k", "c", CommandFlags.IfAbsent));
    }

    [Fact]
    public void If_present_sets_only_a_key_that_exists()
    {
        Assert.Equal(Failed(0), _state.Set("k", "a", CommandFlags.IfPresent));
        _state.Set("k", "a");
        Assert.Equal(Applied(2, 1), _state.Set("k", "b", CommandFlags.IfPresent));
        _state.Delete("k");
        Assert.Equal(Failed(0), _state.Set("k", "c", CommandFlags.IfPresent));
        Assert.Equal(Failed(0), _state.Do(Increment(5) with { Flags = CommandFlags.Number | CommandFlags.IfPresent }));
    }

    [Fact]
    public void Conditions_combine_with_and()
    {
        _state.Set("k", "a");
        TestCommand both = new(CommandKind.Set, "k", "b")
        {
            Flags = CommandFlags.IfPresent | CommandFlags.IfValue | CommandFlags.IfRevision,
            Compared = "a",
            ComparedRevision = 1,
        };
        Assert.Equal(Failed(1), _state.Do(both with { ComparedRevision = 2 }));
        Assert.Equal(Failed(1), _state.Do(both with { Compared = "x" }));
        Assert.Equal(Applied(2, 1), _state.Do(both));
        Assert.Equal(Failed(2), _state.Do(both));
        Assert.Equal(Failed(0), _state.Do(both with { Key = "absent" }));
    }

    [Theory]
    [InlineData(CommandKind.Delete)]
    [InlineData(CommandKind.Extend)]
    [InlineData(CommandKind.Increment)]
    internal void Every_mutation_takes_conditions(CommandKind kind)
    {
        _state.Set("k", "5");
        TestCommand command =
            new(kind) { Flags = CommandFlags.IfRevision | CommandFlags.IfValue, Compared = "5", ComparedRevision = 1 };
        command = kind switch
        {
            CommandKind.Extend => command with { Flags = command.Flags | CommandFlags.Ttl, TtlMs = 50 },
            CommandKind.Increment => command with { Flags = command.Flags | CommandFlags.Number, Number = 2 },
            _ => command,
        };
        ulong before = _state.Machine.Digest;
        Assert.Equal(Failed(1), _state.Do(command with { Compared = "6" }));
        Assert.Equal(Failed(1), _state.Do(command with { ComparedRevision = 2 }));
        Assert.Equal(before, _state.Machine.Digest);
        Assert.Equal(OutcomeStatus.Applied, _state.Do(command).Status);
    }

    [Fact]
    public void The_previous_value_is_returned_where_asked_for()
    {
        Assert.Equal(Applied(1), _state.Set("k", "a", CommandFlags.ReturnPrevious));
        Assert.Equal(
            new Answer(OutcomeStatus.Applied, 2, 1, "a", false), _state.Set("k", "b", CommandFlags.ReturnPrevious));
        Assert.Equal(
            new Answer(OutcomeStatus.ConditionFailed, 2, 2, "b", false),
            _state.Set("k", "c", CommandFlags.ReturnPrevious | CommandFlags.IfAbsent));
        Assert.Equal(
            new Answer(OutcomeStatus.Applied, 3, 2, "b", false), _state.Delete("k", CommandFlags.ReturnPrevious));
        Assert.Equal(Applied(4), _state.Set("k", "d", CommandFlags.ReturnPrevious));
    }

    [Fact]
    public void Exists_answers_like_get_without_the_value()
    {
        _state.Set("k", "a", ttlMs: 500);
        Assert.Equal(new Answer(OutcomeStatus.Found, 1, 500, "a", false), _state.Get("k"));
        Assert.Equal(new Answer(OutcomeStatus.Found, 1, 500, null, false), _state.Exists("k"));
        Assert.Equal(new Answer(OutcomeStatus.Found, 1, -1, null, false), _state.Exists("k", 1));
    }

    [Fact]
    public void Increment_counts_from_zero_and_keeps_the_time_to_live()
    {
        Assert.Equal(Applied(1, 5), _state.Increment("n", 5));
        Assert.Equal(Applied(2, -2), _state.Increment("n", -7));
        Assert.Equal(Applied(3, -2), _state.Increment("n", 0));
        Assert.Equal(Found(3, "-2"), _state.Get("n"));
        _state.Set("t", "10", ttlMs: 100);
        _state.Now += 40;
        Assert.Equal(Applied(2, 11), _state.Increment("t", 1));
        Assert.Equal(new Answer(OutcomeStatus.Found, 2, 60, "11", false), _state.Get("t"));
        _state.Delete("n");
        Assert.Equal(Applied(5, 1), _state.Increment("n", 1));
    }

    [Theory]
    [InlineData("")]
    [InlineData(" 1")]
    [InlineData("1 ")]
    [InlineData("+1")]
    [InlineData("-")]
    [InlineData("-0")]
    [InlineData("01")]
    [InlineData("1.0")]
    [InlineData("0x1")]
    [InlineData("1e3")]
    [InlineData("text")]
    [InlineData("9223372036854775808")]
    [InlineData("-9223372036854775809")]
    [InlineData("111111111111111111111")]
    [InlineData(null)]
    public void Increment_refuses_what_is_no_integer(string? value)
    {
        _state.Set("k", value);
        ulong before = _state.Machine.Digest;
        Assert.Equal(new Answer(OutcomeStatus.NotAnInteger, 1, 0, null, false), _state.Increment("k", 1));
        Assert.Equal(before, _state.Machine.Digest);
    }

    [Theory]
    [InlineData("9223372036854775807", 1)]
    [InlineData("-9223372036854775808", -1)]
    [InlineData("-1", long.MinValue)]
    [InlineData("1", long.MaxValue)]
    public void Increment_past_the_range_changes_nothing(string value, long amount)
    {
        _state.Set("k", value);
        ulong before = _state.Machine.Digest;
        Assert.Equal(OutcomeStatus.Overflow, _state.Increment("k", amount).Status);
        Assert.Equal(before, _state.Machine.Digest);
        Assert.Equal(Found(1, value), _state.Get("k"));
    }

    [Fact]
    public void Increment_reaches_both_ends_of_the_range()
    {
        Assert.Equal(Applied(1, long.MaxValue), _state.Increment("k", long.MaxValue));
        Assert.Equal(Applied(2, -1), _state.Increment("k", long.MinValue));
        Assert.Equal(Applied(3, long.MinValue), _state.Increment("k", -long.MaxValue));
        Assert.Equal(Found(3, "-9223372036854775808"), _state.Get("k"));
    }

    [Fact]
    public void Values_of_every_size_come_back_whole()
    {
        Dictionary<string, string> expected = [];
        int[] lengths = [0, 1, 15, 16, 127, 128, 129, 1000, 8191, 8193, 65_536, 131_072, 131_073, 1 << 20, 16 << 20];
        foreach (int length in lengths)
        {
            string value = new((char)('a' + (length % 26)), length);
            string key = $"size/{length}";
            expected[key] = value;
            _state.Set(key, "short");
            _state.Set(key, value);
        }

        foreach ((string key, string value) in expected)
        {
            Assert.Equal(value, _state.Get(key).Value);
            Assert.Equal("short", _state.Get(key, 1).Value);
        }
    }

    [Fact]
    public void Applying_without_an_outcome_has_the_same_effect()
    {
        StateDriver follower = new();
        foreach (TestCommand test in new[]
        {
            new TestCommand(
                CommandKind.Set,
                "a",
                "1"), new TestCommand(CommandKind.Set, "a", "2") { Flags = CommandFlags.Ttl, TtlMs = 9 },
            Increment(4),
            new TestCommand(CommandKind.Delete, "a"),
            new TestCommand(CommandKind.Extend, "k") { Flags = CommandFlags.Ttl, TtlMs = 7 },
        })
        {
            _state.Do(test);
            Assert.True(Command.TryRead(test.Encode(), out Command command));
            follower.Machine.BeginEntry(default, new ClusterTime(_state.Now));
            follower.Machine.Apply(command, null);
            Assert.Equal(_state.Machine.Digest, follower.Machine.Digest);
        }
    }

    private static Answer Applied(long revision, long number = 0) =>
        new(OutcomeStatus.Applied, revision, number, null, false);

    private static Answer Found(long revision, string value) => new(OutcomeStatus.Found, revision, -1, value, false);

    private static Answer Missing(long revision) => new(OutcomeStatus.NotFound, revision, 0, null, false);

    private static Answer Failed(long revision) => new(OutcomeStatus.ConditionFailed, revision, revision, null, false);

    private static TestCommand Increment(long amount) =>
        new(CommandKind.Increment) { Flags = CommandFlags.Number, Number = amount };

    private Answer CompareAndSet(string key, string? compared, string value) =>
        _state.Do(new TestCommand(CommandKind.Set, key, value) { Flags = CommandFlags.IfValue, Compared = compared });
}
