using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Locks;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Api;

/// <summary>Locks through the SDK against three real nodes.</summary>
[Collection(nameof(ThreeNodesCollection))]
public sealed class LocksTests(ThreeNodes nodes)
{
    private static readonly TimeSpan s_lease = TimeSpan.FromMinutes(5);
    private static readonly TimeSpan s_wait = TimeSpan.FromMinutes(5);

    private readonly string _name = $"locks{Guid.NewGuid():n}/lock";

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public async Task One_at_a_time_has_the_lock_and_tokens_grow(Durability durability)
    {
        await using KahunaClient client = Connect();
        LockOptions options = new() { Durability = durability };
        int inside = 0;
        List<long> tokens = [];
        await Parallel.ForEachAsync(Enumerable.Range(0, 8), async (worker, ct) =>
        {
            for (int i = 0; i < 25; i++)
            {
                await using LockHandle handle = await client.Locks.AcquireAsync(_name, s_lease, s_wait, options, ct);
                Assert.Equal(1, Interlocked.Increment(ref inside));
                tokens.Add(handle.Token.Value);
                Interlocked.Decrement(ref inside);
            }
        });
        Assert.Equal(200, tokens.Count);
        Assert.Equal(tokens.Order().Distinct(), tokens);
        Assert.Null(await client.Locks.GetAsync(_name, durability));
    }

    [Fact]
    public async Task Who_waits_is_served_in_order_and_who_does_not_is_told()
    {
        await using KahunaClient client = Connect();
        LockHandle first = await client.Locks.AcquireAsync(_name, s_lease, s_wait);
        List<Task<LockHandle>> waiting = [];
        for (int i = 1; i <= 5; i++)
        {
            waiting.Add(
                client.Locks.AcquireAsync(
                    _name, s_lease, s_wait, new LockOptions { ReentrantOwner = $"waiter {i}" }).AsTask());
            await Wait.UntilAsync(async () => (await client.Locks.GetAsync(_name))!.WaiterCount == i);
        }

        Assert.Null(await client.Locks.TryAcquireAsync(_name, s_lease));
        Assert.Equal(0, waiting.Count(task => task.IsCompleted));
        LockDescription held = (await client.Locks.GetAsync(_name))!;
        Assert.Equal((_name, null, 1, 5), (held.Resource, held.Permits, held.HolderCount, held.WaiterCount));
        Assert.Equal(
            (first.Owner, first.Token, LockMode.Exclusive),
            (held.Holders[0].Owner, held.Holders[0].Token, held.Holders[0].Mode));
        Assert.InRange(held.Holders[0].Remaining, TimeSpan.FromSeconds(1), s_lease);

        LockHandle before = first;
        for (int i = 0; i < 5; i++)
        {
            Assert.True(await before.ReleaseAsync());
            LockHandle next = await waiting[i].WaitAsync(Wait.Longest);
            Assert.Equal($"waiter {i + 1}", next.Owner);
            Assert.True(next.Token > before.Token);
            Assert.InRange(next.Remaining, TimeSpan.FromSeconds(1), s_lease);
            Assert.DoesNotContain(waiting[(i + 1)..], task => task.IsCompleted);
            before = next;
        }

        await before.DisposeAsync();
        Assert.Null(await client.Locks.GetAsync(_name));
    }

