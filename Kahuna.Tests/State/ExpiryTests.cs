using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State;

/// <summary>Times to live, on cluster time only.</summary>
public sealed class ExpiryTests
{
    private readonly StateDriver _state = new();

    [Fact]
    public void An_expired_key_is_hidden_at_once_and_counts_as_deleted()
    {
        _state.Set("k", "a", ttlMs: 100);
        _state.Now += 99;
        Assert.Equal(1, _state.Get("k").Number);
        Assert.False(_state.Machine.HasExpired(new ClusterTime(_state.Now)));
        _state.Now += 1;
        Assert.True(_state.Machine.HasExpired(new ClusterTime(_state.Now)));
        Assert.Equal(new Answer(OutcomeStatus.NotFound, 2, 0, null, false), _state.Get("k"));
        Assert.Equal(OutcomeStatus.NotFound, _state.Exists("k").Status);
        Assert.Equal(OutcomeStatus.NotFound, _state.Delete("k").Status);
        Assert.Equal(OutcomeStatus.NotFound, _state.Extend("k", 100).Status);
    }

    [Fact]
    public void A_key_is_hidden_by_an_entry_and_not_by_a_clock()
    {
        _state.Set("k", "a", ttlMs: 100);
        Assert.Equal(new Answer(OutcomeStatus.Found, 1, 40, "a", false), ReadAt(60));

        // The next leader's clock goes on from the latest entry: what one reader misses must not be there for a later
        // one.
        Assert.Equal(new Answer(OutcomeStatus.Found, 1, 0, "a", false), ReadAt(150));
        Assert.Equal(new Answer(OutcomeStatus.Found, 1, 90, "a", false), ReadAt(10));
        Assert.True(_state.Machine.HasExpired(new ClusterTime(_state.Now + 100)));
        _state.Machine.BeginEntry(default, new ClusterTime(_state.Now + 100));
        Assert.Equal(new Answer(OutcomeStatus.NotFound, 2, 0, null, false), ReadAt(10));
    }

