using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State.Sessions;

/// <summary>
/// Values of confirmed outcomes go in slices: with the session's next commands, with who needs their place, and with
/// sweeps.
/// </summary>
public sealed class ConfirmedValuesTests
{
    private static readonly StateLimits s_limits =
        new() { CommandLifeMs = 10_000, SessionIdleMs = 50_000, SessionTouchMs = 100 };
    private static readonly TestCommand s_increment =
        new(CommandKind.Increment, "n") { Flags = CommandFlags.Number, Number = 1 };

    private readonly StateDriver _state = new(s_limits);

    [Fact]
    public void Values_of_a_whole_window_go_with_the_next_commands_and_then_with_sweeps()
    {
        _state.Set("k", "first");
        TestCommand set = new(CommandKind.Set, "k", "v") { Flags = CommandFlags.ReturnPrevious };
        for (ulong number = 1; number <= 1_000; number++)
        {
            _state.Numbered(set, 1, number, (ushort)(number - 1));
        }

        // 1 to 999 are confirmed: the last one is still there for who asks again, the others are not.
        Answer last = _state.Numbered(set, 1, 1_000, 999);
        Assert.Equal(OutcomeStatus.Applied, _state.Numbered(set, 1, 1_001, 1).Status);
        long before = _state.Machine.Sessions.Bytes;
        Assert.Equal(OutcomeStatus.NumberForgotten, _state.Numbered(set, 1, 999, 0).Status);
        Assert.Equal(last, _state.Numbered(set, 1, 1_000, 1));
        Assert.Equal(_state.Machine.RecomputeDigest(), _state.Machine.Digest);
        for (ulong number = 1_002; number <= 1_011; number++)
        {
            _state.Numbered(s_increment, 1, number, 11);
        }

        Assert.InRange(_state.Machine.Sessions.Bytes, before * 5 / 10, before * 9 / 10);

        _state.Now += s_limits.CommandLifeMs;
        int sweeps = 0;
        while (_state.Machine.Sessions.HasForgettable(new ClusterTime(_state.Now), s_limits.SessionIdleMs))
        {
            _state.SweepSessions(s_limits.SessionIdleMs);
            sweeps++;
        }

        Assert.Equal(1, sweeps);
        _state.Now += s_limits.SessionIdleMs;
        _state.SweepSessions(s_limits.SessionIdleMs);
        Assert.Equal((0, 0L), (_state.Machine.Sessions.Count, _state.Machine.Sessions.Bytes));
        Assert.Equal(_state.Machine.RecomputeDigest(), _state.Machine.Digest);
    }

    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    [InlineData(3)]
    public void Confirmed_values_that_are_left_are_the_same_on_every_replica_and_after_a_load(int seed)
    {
        Random random = new(seed);
        StateDriver state = new(s_limits);
        StateDriver replica = new(s_limits);
        ulong[] next = [1, 1, 1, 1];
        ulong[] low = [1, 1, 1, 1];
        int bursts = 0;
        for (int step = 0; step < 400; step++)
        {
            int session = random.Next(next.Length);
            int burst = random.Next(3) == 0 ? random.Next(600) : 3;
            bursts += burst > 64 ? 1 : 0;
            List<(TestCommand Command, Answer Answer)> calls = [];
            for (int i = 0; i < burst; i++)
            {
                Call(
                    random.Next(4) == 0
                        ? s_increment
                        : new TestCommand(CommandKind.Set, $"k{random.Next(3)}", new string('x', random.Next(40)))
                        {
                            Flags = CommandFlags.ReturnPrevious,
                        });
            }

            // Nothing of these is confirmed: each is answered as it was.
            Assert.All(calls, call => Assert.Equal(call.Answer, state.Do(call.Command)));
            calls.ForEach(call => replica.Follow(call.Command));

            // Some or all of them are confirmed, and sometimes numbers far behind, as when calls went to other
            // partitions.
            low[session] = random.Next(3) == 0
                ? next[session]
                : low[session] + (ulong)random.NextInt64((long)(next[session] - low[session]) + 1);
            if (random.Next(5) == 0)
            {
                low[session] = next[session] += (ulong)random.Next(10_000);
            }

            Call(s_increment);
            if (random.Next(10) == 0)
            {
                state.Now += s_limits.CommandLifeMs;
                Sweep();
            }

            if (random.Next(10) == 0)
            {
                replica = replica.Reloaded(s_limits);
            }

            Assert.Equal(
                (state.Machine.Digest, state.Machine.Sessions.Bytes),
                (replica.Machine.Digest, replica.Machine.Sessions.Bytes));
            Assert.Equal(state.Machine.RecomputeDigest(), state.Machine.Digest);

            void Call(TestCommand test)
            {
                ulong number = next[session]++;
                if (number - low[session] >= Limits.SessionWindow)
                {
                    low[session] = number;
                }

                test = test with
                {
                    Flags = test.Flags | CommandFlags.Session | CommandFlags.Opening,
                    Call = ((ulong)session, number, (ushort)(number - low[session])),
                };
                Answer answer = state.Do(test);
                Assert.True(answer.Status is OutcomeStatus.Applied, $"{answer}");
                replica.Follow(test);
                calls.Add((test, answer));
            }
        }

        Assert.True(bursts > 50, $"{bursts} bursts");
        state.Now += s_limits.SessionIdleMs;
        for (int i = 0; i < 1_000; i++)
        {
            Sweep();
        }

        Assert.Equal((0, 0L), (state.Machine.Sessions.Count, state.Machine.Sessions.Bytes));
        Assert.Equal(state.Machine.Digest, replica.Machine.Digest);

        void Sweep()
        {
            replica.Now = state.Now;
            state.SweepSessions(s_limits.SessionIdleMs);
            replica.SweepSessions(s_limits.SessionIdleMs);
        }
    }
}