    [Fact]
    public async Task A_wait_runs_out()
    {
        await using KahunaClient client = Connect();
        await using LockHandle held = await client.Locks.AcquireAsync(_name, s_lease, s_wait);
        await FailsAsync(
            client.Locks.AcquireAsync(_name, s_lease, TimeSpan.FromMilliseconds(300)),
            KahunaErrorCode.LockBusy,
            "not free within 0.3 s");
        await Wait.UntilAsync(async () => (await client.Locks.GetAsync(_name))!.WaiterCount == 0);
        Assert.True(await held.ReleaseAsync());
        await using LockHandle? other = await client.Locks.TryAcquireAsync(_name, s_lease);
        Assert.NotNull(other);
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task A_cancelled_wait_leaves_the_queue(bool isNamed)
    {
        await using KahunaClient client = Connect();
        LockHandle held = await client.Locks.AcquireAsync(_name, s_lease, s_wait);
        using CancellationTokenSource cancel = new();
        LockOptions options = new() { ReentrantOwner = isNamed ? "somebody" : null };
        Task<LockHandle> waiting = client.Locks.AcquireAsync(_name, s_lease, s_wait, options, cancel.Token).AsTask();
        await Wait.UntilAsync(async () => (await client.Locks.GetAsync(_name))!.WaiterCount == 1);
        await cancel.CancelAsync();
        KahunaCanceledException canceled = await Assert.ThrowsAsync<KahunaCanceledException>(
            () => waiting.WaitAsync(Wait.Longest));
        Assert.Equal(cancel.Token, canceled.CancellationToken);
        await Wait.UntilAsync(async () => (await client.Locks.GetAsync(_name))!.WaiterCount == 0);
        canceled = await Assert.ThrowsAsync<KahunaCanceledException>(
            () => client.Locks.AcquireAsync(_name, s_lease, s_wait, options, cancel.Token).AsTask());
        Assert.Equal(OperationOutcome.DidNotHappen, canceled.Outcome);
        await held.DisposeAsync();
        await using LockHandle? other = await client.Locks.TryAcquireAsync(_name, s_lease, options);
        Assert.NotNull(other);
    }

    [Fact]
    public async Task An_acquire_that_is_cancelled_at_any_moment_leaves_nothing_behind()
    {
        await using KahunaClient client = Connect();
        for (int i = 0; i < 60; i++)
        {
            using CancellationTokenSource cancel = new();
            Task<LockHandle> acquiring = client.Locks.AcquireAsync(_name, s_lease, s_wait, cancel.Token).AsTask();
            for (int spin = 0; spin < i % 20; spin++)
            {
                await Task.Yield();
            }

            await cancel.CancelAsync();
            try
            {
                await (await acquiring.WaitAsync(Wait.Longest)).DisposeAsync();
            }
            catch (KahunaCanceledException)
            {
                // The lock is free again in a moment, or the next one waits for it.
            }
        }

        await using LockHandle last = await client.Locks.AcquireAsync(_name, s_lease, s_wait);
        await Wait.UntilAsync(async () => (await client.Locks.GetAsync(_name))!.WaiterCount == 0);
    }

    [Fact]
    public async Task An_owner_renews_its_lock_under_the_same_token()
    {
        await using KahunaClient client = Connect();
        LockOptions owner = new() { ReentrantOwner = "node 7", Note = "on its way", AutoRenew = false };
        LockHandle first = await client.Locks.AcquireAsync(_name, s_lease / 2, s_wait, owner);
        LockHandle again = (await client.Locks.TryAcquireAsync(_name, s_lease, owner))!;
        Assert.Equal(first.Token, again.Token);
        Assert.InRange(again.Remaining, s_lease / 2, s_lease);
        LockDescription held = (await client.Locks.GetAsync(_name))!;
        Assert.Equal(("node 7", "on its way"), (held.Holders[0].Owner, held.Holders[0].Note.AsString()));
        Assert.InRange(held.Holders[0].Remaining, s_lease / 2, s_lease);
        Assert.True(await first.ReleaseAsync());
        Assert.False(await again.ReleaseAsync());
        Assert.False(await again.ExtendAsync());
    }

    [Fact]
    public async Task Only_owner_and_token_together_extend_and_release()
    {
        await using KahunaClient client = Connect();
        LockHandle first = await client.Locks.AcquireAsync(
            _name, s_lease, s_wait, new LockOptions { AutoRenew = false });
        LockClient locks = client.Locks;
        Assert.Null(await locks.ExtendAsync(_name, "another", first.Token, s_lease));
        Assert.Null(await locks.ExtendAsync(_name, first.Owner, new FencingToken(first.Token.Value + 1), s_lease));
        Assert.False(await locks.ReleaseAsync(_name, "another", first.Token));
        Assert.False(await locks.ReleaseAsync(_name, first.Owner, new FencingToken(first.Token.Value + 1)));
        Assert.False(await locks.ReleaseAsync(_name, first.Owner, first.Token, Durability.Ephemeral));
        await using (LockHandle elsewhere = await locks.AcquireAsync(
            _name + "/other", s_lease, s_wait, new LockOptions { ReentrantOwner = first.Owner }))
        {
            Assert.False(await locks.ReleaseAsync(_name, first.Owner, elsewhere.Token));
            Assert.Null(await locks.ExtendAsync(_name, first.Owner, elsewhere.Token, s_lease));
            await FailsAsync(
                client.KeyValues.SetAsync(
                    _name[..^4] + "key", "v", new SetOptions { Fence = new Fence(_name, elsewhere.Token) }),
                KahunaErrorCode.LockLost,
                $"Token {elsewhere.Token} no longer holds");
        }

        Assert.InRange(
            (await locks.ExtendAsync(_name, first.Owner, first.Token, 4 * s_lease))!.Value, 2 * s_lease, 4 * s_lease);
        Assert.True(await first.ExtendAsync(8 * s_lease));
        Assert.InRange(first.Remaining, 4 * s_lease, 8 * s_lease);

        Assert.True(await locks.ReleaseAsync(_name, first.Owner, first.Token));
        await using LockHandle next = await locks.AcquireAsync(_name, s_lease, s_wait);
        Assert.False(await first.ExtendAsync());
        Assert.True(first.LostToken.IsCancellationRequested);
        Assert.Equal(TimeSpan.Zero, first.Remaining);
        Assert.False(await first.ReleaseAsync());
        await first.DisposeAsync();
        Assert.Equal(next.Token, (await locks.GetAsync(_name))!.Holders[0].Token);
        Assert.False(next.LostToken.IsCancellationRequested);
    }

    [Fact]
    public async Task A_lease_ends_unless_it_is_renewed()
    {
        await using KahunaClient client = Connect();
        TimeSpan lease = TimeSpan.FromMilliseconds(600);
        await using LockHandle left = await client.Locks.AcquireAsync(
            _name, lease, s_wait, new LockOptions { AutoRenew = false });
        CancellationToken lost = left.LostToken;
        await using LockHandle next = await client.Locks.AcquireAsync(_name, s_lease, s_wait);
        Assert.Equal(TimeSpan.Zero, left.Remaining);
        await Wait.UntilAsync(() => lost.IsCancellationRequested);
        Assert.True(next.Token > left.Token);

        // A busy machine may come too late to renew a short lease; without renewal the longest ends, too.
        Assert.True(await IsKeptAsync(client, 4 * lease) || await IsKeptAsync(client, 20 * lease) || await IsKeptAsync(
            client, 100 * lease));
    }

    /// <summary>
    /// Whether a lease that is renewed is held when another one that is as long, and is not renewed, has ended.
    /// </summary>
    private async Task<bool> IsKeptAsync(KahunaClient client, TimeSpan lease)
    {
        await using LockHandle renewed = await client.Locks.AcquireAsync(_name + "/kept", lease, s_wait);
        await using LockHandle asLong = await client.Locks.AcquireAsync(
            _name + "/clock", lease, s_wait, new LockOptions { AutoRenew = false });
        await Wait.UntilAsync(() => asLong.LostToken.IsCancellationRequested);
        await using LockHandle? other = await client.Locks.TryAcquireAsync(_name + "/kept", s_lease);
        return other is null
            && !renewed.LostToken.IsCancellationRequested
            && await client.Locks.GetAsync(_name + "/kept") is not null;
    }

    [Fact]
    public async Task Readers_share_and_writers_do_not()
    {
        await using KahunaClient client = Connect();
        LockOptions reader = new() { Mode = LockMode.Shared };
        LockHandle one = (await client.Locks.TryAcquireAsync(_name, s_lease, reader))!;
        LockHandle two = (await client.Locks.TryAcquireAsync(_name, s_lease, reader))!;
        Assert.Equal(2, (await client.Locks.GetAsync(_name))!.HolderCount);
        Assert.Null(await client.Locks.TryAcquireAsync(_name, s_lease));
        await FailsAsync(
            client.Locks.AcquireAsync(_name, s_lease, s_wait),
            KahunaErrorCode.LockModeDiffers,
            "Release the shared one first.");
        Task<LockHandle> writer;
        using (ExecutionContext.SuppressFlow())
        {
            // Another flow than the readers'.
            writer = Task.Run(() => client.Locks.AcquireAsync(_name, s_lease, s_wait).AsTask());
        }

        await Wait.UntilAsync(async () => (await client.Locks.GetAsync(_name))!.WaiterCount == 1);

        // A writer that waits is not passed by.
        Assert.Null(await client.Locks.TryAcquireAsync(_name, s_lease, reader));
        Task<LockHandle> late = client.Locks.AcquireAsync(_name, s_lease, s_wait, reader).AsTask();
        await one.DisposeAsync();
        Assert.False(writer.IsCompleted);
        await two.DisposeAsync();
        LockHandle written = await writer.WaitAsync(Wait.Longest);
        Assert.False(late.IsCompleted);
        await written.DisposeAsync();
        await using LockHandle last = await late.WaitAsync(Wait.Longest);
        Assert.Equal(LockMode.Shared, (await client.Locks.GetAsync(_name))!.Holders[0].Mode);
    }

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public async Task A_semaphore_has_so_many_permits(Durability durability)
    {
        await using KahunaClient client = Connect();
        LockOptions options = new() { Durability = durability };
        SemaphoreClient semaphores = client.Semaphores;
        List<LockHandle> taken = [];
        for (int i = 0; i < 3; i++)
        {
            taken.Add(await semaphores.AcquireAsync(_name, 3, s_lease, s_wait, options));
        }

        Assert.Null(await semaphores.TryAcquireAsync(_name, 3, s_lease, options));
        await FailsAsync(
            semaphores.TryAcquireAsync(_name, 4, s_lease, options),
            KahunaErrorCode.LockModeDiffers,
            "a semaphore of 3 permits");
        await FailsAsync(
            client.Locks.TryAcquireAsync(_name, s_lease, options),
            KahunaErrorCode.LockModeDiffers,
            "a semaphore of 3 permits");
        LockDescription held = (await client.Locks.GetAsync(_name, durability))!;
        Assert.Equal((3, 3), (held.Permits, held.HolderCount));
        Assert.Equal(
            taken.Select(handle => (handle.Token, LockMode.Permit)),
            held.Holders.Select(holder => (holder.Token, holder.Mode)));
        Task<LockHandle> waiting = semaphores.AcquireAsync(_name, 3, s_lease, s_wait, options).AsTask();
        await Wait.UntilAsync(async () => (await client.Locks.GetAsync(_name, durability))!.WaiterCount == 1);
        await taken[1].DisposeAsync();
        taken[1] = await waiting.WaitAsync(Wait.Longest);
        foreach (LockHandle handle in taken)
        {
            await handle.DisposeAsync();
        }

        await using LockHandle ordinary = (await client.Locks.TryAcquireAsync(_name, s_lease, options))!;
        await FailsAsync(
            semaphores.TryAcquireAsync(_name, 3, s_lease, options), KahunaErrorCode.LockModeDiffers, "as a lock");
    }

    [Fact]
    public async Task Lists_show_what_is_held()
    {
        await using KahunaClient client = Connect();
        List<LockHandle> held = [];
        for (int i = 0; i < 20; i++)
        {
            LockOptions options = new()
            {
                Durability = i % 4 == 0 ? Durability.Ephemeral : Durability.Persistent,
                Mode = LockMode.Shared,
            };
            held.Add(await client.Locks.AcquireAsync($"{_name}/{i}/x", s_lease, s_wait, options));
        }

        List<LockDescription> listed = [];
        await foreach (LockDescription found in client.Locks.ListAsync(_name))
        {
            listed.Add(found);
        }

        Assert.Equal(
            held
                .Where(handle => handle.Durability == Durability.Persistent)
                .Select(handle => (handle.Resource, handle.Token))
                .Order(),
            listed.Select(found => (found.Resource, found.Holders[0].Token)).Order());
        int ephemeral = 0;
        await foreach (LockDescription found in client.Locks.ListAsync(_name, Durability.Ephemeral))
        {
            ephemeral++;
        }

        Assert.Equal(5, ephemeral);
        await Task.WhenAll(held.Select(handle => handle.DisposeAsync().AsTask()));
        Assert.Null(await client.Locks.GetAsync($"{_name}/7/x"));
    }

    private KahunaClient Connect() =>
        PatientClient.Connect(nodes.Cluster.Endpoints, static options => options.Insecure = true);

    private static async Task FailsAsync<T>(ValueTask<T> call, KahunaErrorCode code, string words)
    {
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(
            () => call.AsTask().WaitAsync(Wait.Longest));
        Assert.Equal(code, failure.Code);
        Assert.Equal(OperationOutcome.DidNotHappen, failure.Outcome);
        Assert.Contains(words, failure.Message, StringComparison.Ordinal);
    }
}
