using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Watches;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Watches;
using static Kahuna.Tests.Client.Watches.WatchedCluster;
using static Kahuna.Tests.Client.Watches.WatchFrames;

namespace Kahuna.Tests.Client.Watches;

/// <summary>Watches of a client: where they begin, what they return, how they survive the loss of their node.</summary>
public sealed class WatchTests
{
    /// <summary>The first event says that the watch has begun; no further progress is told.</summary>
    private static readonly WatchOptions s_told = new() { ProgressInterval = TimeSpan.FromDays(1) };

    private readonly WatchedCluster _cluster = new(nodes: 3, partitions: 2);

    private FakeCluster Fake => _cluster.Fake;

    [Fact]
    public async Task A_watch_from_now_begins_where_the_leaders_are_and_returns_what_follows()
    {
        await using KahunaClient client = await Fake.ConnectedAsync();
        (IAsyncEnumerator<WatchEvent> watch, Task<bool> first) = await BeginAsync(client, "a");
        FakeWatchStream stream = await _cluster.StreamAsync();
        AskedWatch asked = stream.Watches.Values.Single();
        Assert.Equal((Durability.Persistent, WatchScope.Prefix, WatchFlags.WithValues, "a"),
            (asked.Durability, asked.Scope, asked.Flags, asked.Name));
        Assert.Equal(_cluster.Applied, asked.Points);
        stream.Changes(new SentChange(11, "a1", asked.Id) { Value = "x", Revision = 3 });
        Assert.True(await first.WaitAsync(Wait.Longest));
        Assert.Equal(
            ("a1", "x", 3L), (watch.Current.Key, watch.Current.Value.AsString(), watch.Current.Revision.Value));
        stream.Changes(new SentChange(12, "a2", asked.Id), new SentChange(13, "a3", asked.Id));
        Assert.Equal("a2", (await NextAsync(watch)).Key);
        Assert.Equal("a3", (await NextAsync(watch)).Key);
        await watch.DisposeAsync();
        await Wait.UntilAsync(() => stream.Watches.IsEmpty);
    }

    [Fact]
    public async Task A_watch_goes_on_at_another_node_when_its_stream_breaks_or_its_node_stops()
    {
        await using KahunaClient client = await Fake.ConnectedAsync();
        (IAsyncEnumerator<WatchEvent> watch, Task<bool> first) = await BeginAsync(client, "a");
        FakeWatchStream stream = await _cluster.StreamAsync();
        for (ulong round = 0; round < 4; round++)
        {
            stream.Changes(new SentChange(11 + round, $"a{round}", stream.IdOf("a")));
            Assert.True(round > 0 ? await Wait.ForAsync(watch.MoveNextAsync()) : await first.WaitAsync(Wait.Longest));
            Assert.Equal($"a{round}", watch.Current.Key);
            if (round % 2 == 0)
            {
                stream.Break();
            }
            else
            {
                stream.GoAway();
            }

            FakeWatchStream next = await _cluster.StreamAsync(except: stream);
            Assert.NotSame(stream.Node, next.Node);
            Assert.Equal(At(11 + round, 0), next.Watches.Values.Single().Points[0]);
            stream = next;
        }
    }

    [Fact]
    public async Task A_silent_node_is_left()
    {
        ManualTime time = new();
        await using KahunaClient client = await Fake.ConnectedAsync(time, TimeSpan.FromMinutes(5));
        (_, _) = await BeginAsync(client, "a");
        FakeWatchStream stream = await _cluster.StreamAsync();
        for (int i = 0; i < 10; i++)
        {
            time.Advance(TimeSpan.FromSeconds(1));
            stream.Progress(At(10));
            await Task.Delay(10);
        }

        Assert.False(stream.IsEnded);
        await Wait.UntilAsync(time, () => stream.IsEnded, stepMs: 100);
        Assert.NotSame(stream.Node, (await _cluster.StreamAsync(except: stream)).Node);
    }

    [Fact]
    public async Task A_node_that_is_behind_is_left_for_another_one()
    {
        ManualTime time = new();
        await using KahunaClient client = await Fake.ConnectedAsync(time, TimeSpan.FromMinutes(5));
        (_, _) = await BeginAsync(client, "a");
        FakeWatchStream stream = await _cluster.StreamAsync();
        await Wait.UntilAsync(
            time,
            () =>
            {
                stream.Progress(At(10), behindMs: 8_000);
                return stream.IsEnded;
            },
            stepMs: 500);
        Assert.NotSame(stream.Node, (await _cluster.StreamAsync(except: stream)).Node);
    }

