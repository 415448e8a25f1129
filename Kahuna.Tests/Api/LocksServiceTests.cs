using Google.Protobuf;
using Grpc.Core;
using Kahuna.Server.Api.Protos;
using Protos = Kahuna.Server.Api.Protos;

namespace Kahuna.Tests.Api;

/// <summary>
/// Locks as a client of any language has them, against three real nodes, through the leader and through a node that
/// forwards.
/// </summary>
[Collection(nameof(ThreeNodesCollection))]
public sealed class LocksServiceTests(ThreeNodes nodes)
{
    private readonly string _name = $"locks/{Guid.NewGuid():n}";

    private UnaryLocks Leader => new(nodes.Leader);

    private UnaryLocks Follower => new(nodes.Follower);

    [Theory]
    [InlineData(true, 1)]
    [InlineData(false, 1)]
    [InlineData(true, 2)]
    [InlineData(false, 2)]
    public async Task A_lock_is_granted_extended_and_released(bool throughLeader, int level)
    {
        Protos.Durability durability = (Protos.Durability)level;
        UnaryLocks locks = throughLeader ? Leader : Follower;
        Assert.Null(await locks.GetAsync(_name, durability));
        AcquireLockRequest ann = UnaryLocks.Request(_name, durability, "ann", 200_000);
        ann.Note = ByteString.CopyFromUtf8("a note");
        AcquireLockResponse first = await locks.AcquireAsync(ann);
        Assert.True(first.Granted);
        Assert.True(first.Token > 0);
        Assert.InRange(first.RemainingLeaseMs, 100_000, 200_000);
        Assert.InRange(first.LeaseMsFromCall, first.RemainingLeaseMs, 300_000);
        Assert.Equal(0, first.HolderToken);

        AcquireLockResponse busy = await locks.AcquireAsync(UnaryLocks.Request(_name, durability, "bob"));
        Assert.Equal(new AcquireLockResponse { HolderToken = first.Token }, busy);
        Assert.Equal(first.Token, (await Leader.AcquireAsync(ann)).Token);
        LockDescription held = (await locks.GetAsync(_name, durability))!;
        LockHolder holder = Assert.Single(held.Holders);
        Assert.Equal((_name, 1, 0, 0), (held.Resource, held.HolderCount, held.Waiting, held.Permits));
        Assert.Equal(
            ("ann", first.Token, Protos.LockMode.Exclusive, "a note"),
            (holder.Owner, holder.Token, holder.Mode, holder.Note.ToStringUtf8()));
        Assert.InRange(holder.RemainingLeaseMs, 100_000, 200_000);

        ExtendLockRequest extend =
            new() { Resource = _name, Durability = durability, Owner = "ann", Token = first.Token, LeaseMs = 600_000 };
        ExtendLockResponse extended = await locks.ExtendAsync(extend);
        Assert.True(extended.Extended);
        Assert.InRange(extended.RemainingLeaseMs, 500_000, extended.LeaseMsFromCall);
        extend.Owner = "bob";
        Assert.Equal(new ExtendLockResponse { HolderToken = first.Token }, await locks.ExtendAsync(extend));

        Assert.Equal(
            new ReleaseLockResponse { HolderToken = first.Token },
            await locks.ReleaseAsync(_name, durability, "bob", first.Token));
        Assert.Equal(
            new ReleaseLockResponse { HolderToken = first.Token },
            await locks.ReleaseAsync(_name, durability, "ann", first.Token + 1));
        Assert.True((await locks.ReleaseAsync(_name, durability, "ann", first.Token)).Released);
        AcquireLockResponse second = await locks.AcquireAsync(UnaryLocks.Request(_name, durability, "bob"));
        Assert.True(second.Token > first.Token);
        Assert.Equal(
            new ReleaseLockResponse { HolderToken = second.Token },
            await locks.ReleaseAsync(_name, durability, "ann", first.Token));
        Assert.True((await locks.ReleaseAsync(_name, durability, "bob", second.Token)).Released);
        extend.Owner = "bob";
        extend.Token = second.Token;
        Assert.Equal(new ExtendLockResponse(), await locks.ExtendAsync(extend));
    }

