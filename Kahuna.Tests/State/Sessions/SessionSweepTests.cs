using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Server.State.Sessions;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.State.Sessions;

/// <summary>How many commands a leader proposes to forget sessions: enough, and none for nothing.</summary>
public sealed class SessionSweepTests
{
    private static readonly StateLimits s_limits =
        new() { CommandLifeMs = 10_000, SessionIdleMs = 50_000, SessionTouchMs = 100 };
    private static readonly TestCommand s_increment =
        new(CommandKind.Increment, "n") { Flags = CommandFlags.Number, Number = 1 };

    [Theory]
    [InlineData(1, 1)]
    [InlineData(3, 40)]
    [InlineData(200, 1)]
    [InlineData(90, 3)]
    public void The_sweeps_that_are_counted_forget_everything(int sessions, int calls)
    {
        StateDriver state = new(s_limits);
        for (int i = 0; i < sessions * calls; i++)
        {
            state.Numbered(s_increment, (ulong)(i % sessions) + 1, (ulong)(i / sessions) + 1, 0);
        }

        state.Now += s_limits.SessionIdleMs;
        ClusterTime now = new(state.Now);
        SessionTable table = state.Machine.Sessions;
        TestCommand sweep = new(CommandKind.SessionSweep, string.Empty)
        {
            Flags = CommandFlags.Number,
            Number = s_limits.SessionIdleMs,
        };
        int counted = table.CountSweeps(now, s_limits.SessionIdleMs, 100);
        Assert.Equal(Math.Min(2, counted), table.CountSweeps(now, s_limits.SessionIdleMs, 2));
        for (int i = 1; i < counted; i++)
        {
            state.Follow(sweep);
            Assert.True(table.HasForgettable(now, s_limits.SessionIdleMs));
        }

        state.Follow(sweep);
        Assert.False(table.HasForgettable(now, s_limits.SessionIdleMs));
        Assert.Equal(0, table.CountSweeps(now, s_limits.SessionIdleMs, 100));
        Assert.Equal(0, table.Count);
    }
}
