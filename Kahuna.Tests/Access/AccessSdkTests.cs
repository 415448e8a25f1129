using System.Net.Security;
using Grpc.Core;
using Grpc.Net.Client;
using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Transactions;
using Kahuna.Client.Watches;
using Kahuna.Server.Access;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Access;

/// <summary>Users of the SDK on nodes that require authentication.</summary>
[Collection(AccessClusterCollection.Name)]
public sealed class AccessSdkTests(AccessCluster cluster)
{
    [Fact]
    public async Task Each_user_has_its_own_names()
    {
        await using KahunaClient ann = Connect("ann");
        await ann.KeyValues.SetAsync("ann/a", "v");
        await ann.KeyValues.SetAsync("ann/a", "v", new SetOptions { Durability = Durability.Ephemeral });
        Assert.Equal("v", (await ann.KeyValues.GetAsync("ann/a")).Value.AsString());
        await RefusedAsync(ann.KeyValues.SetAsync("bob/a", "v"), "write");
        await RefusedAsync(ann.KeyValues.GetAsync("bob/a"), "read");
        await RefusedAsync(ann.Sequences.NextAsync("bob/s"), "sequence");
        await RefusedAsync(ann.Locks.AcquireAsync("bob/l", TimeSpan.FromSeconds(10), TimeSpan.FromSeconds(1)), "lock");
        await RefusedAsync(ann.Scripts.RunAsync("set 'bob/s' 'v'"), "script");
        await RefusedAsync(CountAsync(ann, "b"), "read");
        Assert.Equal(1, await CountAsync(ann, "ann/a"));
    }

    [Fact]
    public async Task A_transaction_over_several_partitions_is_checked_part_by_part()
    {
        await using KahunaClient ann = Connect("ann");
        for (int i = 0; i < 8; i++)
        {
            await using Transaction own = await ann.Transactions.BeginAsync();
            await own.SetAsync($"ann/deep{i}/a", "v");
            await own.SetAsync($"shared/deep{i}/b", "v");
            await own.CommitAsync();
            await using Transaction other = await ann.Transactions.BeginAsync();
            await other.SetAsync($"ann/half{i}/a", "v");
            await other.SetAsync($"bob/half{i}/a", "v");
            await RefusedAsync(other.CommitAsync(), "");
        }

        await using KahunaClient root = Connect("root");
        for (int i = 0; i < 8; i++)
        {
            Assert.False((await root.KeyValues.GetAsync($"ann/half{i}/a")).Found);
            Assert.True((await root.KeyValues.GetAsync($"ann/deep{i}/a")).Found);
        }
    }

    [Fact]
    public async Task A_watch_needs_its_names_and_ends_with_its_right()
    {
        await cluster.ChangeAsync(
            [AccessRowFormat.Of(AccessCluster.Role("watcher", "seen")), cluster.WithRoles("eve", "watcher")]);
        await cluster.KnownEverywhereAsync();
        await using KahunaClient eve = Connect("eve");
        await using KahunaClient root = Connect("root");
        await RefusedAsync(FirstAsync(eve, "ann/a"), "");
        using CancellationTokenSource limit = new();
        await using IAsyncEnumerator<WatchEvent> watch = eve.KeyValues.WatchAsync(
            "seen/a", new WatchOptions { Scope = WatchScope.Key }).GetAsyncEnumerator(limit.Token);
        Task<bool> first = watch.MoveNextAsync().AsTask();
        while (!first.IsCompleted)
        {
            await root.KeyValues.SetAsync("seen/a", "before");
            await Task.WhenAny(first, Task.Delay(20));
        }

        Assert.True(await first);
        await cluster.ChangeAsync([cluster.WithRoles("eve")]);
        limit.CancelAfter(LastNet.Minute);
        KahunaException ended = await Assert.ThrowsAsync<KahunaException>(async () =>
        {
            while (await watch.MoveNextAsync().AsTask().WaitAsync(Wait.Longest))
            {
                await root.KeyValues.SetAsync("seen/a", "after");
            }
        });
        Assert.Equal(KahunaErrorCode.PermissionDenied, ended.Code);
    }