    [Fact]
    public async Task A_loss_is_told_when_no_node_has_the_changes()
    {
        await using KahunaClient client = await Fake.ConnectedAsync();
        foreach (FakeNode node in Fake.Nodes)
        {
            node.OnWatch = static (stream, asked) =>
            {
                stream.Notice(WatchNoticeCode.Begun, asked.Id);
                stream.Notice(WatchNoticeCode.Compacted, asked.Id, At(50));
            };
        }

        (IAsyncEnumerator<WatchEvent> watch, Task<bool> first) = await BeginAsync(client, "a");
        Assert.True(await first.WaitAsync(Wait.Longest));
        Assert.Equal(WatchEventKind.Compacted, watch.Current.Kind);
        Assert.All(Fake.Nodes, static node => Assert.Equal(1, node.WatchAttempts));
    }

    [Fact]
    public async Task A_loss_is_not_told_when_another_node_has_the_changes()
    {
        await using KahunaClient client = await Fake.ConnectedAsync();
        foreach (FakeNode node in Fake.Nodes.Skip(1))
        {
            node.OnWatch = static (stream, asked) =>
            {
                stream.Notice(WatchNoticeCode.Begun, asked.Id);
                stream.Notice(WatchNoticeCode.Compacted, asked.Id, At(50));
            };
        }

        Fake[1].OnWatch = static (stream, asked) =>
        {
            stream.Notice(WatchNoticeCode.Begun, asked.Id);
            stream.Changes(new SentChange(11, "a1", asked.Id));
        };
        (IAsyncEnumerator<WatchEvent> watch, Task<bool> first) = await BeginAsync(client, "a");
        Assert.True(await first.WaitAsync(Wait.Longest));
        Assert.Equal("a1", watch.Current.Key);
    }

    [Fact]
    public async Task A_position_goes_on_where_it_was_also_as_text_and_in_another_client()
    {
        await using KahunaClient client = await Fake.ConnectedAsync();
        (IAsyncEnumerator<WatchEvent> watch, Task<bool> first) = await BeginAsync(client, "a");
        (await _cluster.StreamAsync()).Changes(new SentChange(12, "a1", 1));
        await first.WaitAsync(Wait.Longest);
        string text = watch.Current.Position!.ToString();
        await watch.DisposeAsync();
        _cluster.Applied[0] = At(40);
        _cluster.Applied[1] = At(45, group: 2);
        await using KahunaClient other = await Fake.ConnectedAsync();
        FakeWatchStream old = _cluster.Stream;
        (_, _) = await BeginAsync(other, "b", new WatchOptions { From = WatchPosition.Parse(text) });
        FakeWatchStream stream = await _cluster.StreamAsync(except: old);
        Assert.Equal([At(12, 0), At(10, group: 2)], stream.Watches.Values.Single().Points);
    }

    [Fact]
    public async Task The_position_of_a_read_begins_a_watch_and_other_partitions_begin_now()
    {
        await using KahunaClient client = await Fake.ConnectedAsync();
        _cluster.OnRead = static (request, _) => FakeReply.Found("v", 4) with
        {
            Point = (request.Flags & CommandFlags.Positioned) != 0 ? At(9, group: 2) : null,
        };
        Assert.Null((await client.KeyValues.GetAsync("a")).Position);
        GetResult read = await client.KeyValues.GetAsync("a", new ReadOptions { WithPosition = true });
        Assert.NotNull((await client.KeyValues.ExistsAsync("a", new ReadOptions { WithPosition = true })).Position);
        (_, _) = await BeginAsync(client, "a", new WatchOptions { From = read.Position, Scope = WatchScope.Key });
        Assert.Equal([At(10), At(9, group: 2)], (await _cluster.StreamAsync()).Watches.Values.Single().Points);
    }

    [Fact]
    public async Task Positions_that_the_cluster_cannot_have_given_are_refused()
    {
        await using KahunaClient client = await Fake.ConnectedAsync();
        WatchPosition now = await client.KeyValues.GetPositionAsync();
        await RefusedAsync(client, now.With(At(11)), "ahead of the cluster");
        await RefusedAsync(client, now.With(At(1, group: 3)), "ahead of the cluster");
        await RefusedAsync(
            client, new WatchPosition(now.Cluster + 1, now.Durability, [At(1)]), "of another cluster");
        await RefusedAsync(
            client,
            new WatchPosition(now.Cluster, Durability.Ephemeral, [At(1, group: Ephemeral)]),
            "of ephemeral keys");
        Assert.Empty(Fake.Nodes.SelectMany(static node => node.WatchStreams));
        string text = now.ToString();
        Assert.Equal(now, WatchPosition.Parse(text));
        Assert.Equal(now, WatchPosition.FromBytes(now.ToBytes()));
        for (int i = 0; i < text.Length; i++)
        {
            string changed = text[..i] + (text[i] == 'A' ? 'B' : 'A') + text[(i + 1)..];
            Assert.Equal(
                KahunaErrorCode.InvalidArgument,
                Assert.Throws<KahunaException>(() => WatchPosition.Parse(changed)).Code);
            Assert.False(WatchPosition.TryParse(text[..i], out _));
        }
    }

