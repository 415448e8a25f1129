using Kahuna.Client;
using Kahuna.Client.Elections;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Client;

/// <summary>Following an election, request by request.</summary>
public sealed class ObserveTests
{
    [Fact]
    public async Task A_lock_that_is_held_for_nobody_is_no_leader_and_is_not_asked_about_in_a_circle()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync();
        FakeNode node = cluster[1];
        await using IAsyncEnumerator<LeaderDescription?> seen = client.Elections.ObserveAsync("e").GetAsyncEnumerator();
        Task<bool> first = seen.MoveNextAsync().AsTask();
        Reply(node, CommandKind.LockGet, 0, 7, owner: "");
        Assert.True(await first.WaitAsync(Wait.Longest));
        Assert.Null(seen.Current);

        // Still nobody: nothing is told, and the next question says what is known.
        Task<bool> second = seen.MoveNextAsync().AsTask();
        Reply(node, CommandKind.LockObserve, 7, 8, owner: "");
        Reply(node, CommandKind.LockObserve, 8, 9, owner: "ann", note: "here");
        Assert.True(await second.WaitAsync(Wait.Longest));
        Assert.Equal(new LeaderDescription("here", new FencingToken(9)), seen.Current);

        ValueTask<LeaderDescription?> asked = client.Elections.GetLeaderAsync("e");
        Reply(node, CommandKind.LockGet, 0, 7, owner: "");
        Assert.Null(await Wait.ForAsync(asked));
    }

    [Fact]
    public async Task An_observation_goes_on_after_an_outage_and_only_its_first_question_has_to_be_answered()
    {
        ManualTime time = new();
        FakeCluster cluster = new();
        KahunaClient client = await cluster.ConnectedAsync(time, TimeSpan.FromSeconds(2));
        FakeNode node = cluster[1];
        IAsyncEnumerator<LeaderDescription?> seen = client.Elections.ObserveAsync("e").GetAsyncEnumerator();
        Task<bool> next = seen.MoveNextAsync().AsTask();
        Reply(node, CommandKind.LockGet, 0, 7, owner: "ann", note: "one");
        Assert.True(await next.WaitAsync(Wait.Longest));
        next = seen.MoveNextAsync().AsTask();
        node.Next();
        node.IsDown = true;
        node.Break();
        for (int i = 0; i < 300; i++)
        {
            time.Advance(TimeSpan.FromMilliseconds(100));
            await Task.Delay(1);
        }

        Assert.False(next.IsCompleted);
        node.Answer = static _ => null;
        node.IsDown = false;
        await Wait.UntilAsync(time, () => node.Held.Count > 0);
        Reply(node, CommandKind.LockObserve, 7, 9, owner: "bob", note: "two");
        Assert.True(await next.WaitAsync(Wait.Longest));
        Assert.Equal(new LeaderDescription("two", new FencingToken(9)), seen.Current);
        Task disposing = Task.WhenAll(seen.DisposeAsync().AsTask(), client.DisposeAsync().AsTask());
        await Wait.UntilAsync(time, () => disposing.IsCompleted, stepMs: 100);
    }

    [Fact]
    public async Task Observers_that_went_away_leave_room_for_everything_else()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync(static options => options.MaxInFlight = 8);
        FakeNode node = cluster[1];
        List<FakeRequest> asked = [];
        for (int i = 0; i < 6; i++)
        {
            using CancellationTokenSource end = new();
            await using IAsyncEnumerator<LeaderDescription?> seen = client.Elections.ObserveAsync("e", end.Token)
                .GetAsyncEnumerator(CancellationToken.None);
            Task<bool> first = seen.MoveNextAsync().AsTask();
            FakeRequest get = node.Next();
            get.Connection.Reply(get, new FakeReply(OutcomeStatus.NotFound));
            Assert.True(await first.WaitAsync(Wait.Longest));
            Task<bool> next = seen.MoveNextAsync().AsTask();
            if (i < 4)
            {
                asked.Add(node.Next());
            }

            await end.CancelAsync();
            await Assert.ThrowsAsync<KahunaCanceledException>(() => next.WaitAsync(Wait.Longest));
        }

        // Half of what the stream takes is for questions that wait; the others have to.
        Assert.Empty(node.Held);
        Task<SetResult> set = client.KeyValues.SetAsync("k", "v").AsTask();
        FakeRequest write = node.Next();
        Assert.Equal(CommandKind.Set, write.Kind);
        write.Connection.Reply(write, FakeReply.Applied());
        await set.WaitAsync(Wait.Longest);
        foreach (FakeRequest request in asked)
        {
            Assert.Equal(CommandKind.LockObserve, request.Kind);
            request.Connection.Reply(request, new FakeReply(OutcomeStatus.NotFound));
        }
    }

    private static void Reply(FakeNode node, CommandKind kind, long known, long token, string owner, string note = "")
    {
        FakeRequest request = node.Next();
        Assert.Equal((kind, known), (request.Kind, request.Token));
        ByteBuffer snapshot = ByteBuffer.Rent();
        LockSnapshot.WriteHeader(snapshot, permits: 0, waiters: 0, holders: 1, listed: 1);
        LockSnapshot.WriteHolder(
            snapshot,
            LockMode.Exclusive,
            token,
            5_000,
            System.Text.Encoding.UTF8.GetBytes(owner),
            System.Text.Encoding.UTF8.GetBytes(note));
        request.Connection.Reply(request, new FakeReply(OutcomeStatus.Found, token, 5_000, snapshot.Written.ToArray()));
        snapshot.Return();
    }
}
