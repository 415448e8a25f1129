using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State.Sessions;

/// <summary>
/// Idempotency keys and sessions have quotas of their own, and one client's outcomes leave room for others.
/// </summary>
public sealed class SessionQuotaTests
{
    private static readonly TestCommand s_increment =
        new(CommandKind.Increment, "n") { Flags = CommandFlags.Number, Number = 1 };
    private static readonly StateLimits s_limits =
        new() { CommandLifeMs = 10_000, SessionIdleMs = 50_000, SessionTouchMs = 100 };

    [Fact]
    public void Idempotency_keys_at_their_limit_leave_sessions_alone()
    {
        StateLimits tight = s_limits with { IdempotencyKeysMax = 100, SessionsMax = 100 };
        StateDriver state = new(tight);
        state.Numbered(s_increment, 1, 1);
        for (ulong key = 1; key <= 100; key++)
        {
            Assert.Equal(OutcomeStatus.Applied, state.Numbered(s_increment, IdempotencyKey.AsKey(key), 1).Status);
        }

        Assert.Equal(OutcomeStatus.SessionsFull, state.Numbered(s_increment, IdempotencyKey.AsKey(101), 1).Status);
        for (ulong session = 2; session <= 100; session++)
        {
            Assert.Equal(OutcomeStatus.Applied, state.Numbered(s_increment, session, 1).Status);
        }

        Assert.Equal(OutcomeStatus.SessionsFull, state.Numbered(s_increment, 101, 1).Status);
        Assert.Equal(OutcomeStatus.Applied, state.Numbered(s_increment, 100, 2, 1).Status);
        Assert.Equal(200, state.Machine.Sessions.Count);
    }

    [Fact]
    public void Sessions_at_their_limit_leave_idempotency_keys_alone()
    {
        StateDriver state = new(s_limits with { SessionsMax = 3 });
        for (ulong session = 1; session <= 4; session++)
        {
            Assert.Equal(
                session == 4 ? OutcomeStatus.SessionsFull : OutcomeStatus.Applied,
                state.Numbered(s_increment, session, 1).Status);
        }

        Assert.Equal(OutcomeStatus.Applied, state.Numbered(s_increment, IdempotencyKey.AsKey(9), 1).Status);
    }

    [Fact]
    public void Sessions_whose_bytes_are_used_up_are_crowded_and_no_further_one_is_opened()
    {
        StateDriver state = new(s_limits with { SessionBytesMax = 20_000 });
        ulong session = 1;
        for (; state.Numbered(s_increment, session, 1).Status == OutcomeStatus.Applied; session++)
        {
            Assert.InRange(session, 1UL, 1_000UL);
        }

        Assert.True(state.Machine.Sessions.IsCrowded);
        int count = state.Machine.Sessions.Count;
        for (ulong further = 1; further <= 100; further++)
        {
            Assert.Equal(OutcomeStatus.SessionsFull, state.Numbered(s_increment, session + further, 1).Status);
        }

        Assert.Equal(count, state.Machine.Sessions.Count);
    }

    [Fact]
    public void No_sweep_forgets_a_key_whose_command_may_still_come_again()
    {
        StateDriver state = new(s_limits);
        long revision = state.Numbered(s_increment, IdempotencyKey.AsKey(1), 1).Revision;
        TestCommand sweep = new(CommandKind.SessionSweep, string.Empty)
        {
            Flags = CommandFlags.Number | CommandFlags.Keyed,
            Number = 1,
        };
        state.Now += s_limits.CommandLifeMs / 2;
        state.Follow(sweep);
        state.Follow(sweep);
        Assert.Equal(revision, state.Numbered(s_increment, IdempotencyKey.AsKey(1), 1).Revision);
        Assert.Equal(1, state.Machine.Sessions.Count);
    }

