using Kahuna.Client;
using Kahuna.Client.Locks;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Sequences;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Client;

/// <summary>
/// An application's synchronization context or task scheduler holds up nobody but the code that awaits there: not when
/// it is busy, blocked by the call itself, or gone.
/// </summary>
public sealed class HostileContextTests
{
    private static readonly TimeSpan s_lease = TimeSpan.FromMinutes(1);

    private readonly FakeCluster _cluster = new();

    [Fact]
    public async Task A_context_that_is_held_up_holds_up_no_other_caller()
    {
        using LoneThread thread = new();
        await using KahunaClient client = await ConnectedAsync();
        await SendFrom(thread, client);
        ManualResetEventSlim end = await thread.HoldUpAsync();
        await UseAsync(client);
        end.Set();
    }

    [Fact]
    public async Task A_scheduler_that_is_held_up_holds_up_no_other_caller()
    {
        using LoneScheduler scheduler = new();
        using ManualResetEventSlim end = new();
        await using KahunaClient client = await ConnectedAsync();
        Task sent = await scheduler.RunAsync(() => SetAsync(client));
        Task<bool> busy = scheduler.RunAsync(() => end.Wait(Wait.Longest * 4));
        await UseAsync(client);
        end.Set();
        await busy;
        await sent.WaitAsync(Wait.Longest);
    }

    [Fact]
    public async Task A_context_may_wait_for_its_own_calls()
    {
        using LoneThread thread = new();
        await using KahunaClient client = await ConnectedAsync();
        int done = await thread.RunAsync(() =>
        {
            int count = 0;
            for (; count < 10; count++)
            {
                Assert.True(client.KeyValues.SetAsync("k", "v").AsTask().Wait(Wait.Longest));
            }

            LockHandle handle = Waited(client.Locks.AcquireAsync("l", s_lease, s_lease));
            Assert.True(Waited(handle.ExtendAsync()));
            Assert.True(Waited(handle.ReleaseAsync()));
            Assert.Equal(1, Waited(client.Sequences.NextAsync("s", new SequenceOptions { Mode = SequenceMode.Fast })));
            return count;
        });
        Assert.Equal(10, done);
    }

    [Fact]
    public async Task A_context_that_first_uses_the_client_and_is_gone_takes_nothing_with_it()
    {
        LoneThread thread = new();
        await using KahunaClient client = Client();
        await SendFrom(thread, client);
        thread.Dispose();
        await UseAsync(client);
        _cluster[1].Break();
        await UseAsync(client);
        Assert.Equal(2, _cluster[1].Connects);
    }

    [Fact]
    public async Task Replies_that_a_gone_context_does_not_take_keep_no_others()
    {
        LoneThread thread = new();
        await using KahunaClient client = await ConnectedAsync();
        _cluster[1].Answer = static _ => null;
        await thread.RunAsync(() => AwaitForeverAsync(client));
        FakeRequest dead = _cluster[1].Next();
        Task<SetResult> other = SetAsync(client);
        FakeRequest alive = _cluster[1].Next();
        thread.Dispose();
        alive.Connection.Reply(
            [(dead, new FakeReply(OutcomeStatus.Applied, 1)), (alive, new FakeReply(OutcomeStatus.Applied, 2))]);
        Assert.Equal(2, (await other.WaitAsync(Wait.Longest)).Revision.Value);
        Assert.Equal(1, _cluster[1].Connects);
    }

    [Fact]
    public async Task A_context_that_holds_up_who_posts_to_it_keeps_no_other_reply()
    {
        using LoneThread thread = new();
        using ManualResetEventSlim go = new();
        await using KahunaClient client = await ConnectedAsync();
        _cluster[1].Answer = static _ => null;
        await thread.RunAsync(() => AwaitForeverAsync(client));
        FakeRequest slow = _cluster[1].Next();
        Task<SetResult> other = SetAsync(client);
        FakeRequest alive = _cluster[1].Next();
        thread.HoldsPosters = go;
        alive.Connection.Reply(
            [(slow, new FakeReply(OutcomeStatus.Applied, 1)), (alive, new FakeReply(OutcomeStatus.Applied, 2))]);
        Assert.Equal(2, (await other.WaitAsync(Wait.Longest)).Revision.Value);
        go.Set();
    }

    [Fact]
    public async Task A_scheduler_that_first_uses_the_client_and_is_gone_takes_nothing_with_it()
    {
        LoneScheduler scheduler = new();
        await using KahunaClient client = Client();
        Task sent = await scheduler.RunAsync(() => SetAsync(client));
        await sent.WaitAsync(Wait.Longest);
        scheduler.Dispose();
        await UseAsync(client);
        _cluster[1].Break();
        await UseAsync(client);
        Assert.Equal(2, _cluster[1].Connects);
    }

