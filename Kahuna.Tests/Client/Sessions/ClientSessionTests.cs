using Kahuna.Client;
using Kahuna.Client.Connection.Sessions;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Client.Sessions;

/// <summary>
/// How the client numbers its mutations, and what it does when an attempt leaves open what became of it.
/// </summary>
public sealed class ClientSessionTests
{
    [Fact]
    public void Numbers_end_in_any_order_and_the_lowest_open_one_holds_the_mark()
    {
        ClientSession session = new(1, 2);
        ulong[] numbers = [.. Enumerable.Range(0, 200).Select(_ => Take(session))];
        Assert.Equal(Enumerable.Range(1, 200).Select(i => (ulong)i), numbers);
        Assert.Equal(199, session.LagOf(200));
        foreach (ulong number in numbers[1..150])
        {
            session.End(number);
        }

        Assert.Equal(200, session.LagOf(Take(session)));
        session.End(1);
        Assert.Equal(202ul, Take(session));
        Assert.Equal(202 - 151, session.LagOf(202));
    }

    [Fact]
    public void A_window_is_full_at_its_width_and_has_room_again_as_numbers_end()
    {
        ClientSession session = new(1, 2);
        for (int round = 0; round < 3; round++)
        {
            ulong first = Take(session);
            for (int i = 1; i < 4096; i++)
            {
                Take(session);
            }

            Assert.False(session.TryTake(out _));
            for (ulong number = first + 1; number < first + 4096; number++)
            {
                session.End(number);
            }

            Assert.False(session.TryTake(out _));
            session.End(first);
        }

        Assert.Equal((3 * 4096) + 1ul, Take(session));
    }

    [Fact]
    public void Many_threads_agree_on_what_has_ended()
    {
        ClientSession session = new(1, 2);
        Lock gate = new();
        Parallel.For(0, 4, worker =>
        {
            for (int i = 0; i < 50_000;)
            {
                ulong number;
                bool taken;
                lock (gate)
                {
                    taken = session.TryTake(out number);
                }

                if (taken)
                {
                    Assert.InRange(session.LagOf(number), 0, 4095);
                    session.End(number);
                    i++;
                }
            }
        });
        ulong last = Take(session);
        Assert.Equal(0, session.LagOf(last));
        Assert.Equal(200_001ul, last);
    }

