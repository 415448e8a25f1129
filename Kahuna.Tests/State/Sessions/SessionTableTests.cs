using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Wire;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State.Sessions;

/// <summary>A command that comes again is answered and not carried out again, for as long as anybody can ask.</summary>
public sealed class SessionTableTests
{
    private static readonly StateLimits s_limits =
        new() { CommandLifeMs = 10_000, SessionIdleMs = 50_000, SessionTouchMs = 100 };
    private static readonly TestCommand s_increment =
        new(CommandKind.Increment, "n") { Flags = CommandFlags.Number, Number = 1 };

    private readonly StateDriver _state = new(s_limits);

    [Fact]
    public void A_repeated_number_is_answered_from_memory_whatever_the_outcome_was()
    {
        _state.Set("text", "x");
        TestCommand[] commands =
        [
            s_increment,
            new(CommandKind.Set, "k", "v"),
            new(CommandKind.Set, "k", "w") { Flags = CommandFlags.ReturnPrevious },
            new(CommandKind.Set, "k", "z") { Flags = CommandFlags.IfAbsent | CommandFlags.ReturnPrevious },
            new(CommandKind.Set, "k", null),
            new(CommandKind.Delete, "k") { Flags = CommandFlags.ReturnPrevious },
            new(CommandKind.Delete, "k"),
            new(CommandKind.Extend, "none") { Flags = CommandFlags.Ttl, TtlMs = 5 },
            new(CommandKind.Increment, "text") { Flags = CommandFlags.Number, Number = 1 },
        ];
        Answer[] first = [.. commands.Select((command, i) => _state.Numbered(command, 7, (ulong)i + 1, (ushort)i))];
        ulong digest = _state.Machine.Digest;
        Answer[] again = [.. commands.Select((command, i) => _state.Numbered(command, 7, (ulong)i + 1, (ushort)i))];
        Assert.Equal(first, again);
        Assert.Equal("v", first[2].Value);
        Assert.True(first[5].IsNull);
        Assert.Equal(OutcomeStatus.NotAnInteger, first[^1].Status);
        Assert.Equal(digest, _state.Machine.Digest);
        Assert.Equal(digest, _state.Machine.RecomputeDigest());
        Assert.Equal("1", _state.Get("n").Value);
        Assert.Equal(commands.Length, _state.Machine.Sessions.Repeats);
    }

    [Fact]
    public void Numbers_may_come_in_any_order_and_with_gaps()
    {
        foreach (ulong number in new ulong[] { 4096, 17, 4000, 1, 2048 })
        {
            Assert.Equal(OutcomeStatus.Applied, _state.Numbered(s_increment, 1, number, (ushort)(number - 1)).Status);
        }

        Assert.Equal(2, _state.Numbered(s_increment, 1, 17, 16).Number);
        Assert.Equal(1, _state.Numbered(s_increment, 1, 4096, 4095).Number);
        Assert.Equal("5", _state.Get("n").Value);
        Assert.Equal(_state.Machine.RecomputeDigest(), _state.Machine.Digest);
    }

    [Fact]
    public void What_is_confirmed_is_forgotten_and_refused()
    {
        for (ulong number = 1; number <= 10; number++)
        {
            _state.Numbered(
                new TestCommand(CommandKind.Set, "k", $"{number}") { Flags = CommandFlags.ReturnPrevious },
                1,
                number,
                (ushort)(number - 1));
        }

        long before = _state.Machine.Sessions.Bytes;
        Assert.Equal(OutcomeStatus.Applied, _state.Numbered(s_increment, 1, 11, 0).Status);
        Assert.True(_state.Machine.Sessions.Bytes < before);
        foreach (ulong number in new ulong[] { 1, 10 })
        {
            Assert.Equal(OutcomeStatus.NumberForgotten, _state.Numbered(s_increment, 1, number, 0).Status);
        }

        Assert.Equal(1, _state.Numbered(s_increment, 1, 11, 0).Number);
        Assert.Equal(1, _state.Machine.Counts.Keys - 1);
    }