    [Theory]
    [InlineData("", WatchScope.Key)]
    [InlineData("__kahuna/x", WatchScope.Prefix)]
    [InlineData("half of a pair", WatchScope.Prefix)]
    [InlineData(null, WatchScope.Bucket)]
    public async Task Names_that_cannot_be_are_refused(string? name, WatchScope scope)
    {
        await using KahunaClient client = await Fake.ConnectedAsync();
        KahunaException failure = Assert.Throws<KahunaException>(
            () => client.KeyValues.WatchAsync(
                name?.Replace("half of a pair", "\ud800", StringComparison.Ordinal) ?? new string('x', 1_025),
                new WatchOptions { Scope = scope }));
        Assert.Equal((KahunaErrorCode.InvalidArgument, OperationOutcome.DidNotHappen), (failure.Code, failure.Outcome));
    }

    [Fact]
    public async Task Many_watches_share_one_stream_and_the_questions_for_now()
    {
        await using KahunaClient client = await Fake.ConnectedAsync();
        List<IAsyncEnumerator<WatchEvent>> watches = [];
        List<Task<bool>> firsts = [];
        for (int i = 0; i < 300; i++)
        {
            (IAsyncEnumerator<WatchEvent> watch, Task<bool> first) = await BeginAsync(client, $"a{i % 100}", s_told);
            watches.Add(watch);
            firsts.Add(first);
        }

        await Task.WhenAll(firsts).WaitAsync(Wait.Longest);
        FakeWatchStream stream = await _cluster.StreamAsync(watches: 100);
        firsts = [.. watches.Select(static watch => watch.MoveNextAsync().AsTask())];
        Assert.InRange(_cluster.Nows, 2, 299);
        stream.Changes(new SentChange(11, "a7", stream.IdOf("a7")));
        await Task.WhenAll(firsts[7], firsts[107], firsts[207]).WaitAsync(Wait.Longest);
        Assert.Equal(3, firsts.Count(static first => first.IsCompleted));
        Assert.Equal(1, Fake.Nodes.Sum(static node => node.WatchAttempts));
    }

    [Fact]
    public async Task A_slow_consumer_delays_no_other_and_goes_on_where_it_was()
    {
        await using KahunaClient client = await Fake.ConnectedAsync();
        (IAsyncEnumerator<WatchEvent> slow, Task<bool> first) = await BeginAsync(
            client, "a", s_told with { BufferedEvents = 2 });
        (IAsyncEnumerator<WatchEvent> quick, Task<bool> second) = await BeginAsync(client, "a", s_told);
        await Task.WhenAll(first, second).WaitAsync(Wait.Longest);
        FakeWatchStream stream = await _cluster.StreamAsync();
        stream.Changes(new SentChange(11, "a0", 1));
        Assert.Equal("a0", (await NextAsync(quick)).Key);
        Assert.Equal("a0", (await NextAsync(slow)).Key);
        stream.Changes([.. Enumerable.Range(1, 50).Select(static i => new SentChange(11 + (ulong)i, $"a{i}", 1))]);
        for (int i = 1; i <= 50; i++)
        {
            Assert.Equal($"a{i}", (await NextAsync(quick)).Key);
        }

        Assert.Equal("a1", (await NextAsync(slow)).Key);
        Assert.Equal("a2", (await NextAsync(slow)).Key);
        Assert.Equal(WatchEventKind.Lagging, (await NextAsync(slow)).Kind);
        Task<WatchEvent> next = NextAsync(slow);
        await Wait.UntilAsync(() => stream.Watches.Count == 2);
        AskedWatch again = stream.Watches.Values.Single(static watch => watch.Id != 1);
        Assert.Equal(At(13, 0), again.Points[0]);
        stream.Changes(new SentChange(14, "a3", again.Id));
        Assert.Equal("a3", (await next).Key);
    }

