using System.Globalization;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Locks;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State.Locks;

/// <summary>
/// No command does unbounded work: what one command sets off goes on with the next ones, in the same order on every
/// replica and after loads.
/// </summary>
public sealed class LockSliceTests
{
    private readonly LockDriver _locks = new();

    [Fact]
    public void Readers_that_wait_are_granted_by_several_commands_in_the_order_in_which_they_came()
    {
        const int Readers = 100;
        long writer = _locks.Acquire("l", "writer", leaseMs: 60_000).Revision;
        long[] tokens = Queue(Readers, LockMode.Shared);
        _locks.Release("l", "writer", writer);
        Assert.Equal((LockTable.GrantsPerCommand, Readers - LockTable.GrantsPerCommand), Count());
        Assert.True(_locks.Machine.Locks.HasWork(new ClusterTime(_locks.Now)));

        // Who comes now stands behind them, and is not refused a place.
        long late = _locks.Acquire("l", "late", waitMs: 60_000, mode: LockMode.Shared).Revision;
        Assert.Equal(OutcomeStatus.ConditionFailed, _locks.Acquire("l", "hasty", mode: LockMode.Shared).Status);
        for (int held = LockTable.GrantsPerCommand;
            held < Readers;
            held = Math.Min(Readers + 1, held + LockTable.StepsPerSweep))
        {
            _locks.Reload();
            Assert.True(_locks.Machine.Locks.HasGrants);
            _locks.Sweep(LockTable.StepsPerSweep);
            Assert.Equal(Math.Min(Readers + 1, held + LockTable.StepsPerSweep), Count().Held);
        }

        Assert.False(_locks.Machine.Locks.HasWork(new ClusterTime(_locks.Now)));
        Assert.Equal([.. tokens, late], Tokens());
        _locks.Check();
    }

    [Fact]
    public void A_release_in_between_goes_on_with_the_readers_too()
    {
        long writer = _locks.Acquire("l", "writer", leaseMs: 60_000).Revision;
        long[] tokens = Queue(30, LockMode.Shared);
        _locks.Release("l", "writer", writer);
        _locks.Release("l", "owner 0", tokens[0]);
        Assert.Equal(((2 * LockTable.GrantsPerCommand) - 1, 30 - (2 * LockTable.GrantsPerCommand)), Count());
        _locks.Check();
    }

    [Fact]
    public void Waits_that_are_over_go_by_several_commands_while_nobody_has_the_lock()
    {
        long writer = _locks.Acquire("l", "writer", leaseMs: 60_000).Revision;
        Queue(50, LockMode.Exclusive, waitMs: 100);
        long last = _locks.Acquire("l", "last", leaseMs: 60_000, waitMs: 60_000).Revision;
        _locks.Now += 100;
        _locks.Release("l", "writer", writer);
        Assert.Equal((0, 51 - LockTable.GrantsPerCommand), Count());

        // Nobody has it yet, and somebody is next: it is not free.
        Assert.Equal((OutcomeStatus.ConditionFailed, 0L, _locks.Now), Told(_locks.Acquire("l", "hasty")));
        Assert.Equal(OutcomeStatus.FenceFailed, _locks.FencedSet("l/k", "v", "l", last).Status);
        _locks.Reload();
        while (_locks.Machine.Locks.HasGrants)
        {
            _locks.Sweep(LockTable.StepsPerSweep);
        }

        Assert.Equal([last], Tokens());
        Assert.Equal((1, 0), Count());
        _locks.Release("l", "last", last);
        Assert.Null(_locks.Get("l"));
        _locks.Check();
    }

    [Fact]
    public void Leases_that_end_together_are_ended_by_several_sweeps()
    {
        for (int i = 0; i < 40; i++)
        {
            _locks.Acquire($"l{i}", "owner", leaseMs: 100);
        }

        _locks.Now += 100;
        _locks.Sweep(LockTable.StepsPerSweep);
        Assert.Equal(40 - LockTable.StepsPerSweep, _locks.Machine.Locks.Metrics.Held);
        _locks.Sweep(LockTable.StepsPerSweep);
        _locks.Sweep(LockTable.StepsPerSweep);
        Assert.Equal(0, _locks.Machine.Locks.Metrics.Held);
        _locks.Check();
    }