    [Fact]
    public void Keys_that_crowd_do_not_shorten_the_life_of_sessions()
    {
        StateDriver state = new(s_limits with { IdempotencyKeysMax = 4 });
        state.Numbered(s_increment, 1, 1);
        for (ulong key = 1; key <= 4; key++)
        {
            state.Numbered(s_increment, IdempotencyKey.AsKey(key), 1);
        }

        Assert.True(state.Machine.Sessions.IsCrowdedWithKeys);
        Assert.False(state.Machine.Sessions.IsCrowded);
        state.Now += 20_000;
        state.Follow(new TestCommand(CommandKind.SessionSweep, string.Empty)
        {
            Flags = CommandFlags.Number | CommandFlags.Keyed,
            Number = s_limits.CommandLifeMs,
        });
        Assert.Equal(1, state.Machine.Sessions.Count);
        Assert.Equal(2, state.Numbered(s_increment, 1, 2, 1, opening: false).Revision - 4);
    }

    [Fact]
    public void One_clients_values_leave_room_for_others_values_and_for_new_clients()
    {
        StateLimits tight = s_limits with { SessionBytesMax = 400_000 };
        StateDriver state = new(tight);
        state.Set("k", new string('v', 3_000));
        TestCommand set = new(CommandKind.Set, "k", new string('w', 3_000)) { Flags = CommandFlags.ReturnPrevious };
        int first = TakeAll(state, set, session: 1);
        int second = TakeAll(state, set, session: 2);
        Assert.InRange(first, 30, 60);
        Assert.InRange(second, first / 3, first);
        for (ulong session = 10; session < 40; session++)
        {
            Assert.Equal(OutcomeStatus.Applied, state.Numbered(s_increment, session, 1).Status);
        }

        // What is confirmed makes room again, for the one who confirms.
        Assert.Equal(OutcomeStatus.Applied, state.Numbered(s_increment, 1, (ulong)first + 2).Status);
        Assert.Equal(OutcomeStatus.Applied, state.Numbered(set, 1, (ulong)first + 3, 1).Status);
        Assert.Equal(state.Machine.RecomputeDigest(), state.Machine.Digest);
    }

    [Fact]
    public void A_large_window_does_not_take_the_room_of_new_clients()
    {
        StateDriver state = new(s_limits with { SessionBytesMax = 200_000 });
        state.Numbered(s_increment, 1, 4_096, 4_095);
        Assert.Equal(OutcomeStatus.Applied, state.Numbered(s_increment, 2, 2_048, 2_047).Status);
        Assert.Equal(OutcomeStatus.SessionsFull, state.Numbered(s_increment, 3, 2_048, 2_047).Status);
        for (ulong session = 10; session < 30; session++)
        {
            Assert.Equal(OutcomeStatus.Applied, state.Numbered(s_increment, session, 64, 63).Status);
        }
    }

    [Fact]
    public void One_sweep_forgets_so_many_outcomes_and_no_more()
    {
        StateDriver state = new(s_limits);
        for (ulong number = 1; number <= 1_000; number++)
        {
            state.Numbered(s_increment, 1, number, (ushort)(number - 1));
        }

        state.Now += 10_000;
        TestCommand sweep = new(CommandKind.SessionSweep, string.Empty)
        {
            Flags = CommandFlags.Number,
            Number = s_limits.SessionIdleMs,
        };
        int sweeps = 0;
        for (; state.Machine.Sessions.HasForgettable(new ClusterTime(state.Now), s_limits.SessionIdleMs); sweeps++)
        {
            state.Follow(sweep);
            Assert.Equal(state.Machine.RecomputeDigest(), state.Machine.Digest);
        }

        Assert.Equal(16, sweeps);
        Assert.Equal(OutcomeStatus.NumberForgotten, state.Numbered(s_increment, 1, 1_000, 999, opening: false).Status);
        Assert.Equal(1_001, state.Numbered(s_increment, 1, 1_001, 999, opening: false).Number);
    }

    /// <summary>Sets that return the previous value, until one is refused; how many were taken.</summary>
    private static int TakeAll(StateDriver state, TestCommand set, ulong session)
    {
        for (ulong number = 1; ; number++)
        {
            Answer answer = state.Numbered(set, session, number, (ushort)(number - 1));
            if (answer.Status != OutcomeStatus.Applied)
            {
                Assert.Equal(OutcomeStatus.SessionsFull, answer.Status);
                return (int)number - 1;
            }
        }
    }
}