    private Answer ReadAt(long afterMs)
    {
        ByteBuffer outcome = ByteBuffer.Rent();
        Assert.True(Command.TryRead(new TestCommand(CommandKind.Get, "k").Encode(), out Command command));
        _state.Machine.Read(command, new ClusterTime(_state.Now + afterMs), outcome);
        Answer answer = Answer.Read(outcome.Written);
        outcome.Return();
        return answer;
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public void Outcomes_do_not_depend_on_when_the_sweep_ran(bool swept)
    {
        List<Answer> answers = [];
        foreach (string key in new[] { "nx", "xx", "plain", "cas", "rev", "inc", "del", "ext", "get" })
        {
            _state.Set(key, "5");
            _state.Set(key, "6", ttlMs: 100);
        }

        _state.Now += 100;
        if (swept)
        {
            Assert.Equal(9, _state.Sweep(100).Number);
        }

        answers.Add(_state.Set("nx", "b", CommandFlags.IfAbsent | CommandFlags.ReturnPrevious));
        answers.Add(_state.Set("xx", "b", CommandFlags.IfPresent | CommandFlags.ReturnPrevious));
        answers.Add(_state.Set("plain", "b"));
        answers.Add(
            _state.Do(new TestCommand(CommandKind.Set, "cas", "b") { Flags = CommandFlags.IfValue, Compared = "6" }));
        answers.Add(_state.Do(
            new TestCommand(CommandKind.Set, "rev", "b") { Flags = CommandFlags.IfRevision, ComparedRevision = 2 }));
        answers.Add(_state.Increment("inc", 1));
        answers.Add(_state.Delete("del"));
        answers.Add(_state.Extend("ext", 5));
        answers.Add(_state.Get("get"));
        for (int revision = 1; revision <= 4; revision++)
        {
            answers.Add(_state.Get("get", revision));
            answers.Add(_state.Get("plain", revision));
        }

        Assert.Equal(
            [
                new Answer(OutcomeStatus.Applied, 4, 0, null, false),
                new Answer(OutcomeStatus.ConditionFailed, 0, 0, null, false),
                new Answer(OutcomeStatus.Applied, 4, 0, null, false),
                new Answer(OutcomeStatus.ConditionFailed, 0, 0, null, false),
                new Answer(OutcomeStatus.ConditionFailed, 0, 0, null, false),
                new Answer(OutcomeStatus.Applied, 4, 1, null, false),
                new Answer(OutcomeStatus.NotFound, 0, 0, null, false),
                new Answer(OutcomeStatus.NotFound, 0, 0, null, false),
                new Answer(OutcomeStatus.NotFound, 3, 0, null, false),
                new Answer(OutcomeStatus.Found, 1, -1, "5", false),
                new Answer(OutcomeStatus.Found, 1, -1, "5", false),
                new Answer(OutcomeStatus.Found, 2, -1, "6", false),
                new Answer(OutcomeStatus.Found, 2, -1, "6", false),
                new Answer(OutcomeStatus.NotFound, 3, 0, null, false),
                new Answer(OutcomeStatus.NotFound, 3, 0, null, false),
                new Answer(OutcomeStatus.NotFound, 3, 0, null, false),
                new Answer(OutcomeStatus.Found, 4, -1, "b", false),
            ],
            answers);
    }

    [Fact]
    public void Set_without_a_time_to_live_removes_an_earlier_one()
    {
        _state.Set("k", "a", ttlMs: 100);
        _state.Set("k", "b");
        Assert.Equal(-1, _state.Get("k").Number);
        _state.Now += 1000;
        Assert.Equal("b", _state.Get("k").Value);
    }

    [Fact]
    public void Extend_counts_from_its_own_moment_and_leaves_the_revision()
    {
        _state.Set("k", "a", ttlMs: 100);
        _state.Now += 50;
        Assert.Equal(new Answer(OutcomeStatus.Applied, 1, 0, null, false), _state.Extend("k", 80));
        Assert.Equal(new Answer(OutcomeStatus.Found, 1, 80, "a", false), _state.Get("k"));
        Assert.Equal(1, _state.Extend("k", 0).Revision);
        Assert.Equal(-1, _state.Get("k").Number);
        _state.Extend("k", 10);
        _state.Now += 10;
        Assert.Equal(OutcomeStatus.NotFound, _state.Get("k").Status);
    }

    [Fact]
    public void A_sweep_is_bounded_and_takes_the_earliest_first()
    {
        for (int i = 0; i < 10; i++)
        {
            _state.Set($"k{i}", "v", ttlMs: 100 - i);
        }

        _state.Now += 95;
        Assert.Equal(3, _state.Sweep(3).Number);
        Assert.Equal(new StateCounts(7, 3, 3, 0), _state.Machine.Counts with { Bytes = 0 });
        Assert.True(_state.Machine.HasExpired(new ClusterTime(_state.Now)));
        Assert.Equal(2, _state.Sweep(3).Number);
        Assert.False(_state.Machine.HasExpired(new ClusterTime(_state.Now)));
        Assert.Equal(0, _state.Sweep(3).Number);
        for (int i = 0; i < 10; i++)
        {
            Assert.Equal(i < 5 ? OutcomeStatus.Found : OutcomeStatus.NotFound, _state.Get($"k{i}").Status);
        }
    }

    [Fact]
    public void Keys_with_the_same_deadline_leave_in_the_same_order_on_every_node()
    {
        // Deadlines that were set in another order, and a hash with another secret: the heap is laid out differently.
        StateDriver other = new(new StateLimits { HashSecret = new HashSecret(1, 2) });
        for (int i = 0; i < 50; i++)
        {
            _state.Set($"k{i}", "v");
            other.Set($"k{i}", "v");
        }

        for (int i = 0; i < 50; i++)
        {
            _state.Extend($"k{i}", 100);
            other.Extend($"k{49 - i}", 100);
        }

        _state.Now += 100;
        other.Now += 100;
        Assert.Equal(_state.Machine.Digest, other.Machine.Digest);
        for (int left = 50; left > 0; left -= 7)
        {
            _state.Sweep(7);
            other.Sweep(7);
            Assert.Equal(_state.Machine.Digest, other.Machine.Digest);
        }
    }

    [Fact]
    public void Deadlines_saturate_and_time_never_goes_back()
    {
        _state.Now = long.MaxValue - 10;
        _state.Set("k", "a", ttlMs: 1000);
        Assert.Equal(10, _state.Get("k").Number);
        _state.Machine.BeginEntry(default, new ClusterTime(5));
        Assert.Equal(long.MaxValue - 10, _state.Machine.Time.Ms);
    }

    [Fact]
    public void Deleted_and_rewritten_keys_leave_no_deadline_behind()
    {
        _state.Set("k", "a", ttlMs: 100);
        _state.Delete("k");
        Assert.False(_state.Machine.HasExpired(new ClusterTime(long.MaxValue)));
        _state.Set("k", "b");
        Assert.False(_state.Machine.HasExpired(new ClusterTime(long.MaxValue)));
        Assert.Equal(-1, _state.Get("k").Number);
    }
}
