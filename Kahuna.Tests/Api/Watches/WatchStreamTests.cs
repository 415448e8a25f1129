using Grpc.Core;
using Kahuna.Client;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Api.Watches;

/// <summary>Framed watch streams of three real nodes with three partitions.</summary>
[Collection(nameof(ThreePartitionsCollection))]
public sealed class WatchStreamTests(ThreePartitions nodes)
{
    private readonly string _name = $"watches/{Guid.NewGuid():n}/";

    [Theory]
    [InlineData(Durability.Persistent, 0)]
    [InlineData(Durability.Persistent, 1)]
    [InlineData(Durability.Ephemeral, 0)]
    [InlineData(Durability.Ephemeral, 2)]
    public async Task Every_node_tells_of_every_change_of_a_prefix(Durability durability, int node)
    {
        await using KahunaClient client = Connect(durability);
        using RawWatch watch = await RawWatch.OpenAsync(nodes.Channel(node));
        await watch.BeginAsync(1, WatchScope.Prefix, _name, durability);
        Assert.Equal("Begun 1", (await watch.NextEventAsync()).Short);
        string[] keys = [.. Enumerable.Range(0, 50).Select(i => $"{_name}{i % 40}/{i:00}")];
        foreach (string key in keys)
        {
            await client.KeyValues.SetAsync(key, $"value of {key}");
        }

        await client.KeyValues.DeleteAsync(keys[3]);
        List<WatchSaid> said = [];
        while (said.Count < keys.Length + 1)
        {
            said.Add(await watch.NextEventAsync());
        }

        Assert.All(said, static each => Assert.Equal(FrameKind.Changes, each.Frame));
        Assert.All(said, static each => Assert.Equal([1u], each.Watches));
        Assert.Equal(
            keys.Select(static key => (key, $"value of {key}")),
            said.Where(static each => each.Kind == WatchedChangeKind.Set)
                .Select(static each => (each.Key, each.Value)).OrderBy(each => Array.IndexOf(keys, each.Key)));
        Assert.Equal($"Deleted {keys[3]}= to 1", said.Single(each => each.Kind == WatchedChangeKind.Deleted).Short);
        Assert.All(
            said.GroupBy(static each => each.Point.Group),
            static group => Assert.Equal(group.OrderBy(static each => each.Point), group));
        Assert.InRange(said.Select(static each => each.Point.Group).Distinct().Count(), 2, 3);

        // And then how far it is, at once. A node that has just started, or stood still, does not say how old that is.
        ChangePoint last = said[^1].Point;
        WatchSaid next;
        do
        {
            next = await watch.NextAsync();
            Assert.Equal(FrameKind.Progress, next.Frame);
        }
        while (next.Point.Group != last.Group || next.Point < last || next.BehindMs == uint.MaxValue);
        Assert.InRange(next.BehindMs, 0u, 10_000u);
    }

    [Fact]
    public async Task A_reader_that_sleeps_is_told_what_it_has_missed_and_goes_on()
    {
        await using KahunaClient client = Connect(Durability.Persistent);
        using RawWatch watch = await RawWatch.OpenAsync(nodes.Channel(0));
        await watch.BeginAsync(1, WatchScope.Prefix, _name);
        Assert.Equal("Begun 1", (await watch.NextEventAsync()).Short);
        const int Writes = 500;
        string value = new('x', 100_000);
        for (int i = 0; i < Writes; i++)
        {
            await client.KeyValues.SetAsync($"{_name}{i}", value);
        }

        int next = 0;
        bool isMissing = false;
        List<WatchNoticeCode> notices = [];
        while (next < Writes)
        {
            WatchSaid said = await watch.NextEventAsync();
            if (said.Frame == FrameKind.Notices)
            {
                notices.Add(said.Notice);
                isMissing |= said.Notice == WatchNoticeCode.Compacted;
                continue;
            }

            int i = int.Parse(said.Key[_name.Length..], System.Globalization.CultureInfo.InvariantCulture);
            Assert.True(i == next || (isMissing && i > next), $"{i} follows on {next - 1}");
            (next, isMissing) = (i + 1, false);
        }

        Assert.Contains(WatchNoticeCode.Compacted, notices);
    }

