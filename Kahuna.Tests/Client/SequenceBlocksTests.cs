using Kahuna.Client;
using Kahuna.Client.Sequences;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Client;

/// <summary>What the fast mode of sequences asks a node for, and how much it keeps.</summary>
public sealed class SequenceBlocksTests
{
    private static readonly SequenceOptions s_fast = new() { Mode = SequenceMode.Fast, BlockSize = 10 };

    [Fact]
    public async Task Near_the_end_what_is_left_is_taken_also_when_it_gets_less_meanwhile()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync();
        Queue<FakeReply> replies = new(
            [Left(7), Left(3), Left(1), new FakeReply(OutcomeStatus.Applied, 42, 42), Left(0)]);
        cluster[1].Answer = _ => replies.Dequeue();
        Assert.Equal(42, await Wait.ForAsync(client.Sequences.NextAsync("s", s_fast)));
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(
            () => Wait.ForAsync(client.Sequences.NextAsync("s", s_fast)));
        Assert.Equal(
            (KahunaErrorCode.SequenceExhausted, OperationOutcome.DidNotHappen), (failure.Code, failure.Outcome));
        Assert.Equal([10, 7, 3, 1, 10], cluster[1].Received.Select(CountOf));
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task A_range_from_a_sequence_that_begins_again_is_what_is_left_before_its_bound(bool cycles)
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync();
        byte[] told = new byte[SequenceSnapshot.Bytes];
        new SequenceBody { Initial = 1, Increment = 1, Min = 1, Max = 60, Cycles = cycles }.Write(told);
        cluster[1].Answer = request => request.Kind == CommandKind.SequenceGet
            ? new FakeReply(OutcomeStatus.Found, 0, 0, told)
            : CountOf(request) > 10 ? Left(10) : new FakeReply(OutcomeStatus.Applied, 60, 51);
        Task<SequenceRange> taking = client.Sequences.ReserveAsync("s", 50).AsTask();
        if (cycles)
        {
            Assert.Equal(new SequenceRange { First = 51, Last = 60, Count = 10 }, await taking.WaitAsync(Wait.Longest));
            return;
        }

        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => taking.WaitAsync(Wait.Longest));
        Assert.Equal(KahunaErrorCode.SequenceExhausted, failure.Code);
        Assert.Contains("only 10 values", failure.Message, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task A_call_that_makes_several_requests_ends_at_one_request_timeout(bool isFast)
    {
        ManualTime time = new();
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync(time, TimeSpan.FromSeconds(3));
        cluster[1].Answer = _ =>
        {
            if (cluster[1].Received.Count > 1)
            {
                return null;
            }

            time.Advance(TimeSpan.FromSeconds(2));
            return Left(5);
        };
        Task taking = isFast
            ? client.Sequences.NextAsync("s", s_fast).AsTask()
            : client.Sequences.ReserveAsync("s", 50).AsTask();
        await Wait.UntilAsync(() => cluster[1].Received.Count == 2);
        time.Advance(TimeSpan.FromSeconds(1.1));
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => taking.WaitAsync(Wait.Longest));
        Assert.Equal(KahunaErrorCode.DeadlineExceeded, failure.Code);
    }

    [Fact]
    public async Task A_caller_does_not_wait_longer_when_others_take_what_is_fetched()
    {
        ManualTime time = new();
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync(time, TimeSpan.FromSeconds(3));
        SequenceOptions two = new() { Mode = SequenceMode.Fast, BlockSize = 2 };
        Task<long>[] callers = [.. Enumerable.Range(0, 3).Select(_ => client.Sequences.NextAsync("s", two).AsTask())];
        await Wait.UntilAsync(() => cluster[1].Received.Count == 1);
        time.Advance(TimeSpan.FromSeconds(2.9));
        FakeRequest asked = cluster[1].Received.Single();
        asked.Connection.Reply(asked, new FakeReply(OutcomeStatus.Applied, 2, 1));

        // Two of them take the values of the block, and the third waits for the next one.
        await Wait.UntilAsync(() => cluster[1].Received.Count == 2);
        time.Advance(TimeSpan.FromSeconds(0.2));
        await Wait.UntilAsync(() => callers.All(static caller => caller.IsCompleted));
        KahunaException failure = Assert.IsType<KahunaException>(
            Assert.Single(callers, static caller => caller.IsFaulted).Exception!.InnerException);
        Assert.Equal(
            (KahunaErrorCode.DeadlineExceeded, OperationOutcome.DidNotHappen), (failure.Code, failure.Outcome));
    }

    [Fact]
    public async Task A_cancelled_call_ends_as_cancelled_also_when_its_block_comes_before_it_goes_on()
    {
        HoldingContext context = new();
        FakeCluster cluster = new() { Context = context };
        using CancellationTokenSource caller = new();
        await using KahunaClient client = await cluster.ConnectedAsync();
        Task<long> waiting = context.Run(() => client.Sequences.NextAsync("s", s_fast, caller.Token).AsTask());
        await Wait.UntilAsync(() => cluster[1].Received.Count == 1);
        context.Hold(caller.Cancel);
        FakeRequest asked = cluster[1].Received.Single();
        asked.Connection.Reply(asked, new FakeReply(OutcomeStatus.Applied, 10, 1));

        // Another caller has a value of the block: the fetch is over.
        Assert.Equal(1, await Wait.ForAsync(client.Sequences.NextAsync("s", s_fast)));
        Assert.False(waiting.IsCompleted);
        context.Release();
        KahunaCanceledException failure =
            await Assert.ThrowsAsync<KahunaCanceledException>(() => waiting.WaitAsync(Wait.Longest));
        Assert.Equal(OperationOutcome.DidNotHappen, failure.Outcome);
    }

    [Fact]
    public async Task An_answer_that_makes_no_sense_does_not_hold_it_up()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync();
        cluster[1].Answer = request => CountOf(request) > 1 ? Left(1000) : new FakeReply(OutcomeStatus.Applied, 5, 5);
        Assert.Equal(5, await Wait.ForAsync(client.Sequences.NextAsync("s", s_fast)));
        Assert.Equal(10, cluster[1].Received.Count);
    }

    [Fact]
    public async Task What_was_taken_is_handed_out_when_there_is_no_more_and_nobody_asks_in_vain()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync();
        cluster[1].Answer = request => request.Connection.Node.Received.Count == 1
            ? new FakeReply(OutcomeStatus.Applied, 10, 1)
            : Left(0);
        for (int i = 1; i <= 10; i++)
        {
            Assert.Equal(i, await Wait.ForAsync(client.Sequences.NextAsync("s", s_fast)));
            if (i == 6)
            {
                // Half of it is used: the next block was asked for.
                await Wait.UntilAsync(() => cluster[1].Received.Count == 2);
            }
        }

        Assert.InRange(cluster[1].Received.Count, 2, 3);
        await Assert.ThrowsAsync<KahunaException>(() => Wait.ForAsync(client.Sequences.NextAsync("s", s_fast)));
    }

    [Fact]
    public async Task Blocks_are_kept_for_so_many_names_and_others_take_one_value_at_a_time()
    {
        ManualTime time = new();
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync(time, TimeSpan.FromSeconds(10));
        cluster[1].Answer = static request => new FakeReply(OutcomeStatus.Applied, CountOf(request), 1);
        for (int i = 0; i < SequenceBlocks.CountMax; i++)
        {
            Assert.Equal(1, await Wait.ForAsync(client.Sequences.NextAsync($"s{i}", s_fast)));
        }

        for (int i = 0; i < 3; i++)
        {
            await Wait.ForAsync(client.Sequences.NextAsync("one more", s_fast));
            Assert.Equal(1, CountOf(cluster[1].Received.Last()));
        }

        // Its block is still there.
        int asked = cluster[1].Received.Count;
        Assert.Equal(2, await Wait.ForAsync(client.Sequences.NextAsync("s7", s_fast)));
        Assert.Equal(asked, cluster[1].Received.Count);

        // No value is kept for longer than a minute, and no block without a value.
        time.Advance(TimeSpan.FromMinutes(1));
        await Wait.ForAsync(client.Sequences.NextAsync("one more", s_fast));
        Assert.Equal(10, CountOf(cluster[1].Received.Last()));
    }

    [Fact]
    public async Task Names_without_end_take_no_more_room()
    {
        FakeCluster cluster = new();
        await using KahunaClient client = await cluster.ConnectedAsync();
        SequenceBlocks blocks = new(client.Sequences, TimeProvider.System);
        for (int i = 0; i < 3 * SequenceBlocks.CountMax; i++)
        {
            Assert.True(blocks.TryGet($"s{i}", 10, out _));
            Assert.InRange(blocks.Count, 1, SequenceBlocks.CountMax);
        }
    }

    private static FakeReply Left(long count) => new(OutcomeStatus.Exhausted, 0, count);

    private static long CountOf(FakeRequest request)
    {
        Assert.True(Command.TryRead(request.Bytes, out Command command));
        return command.Number;
    }

    /// <summary>Runs on the pool what is posted, but keeps what is posted by an act that is to be held.</summary>
    private sealed class HoldingContext : SynchronizationContext
    {
        private readonly List<Action> _held = [];
        private int _holdsThread;

        public override void Post(SendOrPostCallback d, object? state)
        {
            if (Environment.CurrentManagedThreadId == Volatile.Read(ref _holdsThread))
            {
                _held.Add(() => Run(() => d(state)));
                return;
            }

            ThreadPool.QueueUserWorkItem(_ => Run(() => d(state)));
        }

        public void Hold(Action act)
        {
            Volatile.Write(ref _holdsThread, Environment.CurrentManagedThreadId);
            act();
            Volatile.Write(ref _holdsThread, 0);
        }

        public void Release() => _held.ForEach(static act => act());

        public T Run<T>(Func<T> work)
        {
            SynchronizationContext? before = Current;
            SetSynchronizationContext(this);
            try
            {
                return work();
            }
            finally
            {
                SetSynchronizationContext(before);
            }
        }

        private void Run(Action work) => Run(() =>
        {
            work();
            return true;
        });
    }
}