    [Fact]
    public void The_low_mark_never_goes_back()
    {
        _state.Numbered(s_increment, 1, 100, 0);
        Assert.Equal(OutcomeStatus.NumberForgotten, _state.Numbered(s_increment, 1, 99, 98).Status);
        Assert.Equal(OutcomeStatus.NumberForgotten, _state.Numbered(s_increment, 1, 99, 0).Status);
        Assert.Equal(OutcomeStatus.Applied, _state.Numbered(s_increment, 1, 101, 50).Status);
        Assert.Equal("2", _state.Get("n").Value);
    }

    [Theory]
    [InlineData(0)]
    [InlineData(1)]
    [InlineData(4095)]
    public void The_window_ends_where_it_should(int lag)
    {
        ulong first = 10_000;
        Assert.Equal(1, _state.Numbered(s_increment, 1, first, 0).Number);
        Assert.Equal(2 - (lag == 0 ? 1 : 0), _state.Numbered(s_increment, 1, first + (ulong)lag, (ushort)lag).Number);
        Assert.Equal(1, _state.Numbered(s_increment, 1, first, 0).Number);
        Assert.Equal(OutcomeStatus.Applied, _state.Numbered(s_increment, 1, first + 4096, 4095).Status);
        Assert.Equal(OutcomeStatus.NumberForgotten, _state.Numbered(s_increment, 1, first, 0).Status);
    }

    [Fact]
    public void An_unknown_session_is_refused_unless_it_opens()
    {
        Assert.Equal(OutcomeStatus.SessionUnknown, _state.Numbered(s_increment, 1, 1, opening: false).Status);
        Assert.False(_state.Machine.Sessions.Count > 0);
        Assert.Equal(OutcomeStatus.Applied, _state.Numbered(s_increment, 1, 1).Status);
        Assert.Equal(OutcomeStatus.Applied, _state.Numbered(s_increment, 1, 2, 1, opening: false).Status);
        Assert.Equal(1, _state.Numbered(s_increment, 1, 1, opening: false).Number);
        Assert.Equal("2", _state.Get("n").Value);
    }

    [Fact]
    public void Outcomes_go_after_the_life_of_a_command_and_sessions_after_an_hour_but_only_when_a_leader_says_so()
    {
        _state.Numbered(s_increment, 1, 5, 4);
        _state.Now += 60_000;
        Assert.Equal(1, _state.Numbered(s_increment, 1, 5, 4).Number);

        _state.Now += 9_999;
        Assert.False(_state.Machine.Sessions.HasForgettable(new ClusterTime(_state.Now), s_limits.SessionIdleMs));
        _state.SweepSessions(s_limits.SessionIdleMs);
        Assert.Equal(1, _state.Numbered(s_increment, 1, 5, 4).Number);

        _state.Now += 10_000;
        long before = _state.Machine.Sessions.Bytes;
        Assert.True(_state.Machine.Sessions.HasForgettable(new ClusterTime(_state.Now), s_limits.SessionIdleMs));
        _state.SweepSessions(s_limits.SessionIdleMs);
        Assert.False(_state.Machine.Sessions.HasForgettable(new ClusterTime(_state.Now), s_limits.SessionIdleMs));
        Assert.True(_state.Machine.Sessions.Bytes < before);
        Assert.Equal(OutcomeStatus.NumberForgotten, _state.Numbered(s_increment, 1, 5, 4, opening: false).Status);
        Assert.Equal(2, _state.Numbered(s_increment, 1, 6, 5, opening: false).Number);

        _state.Now += 50_000;
        _state.SweepSessions(s_limits.SessionIdleMs);
        Assert.Equal(0, _state.Machine.Sessions.Count);
        Assert.Equal(0, _state.Machine.Sessions.Bytes);
        Assert.Equal(OutcomeStatus.SessionUnknown, _state.Numbered(s_increment, 1, 7, 6, opening: false).Status);
        Assert.Equal(_state.Machine.RecomputeDigest(), _state.Machine.Digest);
    }

