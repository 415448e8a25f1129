using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State.Locks;

/// <summary>
/// One holder at a time, or as many as may have it together, first come first served, and tokens that only grow.
/// </summary>
public sealed class LockTableTests
{
    private readonly LockDriver _locks = new();

    [Fact]
    public void A_lock_is_granted_refused_and_released()
    {
        Answer first = _locks.Acquire("a/l", "ann");
        Assert.Equal((OutcomeStatus.Applied, 2_000L), (first.Status, first.Number));
        Answer busy = _locks.Acquire("a/l", "bob");
        Assert.Equal(
            (OutcomeStatus.ConditionFailed, first.Revision, 2_000L), (busy.Status, busy.Revision, busy.Number));
        Assert.Equal([("ann", first.Revision, 1_000L)], _locks.Get("a/l")!.Value.Holders);

        Assert.Equal(OutcomeStatus.ConditionFailed, _locks.Release("a/l", "bob", first.Revision).Status);
        Assert.Equal(OutcomeStatus.ConditionFailed, _locks.Release("a/l", "ann", first.Revision + 1).Status);
        Assert.Equal(OutcomeStatus.Applied, _locks.Release("a/l", "ann", first.Revision).Status);
        Assert.Null(_locks.Get("a/l"));
        Answer again = _locks.Release("a/l", "ann", first.Revision);
        Assert.Equal((OutcomeStatus.ConditionFailed, 0L), (again.Status, again.Revision));

        Answer second = _locks.Acquire("a/l", "bob");
        Assert.True(second.Revision > first.Revision);
        Assert.Equal(OutcomeStatus.ConditionFailed, _locks.Release("a/l", "ann", first.Revision).Status);
        Assert.Equal(("bob", second.Revision, 1_000L), _locks.Get("a/l")!.Value.Holders.Single());
        _locks.Check();
    }

    [Fact]
    public void A_claim_in_the_row_of_one_that_was_to_be_given_up_stays()
    {
        _locks.Acquire("l", "ann", leaseMs: 600_000);
        Answer bob = _locks.Acquire("l", "bob", waitMs: 600_000);
        _locks.Now += new StateLimits().WaiterCheckMs;
        byte[] sweep = _locks.DueSweep(againMs: static _ => 0);
        _locks.Release("l", "bob", bob.Revision, onlyPlace: true);
        Answer carol = _locks.Acquire("l", "carol", waitMs: 600_000);
        _locks.Now += new StateLimits().WaiterCheckMs;
        _locks.Do(sweep);
        Assert.Equal(OutcomeStatus.Queued, _locks.Await("l", "carol", carol.Revision).Status);
        _locks.Check();
    }

    [Fact]
    public void The_owner_renews_with_the_same_token_and_a_lease_is_never_shortened()
    {
        Answer first = _locks.Acquire("l", "ann", leaseMs: 1_000);
        _locks.Now += 500;
        Answer again = _locks.Acquire("l", "ann", leaseMs: 2_000);
        Assert.Equal((OutcomeStatus.Applied, first.Revision, 3_500L), (again.Status, again.Revision, again.Number));
        Answer shorter = _locks.Extend("l", "ann", first.Revision, 10);
        Assert.Equal((OutcomeStatus.Applied, 3_500L), (shorter.Status, shorter.Number));
        Assert.Equal(4_500, _locks.Extend("l", "ann", first.Revision, 3_000).Number);
        Assert.Equal(OutcomeStatus.ConditionFailed, _locks.Extend("l", "ann", first.Revision + 1, 9_000).Status);
        Assert.Equal(OutcomeStatus.ConditionFailed, _locks.Extend("l", "bob", first.Revision, 9_000).Status);
        _locks.Now = 4_499;
        _locks.Sweep();
        Assert.NotNull(_locks.Get("l"));
        _locks.Now = 4_500;
        _locks.Sweep();
        Assert.Null(_locks.Get("l"));
        Assert.Equal(OutcomeStatus.ConditionFailed, _locks.Extend("l", "ann", first.Revision, 10).Status);
        _locks.Check();
    }