    [Fact]
    public async Task Replies_that_a_gone_scheduler_does_not_take_keep_no_others()
    {
        LoneScheduler scheduler = new();
        await using KahunaClient client = await ConnectedAsync();
        _cluster[1].Answer = static _ => null;
        await scheduler.RunAsync(() => AwaitForeverAsync(client));
        FakeRequest dead = _cluster[1].Next();
        Task<SetResult> other = SetAsync(client);
        FakeRequest alive = _cluster[1].Next();
        scheduler.Dispose();
        alive.Connection.Reply(
            [(dead, new FakeReply(OutcomeStatus.Applied, 1)), (alive, new FakeReply(OutcomeStatus.Applied, 2))]);
        Assert.Equal(2, (await other.WaitAsync(Wait.Longest)).Revision.Value);
        Assert.Equal(1, _cluster[1].Connects);
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task A_lock_of_a_context_that_is_gone_is_renewed(bool isContext)
    {
        LoneThread thread = new();
        LoneScheduler scheduler = new();
        ManualTime time = new();
        await using KahunaClient client = Client(options => options.TimeProvider = time);
        Task<LockHandle> acquiring = isContext ? await thread.RunAsync(Acquire) : await scheduler.RunAsync(Acquire);
        LockHandle handle = await acquiring.WaitAsync(Wait.Longest);
        thread.Dispose();
        scheduler.Dispose();
        for (int i = 1; i <= 3; i++)
        {
            await Wait.UntilAsync(
                time,
                () => _cluster[1].Received.Count(static request => request.Kind == CommandKind.LockExtend) >= i,
                stepMs: 100);
        }

        Assert.True(handle.Remaining > TimeSpan.Zero);
        Assert.False(handle.LostToken.IsCancellationRequested);

        Task<LockHandle> Acquire() => client.Locks.AcquireAsync("l", s_lease, s_lease).AsTask();
    }

    [Fact]
    public async Task A_client_is_disposed_on_a_context_that_waits_for_it()
    {
        using LoneThread thread = new();
        KahunaClient client = await ConnectedAsync();
        Assert.True(await thread.RunAsync(() =>
        {
            Waited(client.Locks.AcquireAsync("l", s_lease, s_lease));
            return client.DisposeAsync().AsTask().Wait(Wait.Longest);
        }));
    }

    [Fact]
    public async Task Disposal_does_not_wait_for_code_of_the_application_that_holds_a_reader_up()
    {
        ManualTime time = new();
        using ManualResetEventSlim go = new();
        KahunaClient client = await _cluster.ConnectedAsync(options =>
        {
            options.TimeProvider = time;
            options.AllowSynchronousContinuations = true;
        });
        TaskCompletionSource held = new(TaskCreationOptions.RunContinuationsAsynchronously);
        Task blocking = BlockAsync();
        FakeRequest request = _cluster[1].Next();
        Task replying = Task.Run(() => request.Connection.Reply(request, new FakeReply(OutcomeStatus.Applied, 1)));
        await held.Task.WaitAsync(Wait.Longest);
        Task disposing = client.DisposeAsync().AsTask();
        await Wait.UntilAsync(time, () => disposing.IsCompleted, stepMs: 100);
        go.Set();
        await Task.WhenAll(blocking, replying).WaitAsync(Wait.Longest);

        async Task BlockAsync()
        {
            await client.KeyValues.SetAsync("k", "v").ConfigureAwait(false);
            held.SetResult();
            go.Wait(Wait.Longest * 4);
        }
    }

    private static T Waited<T>(ValueTask<T> call)
    {
        Task<T> task = call.AsTask();
        Assert.True(task.Wait(Wait.Longest));
        return task.Result;
    }

    private static Task<SetResult> SetAsync(KahunaClient client) => client.KeyValues.SetAsync("k", "v").AsTask();

    /// <summary>Returns to its caller as soon as it waits, and goes on in the caller's context.</summary>
    private static bool AwaitForeverAsync(KahunaClient client)
    {
        _ = WaitAsync();
        return true;

        async Task WaitAsync() => await client.KeyValues.SetAsync("k", "v");
    }

    /// <summary>A call that begins on the thread, whose context its writes could keep.</summary>
    private static async Task SendFrom(LoneThread thread, KahunaClient client)
    {
        Task sent = await thread.RunAsync(() => SetAsync(client));
        await sent.WaitAsync(Wait.Longest);
    }

    /// <summary>Everything that writes, waits or fetches in the background.</summary>
    private static async Task UseAsync(KahunaClient client)
    {
        await Task.WhenAll(Enumerable.Range(0, 20).Select(_ => SetAsync(client))).WaitAsync(Wait.Longest);
        await Wait.ForAsync(client.Sequences.NextAsync("s", new SequenceOptions { Mode = SequenceMode.Fast }));
        LockHandle handle = await Wait.ForAsync(client.Locks.AcquireAsync("l", s_lease, s_lease));
        Assert.True(await Wait.ForAsync(handle.ExtendAsync()));
        await handle.DisposeAsync().AsTask().WaitAsync(Wait.Longest);
    }

    private KahunaClient Client(Action<KahunaClientOptions>? configure = null)
    {
        _cluster[1].TakesLate = true;
        _cluster[1].Answer = static request => new FakeReply(OutcomeStatus.Applied, 1, 1);
        return _cluster.Client(configure);
    }

    private async Task<KahunaClient> ConnectedAsync()
    {
        KahunaClient client = Client();
        await Wait.ForAsync(client.DescribeAsync());
        return client;
    }
}