    [Fact]
    public async Task A_cancelled_watch_ends_and_so_does_one_whose_client_is_disposed()
    {
        KahunaClient client = await Fake.ConnectedAsync();
        using CancellationTokenSource cancel = new();
        (IAsyncEnumerator<WatchEvent> watch, Task<bool> first) = await BeginAsync(client, "a", ct: cancel.Token);
        (_, Task<bool> other) = await BeginAsync(client, "b");
        FakeWatchStream stream = await _cluster.StreamAsync(watches: 2);
        await cancel.CancelAsync();
        await Assert.ThrowsAsync<KahunaCanceledException>(() => first.WaitAsync(Wait.Longest));
        await watch.DisposeAsync();
        await Wait.UntilAsync(() => stream.Watches.Count == 1);
        await client.DisposeAsync().AsTask().WaitAsync(Wait.Longest);
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => other.WaitAsync(Wait.Longest));
        Assert.Equal(KahunaErrorCode.ClientDisposed, failure.Code);
        Assert.True(stream.IsEnded);
        await Assert.ThrowsAsync<ObjectDisposedException>(async () => await NextAsync(
            client.KeyValues.WatchAsync("a").GetAsyncEnumerator()));
    }

    [Fact]
    public async Task A_watch_that_no_node_begins_fails_at_the_request_timeout()
    {
        ManualTime time = new();
        await using KahunaClient client = await Fake.ConnectedAsync(time, TimeSpan.FromSeconds(3));
        foreach (FakeNode node in Fake.Nodes)
        {
            node.OnWatch = null;
        }

        (_, Task<bool> first) = await BeginAsync(client, "a");
        await Wait.UntilAsync(time, () => first.IsCompleted, stepMs: 100);
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => first);
        Assert.Equal(KahunaErrorCode.Unavailable, failure.Code);
        Assert.Contains("No node began the watch within 3 s", failure.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Values_before_changes_are_read_where_history_has_them()
    {
        await using KahunaClient client = await Fake.ConnectedAsync();
        _cluster.OnRead = static (request, _) => request.Key == "a2"
            ? new FakeReply(OutcomeStatus.RevisionCompacted, 9)
            : FakeReply.Found($"old {request.Key}");
        (IAsyncEnumerator<WatchEvent> watch, Task<bool> first) = await BeginAsync(
            client, "a", new WatchOptions { PreviousValues = true });
        FakeWatchStream stream = await _cluster.StreamAsync();
        stream.Changes(
            new SentChange(11, "a1", 1) { Revision = 5, Flags = WatchedChangeFlags.PreviousKept },
            new SentChange(12, "a2", 1) { Revision = 9, Flags = WatchedChangeFlags.PreviousKept },
            new SentChange(13, "a3", 1) { Revision = 4 });
        await first.WaitAsync(Wait.Longest);
        Assert.Equal("old a1", watch.Current.Previous!.Value.AsString());
        Assert.Null((await NextAsync(watch)).Previous);
        Assert.Null((await NextAsync(watch)).Previous);
        Assert.Equal(["a1", "a2"], Fake[1].Received.Where(static one => one.Kind == CommandKind.Get)
            .Select(static one => one.Key).Order());
    }

    [Fact]
    public async Task A_watch_with_progress_says_at_once_that_it_has_begun()
    {
        await using KahunaClient client = await Fake.ConnectedAsync();
        (IAsyncEnumerator<WatchEvent> watch, Task<bool> first) = await BeginAsync(
            client, "a", new WatchOptions { ProgressInterval = TimeSpan.Zero, KeysOnly = true });
        await first.WaitAsync(Wait.Longest);
        Assert.Equal(WatchEventKind.Progress, watch.Current.Kind);
        Assert.Equal(await client.KeyValues.GetPositionAsync(), watch.Current.Position);
        FakeWatchStream stream = await _cluster.StreamAsync();
        Assert.Equal(WatchFlags.None, stream.Watches.Values.Single().Flags);
        stream.Progress(At(12), behindMs: 20);
        stream.Progress(At(13, group: 2), behindMs: 30);
        WatchEvent told = await NextAsync(watch);
        Assert.Equal((WatchEventKind.Progress, At(12)), (told.Kind, told.Position!.Points[0]));
        Assert.InRange(told.Behind!.Value.TotalMilliseconds, 20, 60_000);
    }

    private static async Task RefusedAsync(KahunaClient client, WatchPosition from, string because)
    {
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(async () =>
        {
            await foreach (WatchEvent _ in client.KeyValues.WatchAsync("a", new WatchOptions { From = from }))
            {
            }
        });
        Assert.Equal((KahunaErrorCode.InvalidArgument, OperationOutcome.DidNotHappen), (failure.Code, failure.Outcome));
        Assert.Contains(because, failure.Message, StringComparison.Ordinal);
    }
}