    [Fact]
    public async Task A_watch_of_a_foreign_client_needs_its_names_and_ends_with_its_right()
    {
        await cluster.ChangeAsync(
            [AccessRowFormat.Of(AccessCluster.Role("watcher", "seen")), cluster.WithRoles("eve", "watcher")]);
        await cluster.KnownEverywhereAsync();
        using GrpcChannel channel = GrpcChannel.ForAddress(
            cluster.Embedded.Nodes[0].Options.Advertise,
            new GrpcChannelOptions { HttpHandler = new SocketsHttpHandler { SslOptions = AnyServer() } });
        RpcException refused = await Assert.ThrowsAsync<RpcException>(async () =>
        {
            await foreach (Server.Api.Protos.WatchKeyValuesResponse _ in WatchAsync(channel, "ann/a"))
            {
            }
        });
        Assert.Equal(StatusCode.PermissionDenied, refused.StatusCode);
        Task<RpcException> ended = Assert.ThrowsAsync<RpcException>(async () =>
        {
            await foreach (Server.Api.Protos.WatchKeyValuesResponse told in WatchAsync(channel, "seen/a"))
            {
                if (told.Events.Count > 0)
                {
                    await cluster.ChangeAsync([cluster.WithRoles("eve")]);
                }
            }
        });
        await using KahunaClient root = Connect("root");
        while (!ended.IsCompleted)
        {
            await root.KeyValues.SetAsync("seen/a", "v");
            await Task.WhenAny(ended, Task.Delay(20));
        }

        Assert.Equal(StatusCode.PermissionDenied, (await ended).StatusCode);
    }

    private static SslClientAuthenticationOptions AnyServer() =>
        new() { RemoteCertificateValidationCallback = static (_, _, _, _) => true };

    private static IAsyncEnumerable<Server.Api.Protos.WatchKeyValuesResponse> WatchAsync(
        GrpcChannel channel, string key)
    {
        string shown = Convert.ToBase64String("eve:eveeve"u8);
        return channel.ServerStreamingAsync(
            "/kahuna.v1.KeyValues/WatchKeyValues",
            new Server.Api.Protos.WatchKeyValuesRequest
            {
                Key = key,
                Durability = Server.Api.Protos.Durability.Persistent,
            },
            Server.Api.Protos.WatchKeyValuesResponse.Parser,
            TestCalls.Within(LastNet.Minute).WithHeaders(new Metadata { { "authorization", $"Basic {shown}" } }));
    }

    [Fact]
    public async Task What_a_disabled_user_has_open_ends_and_nothing_more_is_done_for_it()
    {
        await cluster.ChangeAsync(
            [AccessRowFormat.Of(AccessCluster.Role("leaver", "leaver")), cluster.WithRoles("bob", "bob", "leaver")]);
        await cluster.KnownEverywhereAsync();
        await using KahunaClient bob = Connect("bob");
        await bob.KeyValues.SetAsync("leaver/a", "v");
        await cluster.ChangeAsync([cluster.With("bob", static user => user with { IsDisabled = true })]);
        await cluster.KnownEverywhereAsync();
        KahunaException refused = await Assert.ThrowsAsync<KahunaException>(
            () => bob.KeyValues.SetAsync("leaver/a", "v").AsTask().WaitAsync(Wait.Longest));
        Assert.Equal(KahunaErrorCode.Unauthenticated, refused.Code);
        await cluster.ChangeAsync([cluster.With("bob", static user => user with { IsDisabled = false })]);
        await cluster.KnownEverywhereAsync();

        // Until the client has connected again it tells what the nodes said last.
        await Wait.UntilAsync(() => IsLetInAsync(bob));
    }

    private static async Task<bool> IsLetInAsync(KahunaClient client)
    {
        try
        {
            await client.KeyValues.SetAsync("leaver/a", "v").AsTask().WaitAsync(Wait.Longest);
            return true;
        }
        catch (KahunaException failure) when (failure.Code == KahunaErrorCode.Unauthenticated)
        {
            return false;
        }
    }

    private KahunaClient Connect(string user) => PatientClient.Connect(
        cluster.Embedded.Endpoints,
        options =>
        {
            options.Credentials = KahunaCredentials.Password(user, user + user);
            options.RequestTimeout = TimeSpan.FromMinutes(1);
        });

    private static async Task<int> CountAsync(KahunaClient client, string prefix)
    {
        int count = 0;
        await foreach (KeyValueEntry _ in client.KeyValues.ScanAsync(prefix))
        {
            count++;
        }

        return count;
    }

    private static async Task<WatchEvent> FirstAsync(KahunaClient client, string key)
    {
        await foreach (WatchEvent change in client.KeyValues.WatchAsync(key, new() { Scope = WatchScope.Key }))
        {
            return change;
        }

        throw new InvalidOperationException("The watch ended without an error.");
    }

    private static Task RefusedAsync<T>(ValueTask<T> call, string permission) =>
        RefusedAsync(call.AsTask(), permission);

    private static Task RefusedAsync(ValueTask call, string permission) => RefusedAsync(call.AsTask(), permission);

    private static async Task RefusedAsync(Task call, string permission)
    {
        KahunaException refused = await Assert.ThrowsAsync<KahunaException>(() => call.WaitAsync(Wait.Longest));
        Assert.Equal(KahunaErrorCode.PermissionDenied, refused.Code);
        Assert.Equal(OperationOutcome.DidNotHappen, refused.Outcome);
        Assert.Contains("permission", refused.Message, StringComparison.Ordinal);
        Assert.Contains(permission, refused.Message, StringComparison.Ordinal);
    }
}