    [Fact]
    public void When_there_is_no_room_new_sessions_are_refused_and_idle_ones_go_first()
    {
        StateLimits tight = s_limits with { SessionsMax = 4 };
        StateDriver state = new(tight);
        for (ulong session = 1; session <= 4; session++)
        {
            state.Now += 1_000;
            state.Numbered(s_increment, session, 1);
        }

        Assert.Equal(OutcomeStatus.SessionsFull, state.Numbered(s_increment, 5, 1).Status);
        Assert.Equal(5, state.Numbered(s_increment, 4, 2, 1).Number);
        Assert.True(state.Machine.Sessions.IsCrowded);
        Assert.Equal(1, state.Machine.Sessions.Refusals);

        // The second oldest was used again; the first goes.
        state.Now += 7_500;
        Assert.Equal(6, state.Numbered(s_increment, 2, 2, 1).Number);
        state.SweepSessions(tight.CommandLifeMs);
        Assert.Equal(3, state.Machine.Sessions.Count);
        Assert.Equal(OutcomeStatus.SessionUnknown, state.Numbered(s_increment, 1, 2, 1, opening: false).Status);
        Assert.Equal(7, state.Numbered(s_increment, 5, 1).Number);
    }

    [Fact]
    public void Bytes_are_bounded_too_and_what_a_repeat_needs_stays()
    {
        StateLimits tight = s_limits with { SessionBytesMax = 20_000 };
        StateDriver state = new(tight);
        state.Set("k", new string('v', 3_000));
        TestCommand set = new(CommandKind.Set, "k", new string('w', 3_000)) { Flags = CommandFlags.ReturnPrevious };
        List<Answer> answers = [];
        ulong number = 0;
        while (answers.Count == 0 || answers[^1].Status == OutcomeStatus.Applied)
        {
            number++;
            answers.Add(state.Numbered(set, 1, number, (ushort)(number - 1)));
        }

        Assert.Equal(OutcomeStatus.SessionsFull, answers[^1].Status);
        Assert.InRange(number, 3ul, 5ul);
        Assert.Equal((long)number, state.Get("k").Revision);
        Assert.Equal(answers[1], state.Numbered(set, 1, 2, 1));
        Assert.Equal(OutcomeStatus.Applied, state.Numbered(s_increment, 2, 1).Status);
        Assert.Equal(OutcomeStatus.Applied, state.Numbered(s_increment, 1, number + 1, 0).Status);
    }

    [Fact]
    public void A_hundred_thousand_idle_sessions_take_less_than_a_hundred_megabytes()
    {
        StateDriver state = new(s_limits);
        for (ulong session = 1; session <= 100_000; session++)
        {
            state.Numbered(s_increment, session, 1);
        }

        Assert.InRange(state.Machine.BytesInUse, 1, 40_000_000);
        state.Now += s_limits.CommandLifeMs;
        while (state.Machine.Sessions.HasForgettable(new ClusterTime(state.Now), s_limits.SessionIdleMs))
        {
            state.SweepSessions(s_limits.SessionIdleMs);
        }

        Assert.Equal(100_000, state.Machine.Sessions.Count);
        Assert.InRange(state.Machine.Sessions.Bytes, 1, 15_000_000);
        Assert.Equal(state.Machine.RecomputeDigest(), state.Machine.Digest);
        Assert.Equal(1, state.Machine.Counts.Keys);
    }

    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    [InlineData(3)]
    public void Random_calls_in_random_order_take_effect_once_on_every_replica_and_after_a_load(int seed)
    {
        Random random = new(seed);
        StateLimits tight = s_limits with
        {
            SessionsMax = 6,
            IdempotencyKeysMax = 6,
            SessionBytesMax = 60_000,
            CommandLifeMs = 400,
            SessionIdleMs = 900,
            SessionTouchMs = 10,
        };
        StateDriver state = new(tight);
        StateDriver replica = new(tight);
        Dictionary<(ulong, ulong), Answer> answers = [];
        ulong[] next = new ulong[20];
        long sum = 0;
        HashSet<OutcomeStatus> seen = [];
        for (int step = 0; step < 20_000; step++)
        {
            state.Now += random.Next(3);
            replica.Now = state.Now;
            ulong session = (ulong)random.Next(20);
            ulong number = random.Next(3) > 0
                ? ++next[session]
                : (ulong)Math.Max(1, (long)next[session] - random.Next(6));
            ushort lag = (ushort)Math.Min((long)number - 1, random.Next(8));
            TestCommand test =
                (
                    random.Next(4) == 0
                        ? new TestCommand(CommandKind.Set, $"k{number % 5}", new string('x', random.Next(300)))
                        {
                            Flags = CommandFlags.ReturnPrevious,
                        }
                        : s_increment) with
                {
                    Call = (session % 2 == 0 ? session : IdempotencyKey.AsKey(session), number, lag),
                };
            test = test with
            {
                Flags = test.Flags | CommandFlags.Session | (random.Next(4) == 0 ? CommandFlags.Opening : 0),
            };
            Answer answer = state.Do(test);
            replica.Follow(test);
            seen.Add(answer.Status);
            bool isRepeat = answers.TryGetValue((session, number), out Answer known);
            if (answer.Status < OutcomeStatus.InvalidArgument)
            {
                Assert.True(
                    !isRepeat || answer == known,
                    $"step {step}: number {number} of session {session} had {known} and got {answer}");
                sum += !isRepeat && test.Kind == CommandKind.Increment ? 1 : 0;
                answers[(session, number)] = answer;
            }

            if (random.Next(20) == 0)
            {
                long idleMs = random.Next(2) == 0 ? tight.CommandLifeMs : tight.SessionIdleMs;
                state.SweepSessions(idleMs);
                replica.SweepSessions(idleMs);
                if (random.Next(40) == 0)
                {
                    // Whoever was forgotten goes on with numbers that nobody had.
                    replica = replica.Reloaded(tight);
                }
            }

            // A client does not come back to numbers that are older than a command's life.
            if (random.Next(200) == 0)
            {
                state.Now += tight.CommandLifeMs + 100;
                for (int i = 0; i < next.Length; i++)
                {
                    next[i] += 10;
                }
            }

            if (step % 500 == 0)
            {
                Assert.Equal(state.Machine.Digest, state.Machine.RecomputeDigest());
                Assert.Equal(state.Machine.Digest, replica.Machine.Digest);
                Assert.Equal(state.Machine.Sessions.Bytes, replica.Machine.Sessions.Bytes);
                Assert.Equal(state.Machine.Sessions.Count, replica.Machine.Sessions.Count);
            }
        }

        Assert.Equal($"{sum}", state.Get("n").Value);
        OutcomeStatus[] refusals =
        [
            OutcomeStatus.SessionUnknown,
            OutcomeStatus.NumberForgotten,
            OutcomeStatus.NumberReused,
            OutcomeStatus.SessionsFull,
        ];
        foreach (OutcomeStatus status in refusals)
        {
            Assert.Contains(status, seen);
        }
    }