    [Fact]
    public async Task A_watch_that_cannot_be_is_refused_and_the_stream_goes_on()
    {
        using RawWatch watch = await RawWatch.OpenAsync(nodes.Channel(1));
        ChangePoint first = ChangePoint.After(1, 0, 1);
        await RefusedAsync(watch, "key is empty", WatchScope.Key, "");
        await RefusedAsync(watch, "limit is 1,024", WatchScope.Prefix, new string('a', 1_025));
        await RefusedAsync(watch, "reserved for the system", WatchScope.Bucket, "__kahuna");
        await RefusedAsync(watch, "each once", WatchScope.Prefix, "a", first, first);
        await RefusedAsync(watch, "of group 9", WatchScope.Prefix, "a", first with { Group = 9 });
        await RefusedAsync(watch, "of group 0", WatchScope.Prefix, "a", first with { Group = 0 });
        await RefusedAsync(watch, "epoch 2", WatchScope.Prefix, "a", first with { Epoch = 2 });
        await RefusedAsync(watch, "watch's durability", WatchScope.Prefix, "a", first with { Group = (1u << 30) | 1 });
        await RefusedAsync(
            watch,
            "4 points",
            WatchScope.Prefix,
            "a",
            [.. Enumerable.Range(1, 4).Select(static group => ChangePoint.After((uint)group, 0, 1))]);
        await watch.BeginAsync(7, WatchScope.Prefix, "");
        Assert.Equal("Begun 7", (await watch.NextEventAsync()).Short);
        await watch.EndAsync(7);
        await watch.EndAsync(8);
        await watch.BeginAsync(7, WatchScope.Bucket, "");
        Assert.Equal("Begun 7", (await watch.NextEventAsync()).Short);
        await watch.BeginAsync(7, WatchScope.Key, "a");
        await EndedAsync(watch, StatusCode.InvalidArgument, "Watch 7 has begun already");
    }

    [Theory]
    [InlineData(0, "malformed")]
    [InlineData(1, "malformed")]
    [InlineData(2, "longer than its watch requests")]
    [InlineData(3, "malformed")]
    public async Task A_frame_that_cannot_be_read_ends_the_stream(int fault, string expected)
    {
        using RawWatch watch = await RawWatch.OpenAsync(nodes.Channel(0));
        ByteBuffer frame = ByteBuffer.Rent();
        Frame.Begin(frame, fault == 0 ? FrameKind.Requests : FrameKind.WatchRequests);
        new WatchRequest { Operation = WatchOperation.End, Id = fault == 1 ? 0u : 5 }.Write(frame);
        Frame.End(frame, fault == 2 ? 0 : fault == 3 ? int.MaxValue : 1);
        await watch.SendAsync(frame);
        await EndedAsync(watch, StatusCode.InvalidArgument, expected);
    }

    private static async Task RefusedAsync(
        RawWatch watch, string reason, WatchScope scope, string name, params ChangePoint[] points)
    {
        await watch.BeginAsync(3, scope, name, points: points);
        WatchSaid said = await watch.NextEventAsync();
        Assert.Equal("Refused 3", said.Short);
        Assert.Contains(reason, said.Text, StringComparison.Ordinal);
    }

    private static async Task EndedAsync(RawWatch watch, StatusCode status, string reason)
    {
        RpcException ended = await Assert.ThrowsAsync<RpcException>(async () =>
        {
            while (true)
            {
                await watch.NextAsync();
            }
        });
        Assert.Equal(status, ended.StatusCode);
        Assert.Contains(reason, ended.Status.Detail, StringComparison.Ordinal);
    }

    private KahunaClient Connect(Durability durability) => PatientClient.Connect(
        nodes.Cluster.Endpoints,
        options =>
        {
            options.Insecure = true;
            options.Durability = durability;
        });
}
