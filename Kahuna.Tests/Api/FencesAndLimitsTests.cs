using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Locks;
using Kahuna.Client.Outcomes;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Api;

/// <summary>Fenced writes, and refused arguments of locks, through the SDK against three real nodes.</summary>
[Collection(nameof(ThreeNodesCollection))]
public sealed class FencesAndLimitsTests(ThreeNodes nodes)
{
    private static readonly TimeSpan s_lease = TimeSpan.FromMinutes(5);
    private static readonly TimeSpan s_wait = TimeSpan.FromMinutes(5);

    private readonly string _name = $"locks{Guid.NewGuid():n}/lock";

    [Theory]
    [InlineData(Durability.Persistent)]
    [InlineData(Durability.Ephemeral)]
    public async Task A_write_with_a_token_counts_only_while_the_lock_is_held(Durability durability)
    {
        await using KahunaClient client = Connect();
        KeyValueClient kv = client.KeyValues;
        string key = _name[..^4] + "key";
        LockHandle held = await client.Locks.AcquireAsync(
            _name, s_lease, s_wait, new LockOptions { Durability = durability });
        Fence fence = held.Fence;
        SetOptions set = new() { Durability = durability, Fence = fence };
        Assert.True((await kv.SetAsync(key, "5", set)).Applied);
        Assert.Equal(
            6,
            (await kv.IncrementAsync(key, 1, new IncrementOptions { Durability = durability, Fence = fence })).Value);
        Assert.True(
            (await kv.ExtendAsync(
                key, s_lease, new ExtendOptions { Durability = durability, Fence = fence })).Extended);
        Assert.True((await kv.DeleteAsync(key, new DeleteOptions { Durability = durability, Fence = fence })).Deleted);
        Assert.True((await kv.SetAsync(key, "7", set with { OnlyIfAbsent = true, Ttl = s_lease })).Applied);

        await held.DisposeAsync();
        await FailsAsync(
            kv.SetAsync(key, "8", set),
            KahunaErrorCode.LockLost,
            $"Token {fence.Token} no longer holds the lock \"{_name}\" (nobody does)");
        await using LockHandle next = await client.Locks.AcquireAsync(
            _name, s_lease, s_wait, new LockOptions { Durability = durability });
        string says = $"(token {next.Token} does)";
        await FailsAsync(kv.SetAsync(key, "8", set), KahunaErrorCode.LockLost, says);
        await FailsAsync(
            kv.DeleteAsync(key, new DeleteOptions { Durability = durability, Fence = fence }),
            KahunaErrorCode.LockLost,
            says);
        await FailsAsync(
            kv.ExtendAsync(key, s_lease, new ExtendOptions { Durability = durability, Fence = fence }),
            KahunaErrorCode.LockLost,
            says);
        await FailsAsync(
            kv.IncrementAsync(key, 1, new IncrementOptions { Durability = durability, Fence = fence }),
            KahunaErrorCode.LockLost,
            says);
        await FailsAsync(
            kv.TryIncrementAsync(key, 1, new IncrementOptions { Durability = durability, Fence = fence }),
            KahunaErrorCode.LockLost,
            says);
        GetResult got = await kv.GetAsync(key, new ReadOptions { Durability = durability });
        Assert.Equal("7", got.Value.AsString());

        await FailsAsync(
            kv.SetAsync("another" + key, "8", set with { Fence = next.Fence }),
            KahunaErrorCode.InvalidArgument,
            "in another bucket");
        await FailsAsync(
            kv.SetAsync(key, "8", set with { Fence = new Fence(_name, new FencingToken(0)) }),
            KahunaErrorCode.InvalidArgument,
            "fence token is 0");
        await FailsAsync(
            kv.SetAsync(key, "8", set with { Fence = new Fence("", new FencingToken(1)) }),
            KahunaErrorCode.InvalidArgument,
            "fence resource is 0 bytes");
        await FailsAsync(
            kv.SetAsync(key, "8", set with { Fence = new Fence(new string('n', 1025), new FencingToken(1)) }),
            KahunaErrorCode.InvalidArgument,
            "1,025 bytes");
    }

