using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State.Sessions;

/// <summary>A session of one number, which whoever asks again may come back to much later.</summary>
public sealed class IdempotencyKeyTests
{
    private static readonly TestCommand s_increment =
        new(CommandKind.Increment, "n") { Flags = CommandFlags.Number, Number = 1 };

    [Fact]
    public void The_outcome_under_an_idempotency_key_stays_for_an_hour_after_its_last_use()
    {
        const long Minute = 60_000;
        StateLimits limits = new();
        StateDriver state = new(limits);
        state.Set("k", "before");
        TestCommand set = new(CommandKind.Set, "k", "after") { Flags = CommandFlags.ReturnPrevious };
        ulong key = IdempotencyKey.AsKey(17);
        ulong session = IdempotencyKey.AsSession(17);
        Answer first = state.Numbered(set, key, 1);
        Answer other = state.Numbered(s_increment, session, 1);
        Assert.Equal(("before", 1), (first.Value, other.Number));

        state.Now += 7 * Minute;
        state.SweepSessions(limits.SessionIdleMs);
        Assert.Equal(OutcomeStatus.NumberForgotten, state.Numbered(s_increment, session, 1).Status);
        Assert.Equal(first, state.Numbered(set, key, 1));

        state.Now += 59 * Minute;
        state.SweepSessions(limits.SessionIdleMs);
        Assert.Equal(first, state.Numbered(set, key, 1));
        Assert.Equal(OutcomeStatus.NumberReused, state.Numbered(set with { Value = "other" }, key, 1).Status);

        state.Now += 61 * Minute;
        state.SweepSessions(limits.SessionIdleMs);
        Assert.Equal((0, 0L), (state.Machine.Sessions.Count, state.Machine.Sessions.Bytes));
        Assert.Equal("after", state.Numbered(set, key, 1).Value);
        Assert.Equal(state.Machine.RecomputeDigest(), state.Machine.Digest);
    }

    [Fact]
    public void Where_room_runs_out_an_idempotency_key_goes_as_soon_as_a_session()
    {
        StateLimits tight = new() { CommandLifeMs = 10_000, SessionIdleMs = 50_000, IdempotencyKeysMax = 4 };
        StateDriver state = new(tight);
        for (ulong number = 1; number <= 4; number++)
        {
            state.Numbered(s_increment, IdempotencyKey.AsKey(number), 1);
        }

        Assert.Equal(OutcomeStatus.SessionsFull, state.Numbered(s_increment, IdempotencyKey.AsKey(5), 1).Status);
        Assert.True(state.Machine.Sessions.IsCrowdedWithKeys);
        state.Now += tight.CommandLifeMs;
        state.SweepSessions(tight.CommandLifeMs);
        Assert.Equal((0, 0L), (state.Machine.Sessions.Count, state.Machine.Sessions.Bytes));
        Assert.Equal(5, state.Numbered(s_increment, IdempotencyKey.AsKey(5), 1).Number);
        Assert.Equal(state.Machine.RecomputeDigest(), state.Machine.Digest);
    }
}