    [Fact]
    public void Those_who_wait_come_in_their_order_and_with_the_command_that_frees_the_lock()
    {
        Answer ann = _locks.Acquire("l", "ann");
        Answer bob = _locks.Acquire("l", "bob", leaseMs: 300, waitMs: 10_000);
        Answer cat = _locks.Acquire("l", "cat", waitMs: 10_000);
        Answer dan = _locks.Acquire("l", "dan", waitMs: 10_000);
        Assert.Equal(
            [OutcomeStatus.Queued, OutcomeStatus.Queued, OutcomeStatus.Queued], [bob.Status, cat.Status, dan.Status]);
        Assert.Equal(_locks.Now, bob.Number);
        Assert.Equal(OutcomeStatus.Queued, _locks.Await("l", "bob", bob.Revision).Status);
        Assert.Equal(OutcomeStatus.ConditionFailed, _locks.Acquire("l", "eve").Status);
        Assert.Equal(3, _locks.Get("l")!.Value.Waiters);
        Assert.Equal(OutcomeStatus.ConditionFailed, _locks.Extend("l", "bob", bob.Revision, 1_000).Status);

        _locks.Now += 100;
        _locks.Release("l", "ann", ann.Revision);
        Answer granted = _locks.Await("l", "bob", bob.Revision);
        Assert.Equal(
            (OutcomeStatus.Found, bob.Revision, _locks.Now + 300), (granted.Status, granted.Revision, granted.Number));
        Assert.Equal(OutcomeStatus.Applied, _locks.Release("l", "cat", cat.Revision).Status);
        Assert.Equal(OutcomeStatus.NotFound, _locks.Await("l", "cat", cat.Revision).Status);

        _locks.Now += 300;
        _locks.Sweep();
        Assert.Equal(("dan", dan.Revision, 1_000L), _locks.Get("l")!.Value.Holders.Single());
        Assert.Equal(OutcomeStatus.NotFound, _locks.Await("l", "bob", bob.Revision).Status);
        _locks.Check();
    }

    [Fact]
    public void Who_has_waited_long_enough_gets_nothing()
    {
        Answer ann = _locks.Acquire("l", "ann");
        Answer bob = _locks.Acquire("l", "bob", waitMs: 100);
        Answer cat = _locks.Acquire("l", "cat", waitMs: 500);
        _locks.Now += 100;
        _locks.Release("l", "ann", ann.Revision);
        Assert.Equal(OutcomeStatus.NotFound, _locks.Await("l", "bob", bob.Revision).Status);
        Assert.Equal(OutcomeStatus.Found, _locks.Await("l", "cat", cat.Revision).Status);

        Answer dan = _locks.Acquire("l", "dan", waitMs: 50);
        _locks.Now += 50;
        _locks.Sweep();
        Assert.Equal(OutcomeStatus.NotFound, _locks.Await("l", "dan", dan.Revision).Status);
        Assert.Equal(0, _locks.Get("l")!.Value.Waiters);
        _locks.Check();
    }

    [Fact]
    public void A_place_in_the_queue_is_given_back_and_never_the_lock_that_has_come_of_it()
    {
        Answer ann = _locks.Acquire("l", "ann");
        Answer bob = _locks.Acquire("l", "bob", waitMs: 10_000);
        Answer cat = _locks.Acquire("l", "cat", waitMs: 10_000);
        Assert.Equal(OutcomeStatus.Applied, _locks.Release("l", "bob", bob.Revision, onlyPlace: true).Status);
        _locks.Release("l", "ann", ann.Revision);
        Answer late = _locks.Release("l", "cat", cat.Revision, onlyPlace: true);
        Assert.Equal((OutcomeStatus.ConditionFailed, cat.Revision), (late.Status, late.Revision));
        Assert.Equal("cat", _locks.Get("l")!.Value.Holders.Single().Owner);
        Assert.Equal(OutcomeStatus.ConditionFailed, _locks.Release("l", "bob", bob.Revision, onlyPlace: true).Status);
        _locks.Check();
    }

    [Fact]
    public void A_wait_is_looked_after_and_given_up_when_nobody_asks()
    {
        _locks.Acquire("l", "ann", leaseMs: 3_000_000);
        Answer bob = _locks.Acquire("l", "bob", waitMs: 1_000_000);
        Answer cat = _locks.Acquire("l", "cat", waitMs: 1_000_000);
        _locks.Now += new StateLimits().WaiterCheckMs;
        _locks.Sweep(againMs: token => token == bob.Revision ? 5_000 : 0);
        Assert.Equal(OutcomeStatus.Queued, _locks.Await("l", "bob", bob.Revision).Status);
        Assert.Equal(OutcomeStatus.NotFound, _locks.Await("l", "cat", cat.Revision).Status);
        _locks.Now += 5_000;
        _locks.Sweep(againMs: _ => 0);
        Assert.Equal(OutcomeStatus.NotFound, _locks.Await("l", "bob", bob.Revision).Status);
        _locks.Check();
    }