    [Fact]
    public void A_lock_takes_so_many_claims_and_no_more()
    {
        LockDriver locks = new(new StateLimits { ClaimsPerLockMax = 4 });
        long first = locks.Acquire("l", "a", mode: LockMode.Shared).Revision;
        locks.Acquire("l", "b", mode: LockMode.Shared);
        locks.Acquire("l", "c", waitMs: 1_000);
        locks.Acquire("l", "d", waitMs: 1_000, mode: LockMode.Shared);
        Assert.Equal(OutcomeStatus.LockFull, locks.Acquire("l", "e", waitMs: 1_000).Status);
        Assert.Equal(OutcomeStatus.LockFull, locks.Acquire("l", "e", mode: LockMode.Shared).Status);
        Assert.Equal(OutcomeStatus.Applied, locks.Acquire("other", "e").Status);

        // Whoever has a claim renews it, and asks again.
        Assert.Equal(OutcomeStatus.Applied, locks.Acquire("l", "a", mode: LockMode.Shared).Status);
        Assert.Equal(OutcomeStatus.Queued, locks.Acquire("l", "c", waitMs: 1_000).Status);
        locks.Release("l", "a", first);
        Assert.Equal(OutcomeStatus.Queued, locks.Acquire("l", "e", waitMs: 1_000).Status);
        locks.Check();
    }

    [Fact]
    public void A_fence_holds_for_every_holder_of_its_lock_and_for_nobody_else()
    {
        const int Holders = 1_000;
        long[] tokens =
        [
            .. Enumerable.Range(0, Holders)
                .Select(i => _locks.Acquire("l", Owner(i), leaseMs: 60_000, mode: LockMode.Shared).Revision),
        ];
        long waiting = _locks.Acquire("l", "writer", waitMs: 60_000).Revision;
        long elsewhere = _locks.Acquire("other", "writer", leaseMs: 60_000).Revision;
        for (int i = 0; i < Holders; i += 3)
        {
            _locks.Release("l", Owner(i), tokens[i]);
        }

        _locks.Reload();
        for (int i = 0; i < Holders; i++)
        {
            Assert.Equal(
                i % 3 == 0 ? OutcomeStatus.FenceFailed : OutcomeStatus.Applied,
                _locks.FencedSet("l/k", "v", "l", tokens[i]).Status);
        }

        foreach (long token in new[] { waiting, elsewhere, 0, waiting + 1_000, long.MaxValue })
        {
            Assert.Equal(
                (OutcomeStatus.FenceFailed, tokens[1]),
                (
                    _locks.FencedSet("l/k", "v", "l", Math.Max(1, token)).Status,
                    _locks.FencedSet("l/k", "v", "l", Math.Max(1, token)).Revision));
        }

        Assert.Equal(OutcomeStatus.Applied, _locks.FencedSet("other/k", "v", "other", elsewhere).Status);
        Assert.Equal(OutcomeStatus.FenceFailed, _locks.FencedSet("no lock/k", "v", "no lock", elsewhere).Status);
        Assert.Equal(_locks.Machine.Digest, _locks.Follower.Digest);
    }

    private static string Owner(int i) => "owner " + i.ToString(CultureInfo.InvariantCulture);

    private long[] Queue(int count, LockMode mode, long waitMs = 60_000) =>
        [
            .. Enumerable.Range(0, count)
                .Select(i => _locks.Acquire("l", Owner(i), leaseMs: 60_000, waitMs: waitMs, mode: mode).Revision),
        ];

    private (int Held, int Waiting) Count() =>
        (_locks.Machine.Locks.Metrics.Held, _locks.Machine.Locks.Metrics.Waiting);

    private long[] Tokens() => [.. _locks.Get("l")!.Value.Holders.Select(static holder => holder.Token)];

    private static (OutcomeStatus Status, long Revision, long Number) Told(Answer answer) =>
        (answer.Status, answer.Revision, answer.Number);
}