    [Fact]
    public async Task Every_mutation_has_a_number_of_its_own_and_confirms_what_was_answered_and_reads_have_none()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync();
        cluster[1].Answer = static request => request.Kind == CommandKind.Get
            ? FakeReply.Found("v")
            : FakeReply.Applied();
        await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        await Wait.ForAsync(client.KeyValues.GetAsync("k"));
        await Wait.ForAsync(client.KeyValues.IncrementAsync("n"));
        await Wait.ForAsync(client.KeyValues.DeleteAsync("k"));
        FakeRequest[] sent = [.. cluster[1].Received];
        Assert.Equal([1ul, 0, 2, 3], sent.Select(request => request.CallNumber.Sequence));
        Assert.Equal([(ushort)0, 0, 0, 0], sent.Select(request => request.CallNumber.Lag));
        Assert.Equal([true, false, false, false], sent.Select(request => request.IsOpening));
        Assert.Single(
            sent
                .Where(request => request.CallNumber.Sequence > 0)
                .Select(request => request.CallNumber.Session)
                .Distinct());
    }

    [Fact]
    public async Task What_is_open_holds_the_confirmation_back()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync();
        cluster[1].Answer = static request => request.Key == "slow" ? null : FakeReply.Applied();
        Task<SetResult> slow = Wait.ForAsync(client.KeyValues.SetAsync("slow", "v"));
        cluster[1].Next();
        for (int i = 0; i < 5; i++)
        {
            await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        }

        Assert.Equal([0, 1, 2, 3, 4, 5], cluster[1].Received.Select(request => (int)request.CallNumber.Lag));
        cluster[1].Connection.Reply(cluster[1].Received.First(), FakeReply.Applied());
        await slow;
        await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        Assert.Equal(0, cluster[1].Received.Last().CallNumber.Lag);
    }

    [Fact]
    public async Task An_attempt_with_an_unknown_end_is_repeated_under_its_number()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync();
        cluster[1].Answer = request => request.Connection.Node.Received.Count < 3
            ? new FakeReply(OutcomeStatus.Unknown)
            : new FakeReply(OutcomeStatus.Applied, 4);
        Assert.Equal(4, (await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"))).Revision.Value);
        Assert.Equal(3, cluster[1].Received.Count);
        Assert.Single(cluster[1].Received.Select(request => request.CallNumber).Distinct());
    }

    [Fact]
    public async Task After_an_unknown_end_no_refusal_makes_it_certain()
    {
        OutcomeStatus[] refusals =
        [
            OutcomeStatus.LogFull,
            OutcomeStatus.MemoryFull,
            OutcomeStatus.SessionsFull,
            OutcomeStatus.SessionUnknown,
        ];
        foreach (OutcomeStatus refusal in refusals)
        {
            FakeCluster cluster = new();
            await using KahunaClient client = await cluster.ConnectedAsync();
            cluster[1].Answer = request => new FakeReply(
                request.Connection.Node.Received.Count == 1 ? OutcomeStatus.Unknown : refusal);
            KahunaException failure = await Assert.ThrowsAsync<KahunaException>(
                () => Wait.ForAsync(client.KeyValues.SetAsync("k", "v")));
            Assert.Equal(OperationOutcome.Unknown, failure.Outcome);
        }
    }

    [Fact]
    public async Task A_forgotten_session_is_replaced_when_nothing_can_have_happened()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync();
        cluster[1].Answer = static _ => FakeReply.Applied();
        await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        ulong first = cluster[1].Received.Last().CallNumber.Session;
        cluster[1].Answer = request => request.CallNumber.Session == first
            ? new FakeReply(OutcomeStatus.SessionUnknown)
            : FakeReply.Applied();
        Assert.True((await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"))).Applied);
        Assert.True((await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"))).Applied);
        FakeRequest[] sent = [.. cluster[1].Received];
        Assert.Equal(4, sent.Length);
        Assert.False(sent[1].IsOpening);
        Assert.True(sent[2].IsOpening);
        Assert.Equal(sent[2].CallNumber.Session, sent[3].CallNumber.Session);
        Assert.NotEqual(first, sent[2].CallNumber.Session);
    }

    [Fact]
    public async Task A_stream_that_ends_leaves_its_session_to_the_next()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync();
        cluster[1].Answer = static request => request.Key == "slow" ? null : FakeReply.Applied();
        Task<SetResult> slow = Wait.ForAsync(client.KeyValues.SetAsync("slow", "v"));
        FakeRequest first = cluster[1].Next();
        cluster[1].Break();
        FakeRequest again = cluster[1].Next();
        Assert.NotSame(first.Connection, again.Connection);
        await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        FakeRequest later = cluster[1].Received.Last();
        Assert.Equal((first.CallNumber.Session, 1ul, (ushort)0), again.CallNumber);
        Assert.Equal((first.CallNumber.Session, 2ul, (ushort)1), later.CallNumber);
        again.Connection.Reply(again, FakeReply.Applied());
        await slow;
    }

    [Fact]
    public async Task Each_stream_has_a_session_and_what_goes_on_over_another_one_keeps_its_own()
    {
        FakeCluster cluster = new(nodes: 2);
        await using KahunaClient client = await cluster.ConnectedAsync();
        cluster[1].Answer = static request => request.Key == "k" ? FakeReply.Applied() : FakeReply.NotLeader(2);
        cluster[2].Answer = static _ => null;
        await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        Task<SetResult> moved = Wait.ForAsync(client.KeyValues.SetAsync("moved", "v"));
        FakeRequest movedThere = cluster[2].Next();
        Assert.Equal(cluster[1].Received.Last().CallNumber, movedThere.CallNumber);
        cluster.Leaders = [(2, 2)];
        cluster[2].SendMap();
        await Wait.UntilAsync(async () => (await client.DescribeAsync()).Partitions[0].LeaderNodeId == 2);
        Task<SetResult> own = Wait.ForAsync(client.KeyValues.SetAsync("own", "v"));
        FakeRequest ownThere = cluster[2].Next();
        Assert.NotEqual(movedThere.CallNumber.Session, ownThere.CallNumber.Session);
        Assert.Equal((1ul, (ushort)0), (ownThere.CallNumber.Sequence, ownThere.CallNumber.Lag));

        // Its answer came over the other stream, and confirms in the session that numbered it.
        movedThere.Connection.Reply(movedThere, FakeReply.Applied());
        await moved;

        // What is still under way at the other node goes on here, if that takes long.
        cluster[1].Answer = static request => request.Key is "k" or "own"
            ? FakeReply.Applied()
            : FakeReply.NotLeader(2);
        cluster.Leaders = [(1, 3)];
        cluster[1].SendMap();
        await Wait.UntilAsync(async () => (await client.DescribeAsync()).Partitions[0].LeaderNodeId == 1);
        await Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        Assert.Equal(
            (movedThere.CallNumber.Session, 3ul, (ushort)0),
            cluster[1].Received.Last(static request => request.Key == "k").CallNumber);
        ownThere.Connection.Reply(ownThere, FakeReply.Applied());
        await own;
    }

    [Fact]
    public void A_session_is_given_to_one_at_a_time_and_a_full_or_forgotten_one_to_nobody()
    {
        ulong ids = 0;
        SessionPool pool = new(() => ++ids, () => 2);
        ClientSession first = pool.Exchange(null, out ulong number);
        Assert.Equal((1ul, 1ul), (first.Id, number));
        ClientSession second = pool.Exchange(null, out _);
        Assert.Equal(2ul, second.Id);
        while (second.TryTake(out _))
        {
        }

        ClientSession third = pool.Exchange(second, out _);
        Assert.Equal(3ul, third.Id);
        pool.Return(first);
        Assert.Same(first, pool.Exchange(null, out number));
        Assert.Equal(2ul, number);
        for (ulong ended = 1; ended <= 4096; ended++)
        {
            second.End(ended);
        }

        Assert.Same(second, pool.Exchange(third, out number));
        Assert.Equal(4097ul, number);
        third.Forget();
        first.Forget();
        pool.Return(first);
        Assert.Equal(4ul, pool.Exchange(null, out _).Id);
    }

    [Fact]
    public async Task Cancelled_and_expired_calls_free_their_numbers_and_say_what_may_have_happened()
    {
        ManualTime time = new();
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync(time, TimeSpan.FromSeconds(2));
        cluster[1].Answer = static request => request.Key == "k"
            ? new FakeReply(OutcomeStatus.Unknown)
            : FakeReply.Applied();
        using CancellationTokenSource cancel = new();
        Task<SetResult> canceled = Wait.ForAsync(client.KeyValues.SetAsync("k", "v", null, cancel.Token));
        Task<SetResult> expired = Wait.ForAsync(client.KeyValues.SetAsync("k", "v"));
        await Wait.UntilAsync(() => cluster[1].Received.Count >= 2);
        cancel.Cancel();
        Assert.Equal(
            OperationOutcome.Unknown, (await Assert.ThrowsAsync<KahunaCanceledException>(() => canceled)).Outcome);
        await Wait.UntilAsync(time, () => expired.IsCompleted);
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => expired);
        Assert.Equal((KahunaErrorCode.DeadlineExceeded, OperationOutcome.Unknown), (failure.Code, failure.Outcome));
        await Wait.ForAsync(client.KeyValues.SetAsync("other", "v"));
        Assert.Equal(0, cluster[1].Received.Last().CallNumber.Lag);
    }

    private static ulong Take(ClientSession session)
    {
        Assert.True(session.TryTake(out ulong number));
        return number;
    }
}
