using System.Collections.Concurrent;
using Google.Protobuf;
using Grpc.Core;
using Kahuna.Client;
using Kahuna.Server.Api.Protos;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Api.Watches;

/// <summary>The watch of clients that do not use the SDK, against three real nodes with three partitions.</summary>
[Collection(nameof(ThreePartitionsCollection))]
public sealed class WatchKeyValuesTests(ThreePartitions nodes)
{
    private const string Path = "/kahuna.v1.KeyValues/WatchKeyValues";
    private const Server.Api.Protos.Durability Persistent = Server.Api.Protos.Durability.Persistent;

    private readonly string _name = $"watched/{Guid.NewGuid():n}/";

    [Theory]
    [InlineData(Durability.Persistent, 0)]
    [InlineData(Durability.Ephemeral, 1)]
    public async Task Changes_come_from_now_on_and_go_on_from_any_position(Durability durability, int node)
    {
        await using KahunaClient client = Connect(durability);
        await client.KeyValues.SetAsync(_name + "before", "not told");
        WatchKeyValuesRequest request = new()
        {
            Prefix = _name,
            Durability = (Server.Api.Protos.Durability)durability,
            PreviousValues = true,
        };
        await using IAsyncEnumerator<WatchKeyValuesResponse> watch = Watch(node, request);
        WatchKeyValuesResponse begun = await NextAsync(watch);
        Assert.Equal((0, false), (begun.Events.Count, begun.Position.IsEmpty));
        List<string> expected = [];
        for (int i = 0; i < 20; i++)
        {
            await client.KeyValues.SetAsync($"{_name}{i % 4}/k", $"{i}");
            expected.Add($"Set {i % 4} {i}, was {(i < 4 ? "none" : i - 4)}");
        }

        await client.KeyValues.DeleteAsync($"{_name}0/k");
        expected.Add("Deleted 0 none, was 16");
        List<(string Event, ByteString Position)> told = await ReadAsync(watch, expected.Count);
        foreach (string part in (string[])["0", "1", "2", "3"])
        {
            Assert.Equal(expected.Where(Of), told.Select(static each => each.Event).Where(Of));
            bool Of(string text) => text.Split(' ')[1] == part;
        }

        for (int i = 0; i < told.Count; i += 5)
        {
            await using IAsyncEnumerator<WatchKeyValuesResponse> again = Watch(
                (node + i) % 3,
                new WatchKeyValuesRequest(request) { FromPosition = i == 0 ? begun.Position : told[i].Position });
            Assert.True((await NextAsync(again)).Events.Count == 0);
            int first = told.FindLastIndex(each => i > 0 && each.Position == told[i].Position) + 1;
            List<string> resumed = [.. (await ReadAsync(again, told.Count - first)).Select(static each => each.Event)];
            Assert.Equal(told.Skip(first).Select(static each => each.Event).Order(), resumed.Order());
        }
    }

    [Fact]
    public async Task The_state_and_then_every_change_have_no_gap()
    {
        await using KahunaClient client = Connect(Durability.Persistent);
        for (int i = 0; i < 300; i++)
        {
            await client.KeyValues.SetAsync($"{_name}{i % 30}/{i}", new string('x', 500));
        }

        using CancellationTokenSource stop = new();
        ConcurrentDictionary<string, long> written = new();
        Task writer = Task.Run(async () =>
        {
            Random random = new(1);
            for (int i = 0; !stop.IsCancellationRequested; i++)
            {
                string key = $"{_name}{random.Next(30)}/{random.Next(320)}";
                written[key] = (await client.KeyValues.SetAsync(key, $"{i}")).Revision.Value;
            }
        });
        await using IAsyncEnumerator<WatchKeyValuesResponse> watch = Watch(
            2,
            new WatchKeyValuesRequest { Prefix = _name, Durability = Persistent, WithState = true, KeysOnly = true });
        Dictionary<string, long> seen = [];
        bool isComplete = false;
        int events = 0;
        ByteString position = ByteString.Empty;
        while (events < 500 || position.IsEmpty)
        {
            WatchKeyValuesResponse next = await NextAsync(watch);
            Assert.False(next.Compacted);
            foreach (KeyValueEntry entry in next.State)
            {
                Assert.False(isComplete);
                Assert.True(seen.TryAdd(entry.Key, entry.Revision), "a key of the state came twice");
            }

            isComplete |= next.StateComplete;
            position = next.Position;
            Apply(next, seen);
            events += next.Events.Count;
        }

        Assert.True(isComplete);
        await stop.CancelAsync();
        await writer;
        while (written.Any(each => seen.GetValueOrDefault(each.Key) != each.Value))
        {
            Apply(await NextAsync(watch), seen);
        }
    }