    [Fact]
    public async Task What_cannot_be_is_said_clearly()
    {
        await using KahunaClient client = Connect();
        LockClient locks = client.Locks;
        await RefusedAsync(
            locks.AcquireAsync(_name, TimeSpan.Zero, s_wait), "Lease is 0 ms; it must be 1 to 3,600,000 ms");
        await RefusedAsync(locks.TryAcquireAsync(_name, TimeSpan.FromSeconds(-1)), "Lease is -1,000 ms");
        await RefusedAsync(
            locks.TryAcquireAsync(_name, TimeSpan.FromHours(1) + TimeSpan.FromTicks(1)), "Lease is 3,600,001 ms");
        await RefusedAsync(locks.AcquireAsync(_name, TimeSpan.MaxValue, s_wait), "Lease is 922,337,203,685,478 ms");
        await RefusedAsync(
            locks.AcquireAsync(_name, s_lease, TimeSpan.Zero), "Wait is 0 ms; it must be 1 to 86,400,000 ms");
        await RefusedAsync(locks.AcquireAsync(_name, s_lease, TimeSpan.FromTicks(-1)), "Wait is -1 ms");
        await RefusedAsync(locks.AcquireAsync(_name, s_lease, TimeSpan.FromHours(25)), "Wait is 90,000,000 ms");
        await RefusedAsync(locks.AcquireAsync("", s_lease, s_wait), "resource is empty");
        await RefusedAsync(locks.AcquireAsync(new string('n', 1025), s_lease, s_wait), "1,025 bytes");
        await RefusedAsync(locks.AcquireAsync("__kahuna/x", s_lease, s_wait), "reserved");
        await RefusedAsync(locks.AcquireAsync("\ud800", s_lease, s_wait), "unpaired surrogate");
        await RefusedAsync(
            locks.TryAcquireAsync(_name, s_lease, new LockOptions { ReentrantOwner = "" }), "owner is empty");
        await RefusedAsync(
            locks.TryAcquireAsync(_name, s_lease, new LockOptions { ReentrantOwner = new string('o', 257) }),
            "owner is 257 bytes; the limit is 256");
        await RefusedAsync(
            locks.TryAcquireAsync(_name, s_lease, new LockOptions { ReentrantOwner = new string('o', 70_000) }),
            "owner is 70,000 bytes");
        await RefusedAsync(
            locks.TryAcquireAsync(_name, s_lease, new LockOptions { ReentrantOwner = "\ud800" }),
            "owner has an unpaired surrogate");
        await RefusedAsync(
            locks.TryAcquireAsync(_name, s_lease, new LockOptions { Note = new string('o', 1025) }),
            "note is 1,025 bytes");
        await RefusedAsync(locks.TryAcquireAsync(_name, s_lease, new LockOptions { Mode = 0 }), "mode is 0");
        await RefusedAsync(
            locks.TryAcquireAsync(_name, s_lease, new LockOptions { Mode = LockMode.Permit }), "permits is 0");
        await RefusedAsync(
            locks.TryAcquireAsync(_name, s_lease, new LockOptions { RenewFor = TimeSpan.Zero }),
            "RenewFor is 00:00:00");
        await RefusedAsync(
            locks.TryAcquireAsync(_name, s_lease, new LockOptions { Durability = (Durability)3 }), "durability is 3");
        await RefusedAsync(
            client.Semaphores.TryAcquireAsync(_name, 0, s_lease), "permits is 0; it must be 1 to 10,000");
        await RefusedAsync(client.Semaphores.TryAcquireAsync(_name, -1, s_lease), "permits is -1");
        await RefusedAsync(client.Semaphores.TryAcquireAsync(_name, 65_536 + 7, s_lease), "permits is 65,543");
        await RefusedAsync(locks.ExtendAsync(_name, "o", new FencingToken(0), s_lease), "token is 0");
        await RefusedAsync(locks.ExtendAsync(_name, "o", new FencingToken(1), TimeSpan.Zero), "Lease is 0 ms");
        await RefusedAsync(locks.ReleaseAsync(_name, "", new FencingToken(1)), "owner is empty");
        await RefusedAsync(locks.ReleaseAsync(_name, "o", new FencingToken(-1)), "token is -1");
        await RefusedAsync(locks.GetAsync(""), "resource is empty");
        Assert.Throws<ArgumentNullException>(() => locks.AcquireAsync(null!, s_lease, s_wait));

        string longest = _name + new string('n', 1024 - _name.Length);
        LockOptions full =
            new() { ReentrantOwner = new string('o', 256), Note = new string('n', 1024), Mode = LockMode.Shared };
        await using LockHandle held = await locks.AcquireAsync(
            longest, TimeSpan.FromHours(1), TimeSpan.FromHours(24), full);
        await FailsAsync(
            locks.TryAcquireAsync(longest, s_lease, full with { Mode = LockMode.Exclusive }),
            KahunaErrorCode.LockModeDiffers,
            "by this owner in another mode");
        Assert.True(
            (await client.KeyValues.SetAsync(longest[..^1] + "k", "v", new SetOptions { Fence = held.Fence })).Applied);
        Assert.Equal(
            (full.ReentrantOwner, full.Note),
            (
                (await locks.GetAsync(longest))!.Holders[0].Owner,
                (await locks.GetAsync(longest))!.Holders[0].Note.AsString()));
    }

    private KahunaClient Connect() =>
        PatientClient.Connect(nodes.Cluster.Endpoints, static options => options.Insecure = true);

    private static Task RefusedAsync<T>(ValueTask<T> call, string words) =>
        FailsAsync(call, KahunaErrorCode.InvalidArgument, words);

    private static async Task FailsAsync<T>(ValueTask<T> call, KahunaErrorCode code, string words)
    {
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(
            () => call.AsTask().WaitAsync(Wait.Longest));
        Assert.Equal(code, failure.Code);
        Assert.Equal(OperationOutcome.DidNotHappen, failure.Outcome);
        Assert.Contains(words, failure.Message, StringComparison.Ordinal);
    }
}