    [Fact]
    public void A_view_taken_while_sessions_come_and_go_is_the_state_at_its_beginning()
    {
        Random random = new(9);
        StateDriver state = new(s_limits);
        for (int round = 0; round < 30; round++)
        {
            Run(300);
            using StateView view = state.Machine.ViewAll();
            ulong digest = state.Machine.Digest;
            List<byte[]> records = [];
            while (StateRecords.Take(view, records, random.Next(1, 400)))
            {
                Run(random.Next(0, 8));
            }

            StateLoader loader = new(s_limits, view.Summary);
            ulong sum = 0;
            foreach (byte[] record in records)
            {
                loader.Add(record);
                Assert.True(KeyRecord.TryAddDigest(record, view.Summary.FirstHistoryNumber, ref sum));
            }

            Assert.Equal(digest, sum);
            StateMachine loaded = loader.Finish();
            Assert.Equal(digest, loaded.Digest);
            Assert.Equal(digest, loaded.RecomputeDigest());
        }

        Assert.True(state.Machine.Sessions.Count < 200, "sessions have gone");

        void Run(int commands)
        {
            for (int i = 0; i < commands; i++)
            {
                state.Now += random.Next(60);
                ulong session = (ulong)(state.Now / 20_000 * 10) + (ulong)random.Next(10);
                ulong number = (ulong)random.Next(1, 40);
                TestCommand test = random.Next(3) == 0
                    ? s_increment
                    : new TestCommand(CommandKind.Set, $"k{random.Next(9)}", new string('x', random.Next(200)))
                    {
                        Flags = CommandFlags.ReturnPrevious,
                    };
                state.Numbered(test, session, number, (ushort)random.Next((int)number));
                if (random.Next(15) == 0)
                {
                    state.SweepSessions(s_limits.SessionIdleMs);
                }
            }
        }
    }

    [Fact]
    public void The_width_of_a_window_is_the_same_on_both_sides() => Assert.Equal(4096, Limits.SessionWindow);
}