    [Theory]
    [InlineData(true, 1)]
    [InlineData(false, 1)]
    [InlineData(true, 2)]
    [InlineData(false, 2)]
    public async Task Who_waits_gets_the_lock_in_turn(bool throughLeader, int level)
    {
        Protos.Durability durability = (Protos.Durability)level;
        AcquireLockResponse first = await Leader.AcquireAsync(UnaryLocks.Request(_name, durability, "first"));
        List<Task<AcquireLockResponse>> waiting = [];
        for (int i = 0; i < 5; i++)
        {
            // One through this node and one through another: the order is that of their arrival at the leader.
            UnaryLocks locks = throughLeader == (i % 2 == 0) ? Leader : Follower;
            waiting.Add(locks.AcquireAsync(UnaryLocks.Request(_name, durability, $"waiter {i}", 200_000, 230_000)));
            await Leader.UntilWaitingAsync(_name, durability, i + 1);
        }

        (string owner, long token) = ("first", first.Token);
        for (int i = 0; i < waiting.Count; i++)
        {
            Assert.All(waiting.Skip(i), call => Assert.False(call.IsCompleted));
            Assert.True((await Follower.ReleaseAsync(_name, durability, owner, token)).Released);
            AcquireLockResponse next = await waiting[i];
            Assert.True(next.Granted);
            Assert.True(next.Token > token);
            Assert.InRange(next.RemainingLeaseMs, 100_000, 200_000);
            Assert.InRange(next.LeaseMsFromCall, next.RemainingLeaseMs, 430_000);
            (owner, token) = ($"waiter {i}", next.Token);
        }

        Assert.Equal(0, (await Leader.GetAsync(_name, durability))!.Waiting);
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task Who_goes_away_leaves_the_queue(bool throughLeader)
    {
        UnaryLocks locks = throughLeader ? Leader : Follower;
        AcquireLockResponse first = await Leader.AcquireAsync(
            UnaryLocks.Request(_name, Protos.Durability.Persistent, "first"));
        using CancellationTokenSource gone = new();
        Task<AcquireLockResponse> cancelled = locks.AcquireAsync(
            UnaryLocks.Request(_name, Protos.Durability.Persistent, "cancelled", waitMs: 230_000), ct: gone.Token);
        await Leader.UntilWaitingAsync(_name, Protos.Durability.Persistent, 1);
        Task<AcquireLockResponse> patient = locks.AcquireAsync(
            UnaryLocks.Request(_name, Protos.Durability.Persistent, "patient", waitMs: 230_000));
        await Leader.UntilWaitingAsync(_name, Protos.Durability.Persistent, 2);
        Task<AcquireLockResponse> late = await LateAsync(locks, 3);

        await gone.CancelAsync();
        Assert.Equal(StatusCode.Cancelled, (await Assert.ThrowsAsync<RpcException>(() => cancelled)).StatusCode);
        RpcException deadline = await Assert.ThrowsAsync<RpcException>(() => late);
        Assert.Equal(StatusCode.DeadlineExceeded, deadline.StatusCode);
        await Leader.UntilWaitingAsync(_name, Protos.Durability.Persistent, 1);
        Assert.False(patient.IsCompleted);
        await Leader.ReleaseAsync(_name, Protos.Durability.Persistent, "first", first.Token);
        Assert.True((await patient).Granted);
    }

    /// <summary>
    /// A call that was seen among so many that wait, and that its deadline ends; a slow machine needs a longer one to
    /// see it there.
    /// </summary>
    private async Task<Task<AcquireLockResponse>> LateAsync(UnaryLocks locks, int waiting)
    {
        for (TimeSpan deadline = TimeSpan.FromSeconds(2); deadline < LastNet.Span; deadline *= 3)
        {
            Task<AcquireLockResponse> late = locks.AcquireAsync(
                UnaryLocks.Request(_name, Protos.Durability.Persistent, "late", waitMs: 230_000), deadline: deadline);
            while (!late.IsCompleted)
            {
                if ((await Leader.GetAsync(_name, Protos.Durability.Persistent))!.Waiting == waiting)
                {
                    return late;
                }
            }

            Assert.Equal(StatusCode.DeadlineExceeded, (await Assert.ThrowsAsync<RpcException>(() => late)).StatusCode);
        }

        throw new TimeoutException($"No call was ever seen as one of {waiting} that wait.");
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task A_wait_ends_and_a_lease_ends(bool throughLeader)
    {
        UnaryLocks locks = throughLeader ? Leader : Follower;
        AcquireLockResponse first = await locks.AcquireAsync(
            UnaryLocks.Request(_name, Protos.Durability.Persistent, "first"));
        AcquireLockResponse over = await locks.AcquireAsync(
            UnaryLocks.Request(_name, Protos.Durability.Persistent, "short", waitMs: 300));
        Assert.Equal(new AcquireLockResponse { HolderToken = first.Token }, over);
        Assert.Equal(0, (await Leader.GetAsync(_name, Protos.Durability.Persistent))!.Waiting);
        await Leader.ReleaseAsync(_name, Protos.Durability.Persistent, "first", first.Token);
        AcquireLockResponse left = await locks.AcquireAsync(
            UnaryLocks.Request(_name, Protos.Durability.Persistent, "left", leaseMs: 1_500));
        AcquireLockResponse next = await locks.AcquireAsync(
            UnaryLocks.Request(_name, Protos.Durability.Persistent, "next", leaseMs: 200_000, waitMs: 230_000));
        Assert.True(left.Granted && next.Granted && next.Token > left.Token);
        Assert.InRange(next.RemainingLeaseMs, 1, 200_000);
    }

    [Fact]
    public async Task Readers_share_and_a_semaphore_has_so_many_permits()
    {
        AcquireLockRequest Shared(string owner) =>
            new(UnaryLocks.Request(_name, Protos.Durability.Ephemeral, owner)) { Mode = Protos.LockMode.Shared };
        AcquireLockResponse one = await Leader.AcquireAsync(Shared("one"));
        AcquireLockResponse two = await Follower.AcquireAsync(Shared("two"));
        Assert.True(one.Granted && two.Granted);
        Assert.Equal(
            one.Token,
            (await Leader.AcquireAsync(UnaryLocks.Request(_name, Protos.Durability.Ephemeral, "writer"))).HolderToken);
        Assert.Equal(
            ["one", "two"],
            (await Follower.GetAsync(_name, Protos.Durability.Ephemeral))!.Holders.Select(holder => holder.Owner));

        AcquireLockRequest Permit(string owner, int permits) =>
            new(UnaryLocks.Request($"{_name}/s", Protos.Durability.Ephemeral, owner))
            {
                Mode = Protos.LockMode.Permit,
                Permits = permits,
            };
        Assert.True((await Leader.AcquireAsync(Permit("one", 2))).Granted);
        Assert.True((await Follower.AcquireAsync(Permit("two", 2))).Granted);
        Assert.False((await Follower.AcquireAsync(Permit("three", 2))).Granted);
        Assert.Equal(2, (await Leader.GetAsync($"{_name}/s", Protos.Durability.Ephemeral))!.Permits);
        foreach ((UnaryLocks locks, AcquireLockRequest request, string words) in new[]
        {
            (Leader, Permit("three", 3), "a semaphore of 2 permits"),
            (
                Follower,
                UnaryLocks.Request($"{_name}/s", Protos.Durability.Ephemeral, "three"),
                "a semaphore of 2 permits"),
            (Leader, UnaryLocks.Request(_name, Protos.Durability.Ephemeral, "one"), "in another mode"),
            (Follower, new AcquireLockRequest(Permit("three", 3)) { Resource = _name }, "not a semaphore"),
        })
        {
            RpcException error = await Assert.ThrowsAsync<RpcException>(() => locks.AcquireAsync(request));
            Assert.Equal(
                (StatusCode.FailedPrecondition, "did-not-happen"),
                (error.StatusCode, error.Trailers.GetValue("kahuna-outcome")));
            Assert.Contains(words, error.Status.Detail, StringComparison.Ordinal);
        }
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task Whoever_observes_a_lock_sees_its_next_holder(bool throughLeader)
    {
        UnaryLocks locks = throughLeader ? Leader : Follower;
        ObserveLockRequest request =
            new() { Resource = _name, Durability = Protos.Durability.Persistent, HoldMs = 30_000 };
        Task<ObserveLockResponse> someone = locks.ObserveAsync(request);
        AcquireLockResponse ann = await Leader.AcquireAsync(
            UnaryLocks.Request(_name, Protos.Durability.Persistent, "ann"));
        ObserveLockResponse seen = await someone;
        Assert.Equal((ann.Token, "ann"), (seen.Token, Assert.Single(seen.Lock.Holders).Owner));
        Assert.Equal(ann.Token, (await locks.ObserveAsync(request)).Token);

        request.KnownToken = ann.Token;
        Task<ObserveLockResponse> nobody = locks.ObserveAsync(request);
        Assert.Equal(ann.Token, (await locks.ObserveAsync(new ObserveLockRequest(request) { HoldMs = 200 })).Token);
        Assert.False(nobody.IsCompleted);
        await Leader.ReleaseAsync(_name, Protos.Durability.Persistent, "ann", ann.Token);
        Assert.Equal(new ObserveLockResponse(), await nobody);
    }

    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    public async Task Lists_show_what_begins_so(int level)
    {
        Protos.Durability durability = (Protos.Durability)level;
        for (int i = 0; i < 20; i++)
        {
            await (i % 2 == 0 ? Leader : Follower).AcquireAsync(
                UnaryLocks.Request($"{_name}/{i}/x", durability, $"owner {i}"));
        }

        await Leader.AcquireAsync(UnaryLocks.Request($"{_name}x", durability, "owner"));
        foreach (UnaryLocks locks in new[] { Leader, Follower })
        {
            List<LockDescription> listed = [];
            ListLocksRequest request = new() { Prefix = $"{_name}/", Durability = durability };
            do
            {
                ListLocksResponse page = await locks.ListAsync(request);
                listed.AddRange(page.Locks);
                request.PageToken = page.NextPageToken;
            }
            while (request.PageToken.Length > 0);
            Assert.Equal(
                Enumerable.Range(0, 20).Select(i => ($"{_name}/{i}/x", $"owner {i}")).Order(),
                listed.Select(each => (each.Resource, each.Holders.Single().Owner)).Order());
        }
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task A_numbered_call_makes_one_claim(bool throughLeader)
    {
        UnaryLocks locks = throughLeader ? Leader : Follower;
        ulong session = (ulong)Random.Shared.NextInt64(1, long.MaxValue - 1);
        AcquireLockRequest acquire = UnaryLocks.Request(_name, Protos.Durability.Persistent, "ann", 200_000);
        AcquireLockResponse first = await locks.AcquireAsync(acquire, UnaryLocks.Numbered(session, 1));
        AcquireLockResponse again = await Leader.AcquireAsync(acquire, UnaryLocks.Numbered(session, 1));
        Assert.True(first.Granted && again.Granted);
        Assert.Equal(first.Token, again.Token);
        Assert.InRange(again.RemainingLeaseMs, 100_000, 200_000);

        ExtendLockRequest extend = new()
        {
            Resource = _name,
            Durability = Protos.Durability.Persistent,
            Owner = "ann",
            Token = first.Token,
            LeaseMs = 500_000,
        };
        Assert.InRange(
            (await locks.ExtendAsync(extend, UnaryLocks.Numbered(session, 2))).RemainingLeaseMs, 400_000, 500_000);
        Assert.InRange(
            (await Leader.ExtendAsync(extend, UnaryLocks.Numbered(session, 2))).RemainingLeaseMs, 400_000, 500_000);
        Assert.True(
            (await locks.ReleaseAsync(
                _name, Protos.Durability.Persistent, "ann", first.Token, UnaryLocks.Numbered(session, 3))).Released);
        Assert.True(
            (await Leader.ReleaseAsync(
                _name, Protos.Durability.Persistent, "ann", first.Token, UnaryLocks.Numbered(session, 3))).Released);

        // What it did is over, and is not done again.
        Assert.Equal(new AcquireLockResponse(), await locks.AcquireAsync(acquire, UnaryLocks.Numbered(session, 1)));
        Assert.Equal(new ExtendLockResponse(), await locks.ExtendAsync(extend, UnaryLocks.Numbered(session, 2)));
        Assert.Null(await Leader.GetAsync(_name, Protos.Durability.Persistent));

        // Two copies of a call that waits are one claim.
        AcquireLockResponse bob = await locks.AcquireAsync(
            UnaryLocks.Request(_name, Protos.Durability.Persistent, "bob"));
        AcquireLockRequest waits = UnaryLocks.Request(_name, Protos.Durability.Persistent, "ann", waitMs: 230_000);
        Task<AcquireLockResponse> one = locks.AcquireAsync(waits, UnaryLocks.Numbered(session, 4));
        Task<AcquireLockResponse> other = Leader.AcquireAsync(waits, UnaryLocks.Numbered(session, 4));
        await Leader.UntilWaitingAsync(_name, Protos.Durability.Persistent, 1);
        await Leader.ReleaseAsync(_name, Protos.Durability.Persistent, "bob", bob.Token);
        Assert.Equal((await one).Token, (await other).Token);
        Assert.True((await one).Token > bob.Token);
    }

    [Theory]
    [InlineData(1, true)]
    [InlineData(1, false)]
    [InlineData(2, true)]
    public async Task A_claim_outlives_the_node_that_its_caller_waits_at(int level, bool throughLeader)
    {
        Protos.Durability durability = (Protos.Durability)level;
        ThreeNodes own = new();
        await own.InitializeAsync();
        try
        {
            int stopping = throughLeader ? own.LeaderIndex : (own.LeaderIndex + 1) % 3;
            UnaryLocks other = new(own.Channel((stopping + 1) % 3));
            AcquireLockResponse first = await other.AcquireAsync(UnaryLocks.Request(_name, durability, "first"));
            AcquireLockRequest wants = UnaryLocks.Request(_name, durability, "ann", waitMs: 230_000);
            Task<AcquireLockResponse> waiting = new UnaryLocks(own.Channel(stopping)).AcquireAsync(wants);
            await other.UntilWaitingAsync(_name, durability, 1);

            // A node that waited for its callers would cut the call at its own end, and not answer it.
            await own.Cluster.Nodes[stopping].DisposeAsync();
            RpcException error = await Assert.ThrowsAsync<RpcException>(() => waiting);
            Assert.Equal(
                (StatusCode.Unavailable, "unknown"), (error.StatusCode, error.Trailers.GetValue("kahuna-outcome")));

            Assert.Equal(1, (await other.GetAsync(_name, durability))!.Waiting);
            Task<AcquireLockResponse> again = other.AcquireAsync(wants);
            Assert.Equal(1, (await other.GetAsync(_name, durability))!.Waiting);
            Assert.True((await other.ReleaseAsync(_name, durability, "first", first.Token)).Released);
            Assert.Equal((true, first.Token + 1), ((await again).Granted, (await again).Token));
        }
        finally
        {
            await own.DisposeAsync();
        }
    }

    [Fact]
    public async Task A_long_lease_in_memory_is_made_room_for()
    {
        foreach (bool throughLeader in new[] { true, false })
        {
            UnaryLocks locks = throughLeader ? Leader : Follower;
            long leaseMs = throughLeader ? 2_000_000 : 3_000_000;
            AcquireLockResponse granted = await locks.AcquireAsync(
                UnaryLocks.Request($"{_name}/{throughLeader}", Protos.Durability.Ephemeral, "ann", leaseMs));
            Assert.InRange(granted.RemainingLeaseMs, leaseMs - 200_000, leaseMs);
        }
    }
}