    [Fact]
    public void What_was_decided_about_a_wait_does_not_count_once_it_has_begun_anew()
    {
        _locks.Acquire("l", "ann", leaseMs: 3_000_000);
        Answer bob = _locks.Acquire("l", "bob", waitMs: 100);
        _locks.Now += 100;
        byte[] decided = _locks.DueSweep();
        Assert.Equal(OutcomeStatus.Queued, _locks.Acquire("l", "bob", waitMs: 5_000).Status);
        _locks.DoRaw(decided);
        Assert.Equal(OutcomeStatus.Queued, _locks.Await("l", "bob", bob.Revision).Status);
        _locks.Now += 5_000;
        _locks.DoRaw(_locks.DueSweep());
        Assert.Equal(OutcomeStatus.NotFound, _locks.Await("l", "bob", bob.Revision).Status);
        _locks.Check();
    }

    [Fact]
    public void So_many_may_share_a_lock_that_their_number_needs_more_than_16_bits()
    {
        const int Readers = ushort.MaxValue + 2;
        long[] tokens = new long[Readers];
        for (int i = 0; i < Readers; i++)
        {
            tokens[i] = _locks.Acquire("l", $"r{i}", leaseMs: 1_000, mode: LockMode.Shared).Revision;
            if (i == ushort.MaxValue)
            {
                Assert.Equal(OutcomeStatus.ConditionFailed, _locks.Acquire("l", "writer").Status);
            }
        }

        _locks.Release("l", "r0", tokens[0]);
        Assert.Equal(OutcomeStatus.ConditionFailed, _locks.Acquire("l", "writer").Status);
        Assert.Equal(OutcomeStatus.FenceFailed, _locks.FencedSet("l/k", "v", "l", tokens[0]).Status);
        foreach (int reader in (int[])[1, 2, Readers / 2, Readers - 2, Readers - 1])
        {
            Assert.Equal(OutcomeStatus.Applied, _locks.FencedSet("l/k", "v", "l", tokens[reader]).Status);
        }

        Assert.Equal(OutcomeStatus.FenceFailed, _locks.FencedSet("l/k", "v", "l", tokens[^1] + 1).Status);
        _locks.Now += 1_000;
        _locks.Sweep(countMax: Readers);
        Assert.Equal(OutcomeStatus.Applied, _locks.Acquire("l", "writer").Status);
        Assert.Equal(_locks.Machine.Digest, _locks.Follower.Digest);
    }

    [Fact]
    public void Waiting_again_keeps_the_place()
    {
        Answer ann = _locks.Acquire("l", "ann");
        Answer bob = _locks.Acquire("l", "bob", waitMs: 100);
        Answer cat = _locks.Acquire("l", "cat", waitMs: 900);
        _locks.Now += 90;
        Answer again = _locks.Acquire("l", "bob", leaseMs: 7_000, waitMs: 900);
        Assert.Equal((OutcomeStatus.Queued, bob.Revision), (again.Status, again.Revision));
        Assert.Equal(OutcomeStatus.ConditionFailed, _locks.Acquire("l", "bob").Status);
        _locks.Now += 90;
        _locks.Release("l", "ann", ann.Revision);
        Assert.Equal(("bob", bob.Revision, 7_000L), _locks.Get("l")!.Value.Holders.Single());
        Assert.Equal(OutcomeStatus.Queued, _locks.Await("l", "cat", cat.Revision).Status);
    }

    [Fact]
    public void Readers_share_and_do_not_overtake_a_writer_that_waits()
    {
        Answer r1 = _locks.Acquire("l", "r1", mode: LockMode.Shared);
        Answer r2 = _locks.Acquire("l", "r2", mode: LockMode.Shared);
        Answer w = _locks.Acquire("l", "w", waitMs: 5_000);
        Answer r3 = _locks.Acquire("l", "r3", mode: LockMode.Shared, waitMs: 5_000);
        Answer r4 = _locks.Acquire("l", "r4", mode: LockMode.Shared, waitMs: 5_000);
        Assert.Equal(
            [OutcomeStatus.Applied, OutcomeStatus.Applied, OutcomeStatus.Queued, OutcomeStatus.Queued],
            [r1.Status, r2.Status, w.Status, r3.Status]);
        Assert.Equal(OutcomeStatus.ModeDiffers, _locks.Acquire("l", "r1").Status);
        _locks.Release("l", "r1", r1.Revision);
        Assert.Equal(OutcomeStatus.Queued, _locks.Await("l", "w", w.Revision).Status);
        _locks.Release("l", "r2", r2.Revision);
        Assert.Equal(("w", w.Revision, 1_000L), _locks.Get("l")!.Value.Holders.Single());
        _locks.Release("l", "w", w.Revision);
        Assert.Equal(["r3", "r4"], _locks.Get("l")!.Value.Holders.Select(holder => holder.Owner));

        // A writer that leaves lets those behind it in.
        Answer w2 = _locks.Acquire("l", "w2", waitMs: 5_000);
        Answer r5 = _locks.Acquire("l", "r5", mode: LockMode.Shared, waitMs: 5_000);
        _locks.Release("l", "w2", w2.Revision);
        Assert.Equal(OutcomeStatus.Found, _locks.Await("l", "r5", r5.Revision).Status);
        Assert.True(r4.Revision < r5.Revision);
        _locks.Check();
    }