    [Fact]
    public async Task A_transaction_comes_in_one_message_and_progress_when_it_is_asked_for()
    {
        await using IAsyncEnumerator<WatchKeyValuesResponse> watch = Watch(
            1, new WatchKeyValuesRequest { Bucket = _name[..^1], Durability = Persistent, ProgressIntervalMs = 1_000 });
        Assert.False((await NextAsync(watch)).Position.IsEmpty);
        SetManyKeyValuesRequest many = new() { Atomic = true };
        for (int i = 0; i < 800; i++)
        {
            many.Items.Add(new SetKeyValueRequest
            {
                Key = $"{_name}{i}",
                Value = new Value { Data = ByteString.CopyFrom(new byte[2_000]) },
                Durability = Persistent,
            });
        }

        await nodes.Leader.UnaryAsync("/kahuna.v1.KeyValues/SetManyKeyValues", many, SetManyKeyValuesResponse.Parser);
        WatchKeyValuesResponse next;
        do
        {
            next = await NextAsync(watch);
            Assert.True(next.Events.Count is 0 or 800);
        }
        while (next.Events.Count == 0);
        Assert.Equal(
            many.Items.Select(static item => item.Key), next.Events.Select(static each => each.Key));
        do
        {
            next = await NextAsync(watch);
        }
        while (!next.Progress);
        Assert.InRange(next.BehindMs, 0u, 10_000u);
    }

    [Fact]
    public async Task What_cannot_be_is_refused_and_nothing_happened()
    {
        await using IAsyncEnumerator<WatchKeyValuesResponse> watch = Watch(
            0, new WatchKeyValuesRequest { Key = _name, Durability = Persistent });
        ByteString position = (await NextAsync(watch)).Position;
        Assert.True(PositionFormat.TryRead(
            position.Span, out ulong cluster, out Durability durability, out ChangePoint[] points));
        points[1] = points[1] with { Index = points[1].Index + 1_000 };
        byte[] changed = [.. position];
        changed[20] ^= 1;
        await RefusedAsync("none of key, bucket and prefix", new WatchKeyValuesRequest { Durability = Persistent });
        await RefusedAsync("durability", new WatchKeyValuesRequest { Key = "a" });
        await RefusedAsync("key is empty", new WatchKeyValuesRequest { Key = "", Durability = Persistent });
        await RefusedAsync("reserved", new WatchKeyValuesRequest { Prefix = "__kahuna/a", Durability = Persistent });
        await RefusedAsync(
            "progress_interval_ms is 10",
            new WatchKeyValuesRequest { Prefix = "", Durability = Persistent, ProgressIntervalMs = 10 });
        await RefusedAsync("is malformed", From(changed));
        await RefusedAsync("is malformed", From([1, 2, 3]));
        await RefusedAsync("is of another cluster", From(PositionFormat.Write(cluster + 1, durability, points)));
        await RefusedAsync("lies in the future", From(PositionFormat.Write(cluster, durability, points)));
        WatchKeyValuesRequest other = From([.. position]);
        other.Durability = Server.Api.Protos.Durability.Ephemeral;
        await RefusedAsync("of the other durability", other);
        WatchKeyValuesRequest both = From([.. position]);
        both.WithState = true;
        await RefusedAsync("contradict each other", both);
    }

    private static WatchKeyValuesRequest From(byte[] position) =>
        new() { Key = "a", Durability = Persistent, FromPosition = ByteString.CopyFrom(position) };

    private static void Apply(WatchKeyValuesResponse next, Dictionary<string, long> seen)
    {
        foreach (KeyValueEvent each in next.Events)
        {
            long revision = seen.GetValueOrDefault(each.Key);
            Assert.True(each.Revision == revision + 1, $"{each.Key}: revision {each.Revision} after {revision}");
            seen[each.Key] = each.Revision;
        }
    }

    private async Task<List<(string Event, ByteString Position)>> ReadAsync(
        IAsyncEnumerator<WatchKeyValuesResponse> watch, int count)
    {
        List<(string Event, ByteString Position)> told = [];
        while (told.Count < count)
        {
            WatchKeyValuesResponse next = await NextAsync(watch);
            Assert.False(next.Compacted);
            told.AddRange(next.Events.Select(each => (
                $"{each.Kind} {each.Key[_name.Length..].Split('/')[0]} {TextOf(each.Value)}, "
                    + $"was {TextOf(each.Previous)}",
                next.Position)));
        }

        return told;
    }

    private static string TextOf(Value? value) => value?.Data.ToStringUtf8() ?? "none";

    private static async Task<WatchKeyValuesResponse> NextAsync(IAsyncEnumerator<WatchKeyValuesResponse> watch)
    {
        Assert.True(await watch.MoveNextAsync().AsTask().WaitAsync(LastNet.Span));
        return watch.Current;
    }

    private async Task RefusedAsync(string reason, WatchKeyValuesRequest request)
    {
        RpcException refused = await Assert.ThrowsAsync<RpcException>(async () =>
        {
            await using IAsyncEnumerator<WatchKeyValuesResponse> watch = Watch(1, request);
            await NextAsync(watch);
        });
        Assert.Equal(StatusCode.InvalidArgument, refused.StatusCode);
        Assert.Contains(reason, refused.Status.Detail, StringComparison.Ordinal);
        Assert.Contains(refused.Trailers, static each => each is { Key: "kahuna-outcome", Value: "did-not-happen" });
    }

    private IAsyncEnumerator<WatchKeyValuesResponse> Watch(int node, WatchKeyValuesRequest request) =>
        nodes.Channel(node).ServerStreamingAsync(Path, request, WatchKeyValuesResponse.Parser).GetAsyncEnumerator();

    private KahunaClient Connect(Durability durability) => PatientClient.Connect(
        nodes.Cluster.Endpoints,
        options =>
        {
            options.Insecure = true;
            options.Durability = durability;
        });
}
