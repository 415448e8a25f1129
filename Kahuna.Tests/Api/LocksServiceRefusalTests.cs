using Google.Protobuf;
using Grpc.Core;
using Kahuna.Server.Api.Protos;
using Protos = Kahuna.Server.Api.Protos;

namespace Kahuna.Tests.Api;

/// <summary>Calls about locks that cannot be are refused with a sentence, and do nothing.</summary>
[Collection(nameof(ThreeNodesCollection))]
public sealed class LocksServiceRefusalTests(ThreeNodes nodes)
{
    private readonly string _name = $"locks/{Guid.NewGuid():n}";

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task Claims_that_cannot_be_are_refused(bool throughLeader)
    {
        UnaryLocks locks = Locks(throughLeader);
        foreach ((string words, Action<AcquireLockRequest> change) in new (string, Action<AcquireLockRequest>)[]
        {
            ("lease_ms is 0; it must be 1 to 3,600,000", request => request.LeaseMs = 0),
            ("lease_ms is -1; it must be 1 to 3,600,000", request => request.LeaseMs = -1),
            ("lease_ms is 3,600,001; it must be 1 to 3,600,000", request => request.LeaseMs = 3_600_001),
            ("wait_ms is 0; it must be 1 to 86,400,000, or unset not to wait", request => request.WaitMs = 0),
            ("wait_ms is -7; it must be 1 to 86,400,000, or unset not to wait", request => request.WaitMs = -7),
            (
                "wait_ms is 86,400,001; it must be 1 to 86,400,000, or unset not to wait",
                request => request.WaitMs = 86_400_001),
            ("owner is empty", request => request.Owner = ""),
            ("owner is 257 bytes; the limit is 256", request => request.Owner = new string('o', 257)),
            ("owner is 70,000 bytes; the limit is 256", request => request.Owner = new string('o', 70_000)),
            (
                "mode is 0; it must be 1 (exclusive), 2 (shared) or 3 (permit)",
                request => request.Mode = Protos.LockMode.Unspecified),
            (
                "mode is 4; it must be 1 (exclusive), 2 (shared) or 3 (permit)",
                request => request.Mode = (Protos.LockMode)4),
            (
                "mode is 257; it must be 1 (exclusive), 2 (shared) or 3 (permit)",
                request => request.Mode = (Protos.LockMode)257),
            (
                "mode is -1; it must be 1 (exclusive), 2 (shared) or 3 (permit)",
                request => request.Mode = (Protos.LockMode)(-1)),
            ("durability is not set", request => request.Durability = Protos.Durability.Unspecified),
            (
                "durability is 3; it must be 1 (persistent) or 2 (ephemeral)",
                request => request.Durability = (Protos.Durability)3),
            ("durability 258 is unknown", request => request.Durability = (Protos.Durability)258),
            ("permits is 0; it must be 1 to 10,000", request => request.Mode = Protos.LockMode.Permit),
            (
                "permits is 10,001; it must be 1 to 10,000",
                request => (request.Mode, request.Permits) = (Protos.LockMode.Permit, 10_001)),
            (
                "permits is 65,537; it must be 1 to 10,000",
                request => (request.Mode, request.Permits) = (Protos.LockMode.Permit, 65_537)),
            (
                "permits is -1; it must be 1 to 10,000",
                request => (request.Mode, request.Permits) = (Protos.LockMode.Permit, -1)),
            ("permits is not an option of a lock", request => request.Permits = 1),
            (
                "permits is not an option of a lock",
                request => (request.Mode, request.Permits) = (Protos.LockMode.Shared, 1)),
            ("resource is empty", request => request.Resource = ""),
            ("resource is 1,025 bytes; the limit is 1,024", request => request.Resource = new string('n', 1_025)),
            ("resource is 70,000 bytes; the limit is 1,024", request => request.Resource = new string('n', 70_000)),
            ("resource begins with __kahuna", request => request.Resource = "__kahuna/x"),
            ("note is 1,025 bytes; the limit is 1,024", request => request.Note = ByteString.CopyFrom(new byte[1_025])),
        })
        {
            AcquireLockRequest request = UnaryLocks.Request(_name, Protos.Durability.Persistent, "ann");
            change(request);
            await RefusedAsync(() => locks.AcquireAsync(request), words);
        }

        Assert.Null(await locks.GetAsync(_name, Protos.Durability.Persistent));
        await RefusedAsync(
            () => locks.AcquireAsync(
                UnaryLocks.Request(_name, Protos.Durability.Persistent, "ann"),
                new Metadata { { "x-kahuna-session", "1" } }),
            "x-kahuna-sequence is missing");
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task Other_calls_that_cannot_be_are_refused(bool throughLeader)
    {
        UnaryLocks locks = Locks(throughLeader);
        foreach ((string words, Action<ExtendLockRequest> change) in new (string, Action<ExtendLockRequest>)[]
        {
            ("lease_ms is 0; it must be 1 to 3,600,000", request => request.LeaseMs = 0),
            ("lease_ms is -1; it must be 1 to 3,600,000", request => request.LeaseMs = -1),
            ("lease_ms is 3,600,001; it must be 1 to 3,600,000", request => request.LeaseMs = 3_600_001),
            ("owner is empty", request => request.Owner = ""),
            ("owner is 257 bytes; the limit is 256", request => request.Owner = new string('o', 257)),
            ("token is 0; it must be 1 or greater", request => request.Token = 0),
            ("token is -3; it must be 1 or greater", request => request.Token = -3),
            ("durability is not set", request => request.Durability = Protos.Durability.Unspecified),
            ("resource is empty", request => request.Resource = ""),
        })
        {
            ExtendLockRequest request = new()
            {
                Resource = _name,
                Durability = Protos.Durability.Persistent,
                Owner = "ann",
                Token = 1,
                LeaseMs = 1_000,
            };
            change(request);
            await RefusedAsync(() => locks.ExtendAsync(request), words);
        }

        await RefusedAsync(() => locks.ReleaseAsync(_name, Protos.Durability.Persistent, "", 1), "owner is empty");
        await RefusedAsync(
            () => locks.ReleaseAsync(_name, Protos.Durability.Persistent, new string('o', 257), 1),
            "owner is 257 bytes; the limit is 256");
        await RefusedAsync(
            () => locks.ReleaseAsync(_name, Protos.Durability.Persistent, "ann", 0),
            "token is 0; it must be 1 or greater");
        await RefusedAsync(
            () => locks.ReleaseAsync(_name, Protos.Durability.Unspecified, "ann", 1), "durability is not set");
        await RefusedAsync(() => locks.ReleaseAsync("", Protos.Durability.Persistent, "ann", 1), "resource is empty");
        await RefusedAsync(() => locks.GetAsync("", Protos.Durability.Persistent), "resource is empty");
        await RefusedAsync(() => locks.GetAsync(_name, Protos.Durability.Unspecified), "durability is not set");
        await RefusedAsync(() => locks.ListAsync(new ListLocksRequest { Prefix = _name }), "durability is not set");
        foreach (string token in new[] { "x", "0:", "-1:0", "0:-1", "99999:0", "0:0:0", "99999999999999999999:0" })
        {
            await RefusedAsync(
                () => locks.ListAsync(
                    new ListLocksRequest { Durability = Protos.Durability.Persistent, PageToken = token }),
                "page_token does not come from a server");
        }

        ObserveLockRequest observe = new() { Resource = _name, Durability = Protos.Durability.Persistent };
        await RefusedAsync(
            () => locks.ObserveAsync(new ObserveLockRequest(observe) { HoldMs = -1 }),
            "hold_ms is -1; it must be 0 to 30,000");
        await RefusedAsync(
            () => locks.ObserveAsync(new ObserveLockRequest(observe) { HoldMs = 30_001 }),
            "hold_ms is 30,001; it must be 0 to 30,000");
        await RefusedAsync(
            () => locks.ObserveAsync(new ObserveLockRequest(observe) { KnownToken = -1 }), "token is -1");
        await RefusedAsync(
            () => locks.ObserveAsync(new ObserveLockRequest(observe) { Durability = Protos.Durability.Unspecified }),
            "durability is not set");
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task The_longest_of_everything_is_taken(bool throughLeader)
    {
        UnaryLocks locks = Locks(throughLeader);
        string longest = new string('n', 1_024 - _name.Length) + _name;
        AcquireLockRequest request = UnaryLocks.Request(
            longest, Protos.Durability.Persistent, new string('o', 256), 3_600_000, 86_400_000);
        request.Note = ByteString.CopyFrom(Enumerable.Range(0, 1_024).Select(i => (byte)i).ToArray());
        AcquireLockResponse granted = await locks.AcquireAsync(request);
        Assert.InRange(granted.RemainingLeaseMs, 3_590_000, 3_600_000);
        LockHolder holder = (await locks.GetAsync(longest, Protos.Durability.Persistent))!.Holders.Single();
        Assert.Equal((request.Owner, request.Note), (holder.Owner, holder.Note));

        // A token of another lock is good for nothing.
        AcquireLockResponse other = await locks.AcquireAsync(
            UnaryLocks.Request(_name, Protos.Durability.Persistent, request.Owner));
        Assert.Equal(
            granted.Token,
            (await locks.ReleaseAsync(longest, Protos.Durability.Persistent, request.Owner, other.Token)).HolderToken);
        Assert.Equal(
            granted.Token,
            (await locks.ExtendAsync(
                new ExtendLockRequest
                {
                    Resource = longest,
                    Durability = Protos.Durability.Persistent,
                    Owner = request.Owner,
                    Token = other.Token,
                    LeaseMs = 1,
                })).HolderToken);
        Assert.True(
            (await locks.ReleaseAsync(longest, Protos.Durability.Persistent, request.Owner, granted.Token)).Released);

        AcquireLockRequest permit = UnaryLocks.Request(_name + "s", Protos.Durability.Ephemeral, "ann");
        (permit.Mode, permit.Permits) = (Protos.LockMode.Permit, 10_000);
        Assert.True((await locks.AcquireAsync(permit)).Granted);
    }

    private UnaryLocks Locks(bool throughLeader) => new(throughLeader ? nodes.Leader : nodes.Follower);

    private static async Task RefusedAsync<T>(Func<Task<T>> call, string words)
    {
        RpcException error = await Assert.ThrowsAsync<RpcException>(call);
        Assert.Equal(
            (StatusCode.InvalidArgument, "did-not-happen"),
            (error.StatusCode, error.Trailers.GetValue("kahuna-outcome")));
        Assert.Contains(words, error.Status.Detail, StringComparison.Ordinal);
    }
}