    [Fact]
    public void A_semaphore_has_so_many_holders_and_no_more()
    {
        Answer[] claims =
        [
            .. Enumerable.Range(0, 5)
                .Select(i => _locks.Acquire("s", $"o{i}", waitMs: 5_000, mode: LockMode.Permit, permits: 3)),
        ];
        Assert.Equal(3, claims.Count(claim => claim.Status == OutcomeStatus.Applied));
        Answer other = _locks.Acquire("s", "x", mode: LockMode.Permit, permits: 4);
        Assert.Equal((OutcomeStatus.ModeDiffers, 3L), (other.Status, other.Number));
        Assert.Equal(OutcomeStatus.ModeDiffers, _locks.Acquire("s", "x").Status);
        _locks.Release("s", "o1", claims[1].Revision);
        Assert.Equal(["o0", "o2", "o3"], _locks.Get("s")!.Value.Holders.Select(holder => holder.Owner));
        _locks.Now += 1_000;
        _locks.Sweep();
        Assert.Equal(["o4"], _locks.Get("s")!.Value.Holders.Select(holder => holder.Owner));
        _locks.Release("s", "o4", claims[4].Revision);
        Assert.Equal(OutcomeStatus.Applied, _locks.Acquire("s", "x").Status);
        _locks.Check();
    }

    [Fact]
    public void Tokens_grow_over_releases_loads_and_epochs()
    {
        long latest = 0;
        for (int i = 0; i < 20; i++)
        {
            Answer claim = _locks.Acquire($"l{i % 3}", "ann", leaseMs: 10);
            Assert.True(claim.Revision > latest);
            latest = claim.Revision;
            if (i % 2 == 0)
            {
                _locks.Release($"l{i % 3}", "ann", latest);
            }
            else
            {
                _locks.Now += 10;
                _locks.Sweep();
            }

            if (i % 5 == 4)
            {
                _locks.Reload();
            }
        }

        LockDriver next = new(new StateLimits().InEpoch(new Epoch(2)));
        Assert.True(next.Acquire("l0", "ann").Revision > latest);
    }

    [Fact]
    public void After_an_epoch_was_lost_nothing_is_granted_before_its_leases_are_over()
    {
        StateLimits limits = new StateLimits().InEpoch(new Epoch(2));
        LockDriver locks = new(limits with { LeasesBeforeMs = new ClusterTime(60_000) });
        locks.Now = 59_999;
        Assert.Equal(OutcomeStatus.ConditionFailed, locks.Acquire("l", "ann").Status);
        Answer bob = locks.Acquire("l", "bob", waitMs: 5_000);
        Assert.Equal(OutcomeStatus.Queued, bob.Status);
        Assert.Equal(OutcomeStatus.ConditionFailed, locks.Acquire("l", "ann").Status);
        Answer permit = locks.Acquire("s", "cat", waitMs: 5_000, mode: LockMode.Permit, permits: 2);
        Assert.Equal(OutcomeStatus.Queued, permit.Status);
        locks.Reload();
        locks.Sweep();
        Assert.Equal(OutcomeStatus.Queued, locks.Await("l", "bob", bob.Revision).Status);
        locks.Now = 60_000;
        locks.Sweep();
        Assert.Equal(OutcomeStatus.Found, locks.Await("l", "bob", bob.Revision).Status);
        Assert.Equal(OutcomeStatus.Found, locks.Await("s", "cat", permit.Revision).Status);
        Assert.Equal(OutcomeStatus.Applied, locks.Acquire("m", "ann").Status);
        locks.Check();
    }

    [Fact]
    public void A_write_counts_only_while_its_token_has_the_lock()
    {
        Answer ann = _locks.Acquire("a/l", "ann");
        Assert.Equal(OutcomeStatus.Applied, _locks.FencedSet("a/k", "1", "a/l", ann.Revision).Status);
        Answer other = _locks.FencedSet("a/k", "2", "a/l", ann.Revision + 1);
        Assert.Equal((OutcomeStatus.FenceFailed, ann.Revision), (other.Status, other.Revision));
        Answer bob = _locks.Acquire("a/l", "bob", waitMs: 500);
        Assert.Equal(OutcomeStatus.FenceFailed, _locks.FencedSet("a/k", "2", "a/l", bob.Revision).Status);
        _locks.Release("a/l", "ann", ann.Revision);
        Assert.Equal(OutcomeStatus.FenceFailed, _locks.FencedSet("a/k", "2", "a/l", ann.Revision).Status);
        Assert.Equal(OutcomeStatus.Applied, _locks.FencedSet("a/k", "3", "a/l", bob.Revision).Status);
        _locks.Release("a/l", "bob", bob.Revision);
        Answer none = _locks.FencedSet("a/k", "4", "a/l", bob.Revision);
        Assert.Equal((OutcomeStatus.FenceFailed, 0L), (none.Status, none.Revision));

        // Each of several who share it.
        Answer r1 = _locks.Acquire("a/l", "r1", mode: LockMode.Shared);
        Answer r2 = _locks.Acquire("a/l", "r2", mode: LockMode.Shared);
        Assert.Equal(OutcomeStatus.Applied, _locks.FencedSet("a/k", "5", "a/l", r1.Revision).Status);
        Assert.Equal(OutcomeStatus.Applied, _locks.FencedSet("a/k", "6", "a/l", r2.Revision).Status);
        Assert.Equal(_locks.Machine.Digest, _locks.Follower.Digest);
    }

    [Fact]
    public void A_repeated_acquire_is_answered_as_the_first_time()
    {
        StateDriver state = new();
        string form = new([(char)1, (char)0, (char)0, (char)0, (char)3, (char)0, 'a', 'n', 'n']);
        TestCommand acquire = new(CommandKind.LockAcquire, "l", form) { Flags = CommandFlags.Ttl, TtlMs = 1_000 };
        Answer first = state.Numbered(acquire, 7, 1);
        state.Now += 400;
        Assert.Equal(first, state.Numbered(acquire, 7, 1));
        Assert.Equal(OutcomeStatus.NumberReused, state.Numbered(acquire with { TtlMs = 1_001 }, 7, 1).Status);
        Assert.Equal(first.Number + 400, state.Numbered(acquire, 7, 2, 1).Number);
    }

    [Fact]
    public void A_lock_that_nobody_has_leaves_nothing_behind()
    {
        _locks.Acquire("l", "ann");
        _locks.Release("l", "ann", _locks.Acquire("l", "ann").Revision);
        for (int i = 0; i < 1_000; i++)
        {
            Answer claim = _locks.Acquire($"name {i}", $"owner {i}", note: new string('n', i % 1_024));
            _locks.Release($"name {i}", $"owner {i}", claim.Revision);
        }

        Assert.Equal(default, _locks.Machine.Locks.Metrics);
        using StateView view = _locks.Machine.ViewAll();
        Assert.Equal(3, view.Summary.Rows);
        _locks.Check();
    }

    [Fact]
    public void A_hundred_thousand_locks_and_as_many_who_wait_take_less_than_50_MB()
    {
        long before = _locks.Machine.Counts.Bytes;
        for (int i = 0; i < 100_000; i++)
        {
            Assert.Equal(
                OutcomeStatus.Applied, _locks.Acquire($"orders/{i}", $"owner-{i:x16}", leaseMs: 60_000).Status);
            Assert.Equal(
                OutcomeStatus.Queued,
                _locks.Acquire($"orders/{i}", $"waiter-{i:x16}", leaseMs: 60_000, waitMs: 60_000).Status);
        }

        Assert.InRange(_locks.Machine.Counts.Bytes - before, 10 << 20, 50 << 20);
        _locks.Now += 60_000;
        while (_locks.Machine.Locks.HasWork(new ClusterTime(_locks.Now)))
        {
            _locks.Sweep();
        }

        Assert.Equal(default, _locks.Machine.Locks.Metrics with { Expired = 0 });
        _locks.Check();
    }
}
