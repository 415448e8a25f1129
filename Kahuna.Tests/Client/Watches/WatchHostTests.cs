using Kahuna.Client;
using Kahuna.Client.Watches;
using static Kahuna.Tests.Client.Watches.WatchedCluster;

namespace Kahuna.Tests.Client.Watches;

/// <summary>A consumer whose context or scheduler is held up, or gone, holds up no other watch.</summary>
public sealed class WatchHostTests
{
    private static readonly WatchOptions s_told = new() { ProgressInterval = TimeSpan.FromDays(1) };

    private readonly WatchedCluster _cluster = new();

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task A_context_that_is_gone_or_holds_posters_up_delays_no_other(bool isGone)
    {
        LoneThread thread = new();
        using ManualResetEventSlim go = new();
        await using KahunaClient client = await _cluster.Fake.ConnectedAsync();
        TaskCompletionSource begun = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await thread.RunAsync(() => FollowAsync(client, begun));
        await begun.Task.WaitAsync(Wait.Longest);
        (IAsyncEnumerator<WatchEvent> other, Task<bool> first) = await BeginAsync(client, "a", s_told);
        await first.WaitAsync(Wait.Longest);
        if (isGone)
        {
            thread.Dispose();
        }
        else
        {
            thread.HoldsPosters = go;
        }

        FakeWatchStream stream = await _cluster.StreamAsync();
        for (ulong i = 11; i < 20; i++)
        {
            stream.Changes(new SentChange(i, $"a{i}", 1));
            Assert.Equal($"a{i}", (await NextAsync(other)).Key);
        }

        Assert.False(stream.IsEnded);
        go.Set();
        thread.Dispose();
    }

    [Fact]
    public async Task A_context_may_wait_for_its_own_watch()
    {
        using LoneThread thread = new();
        await using KahunaClient client = await _cluster.Fake.ConnectedAsync();
        Assert.True(await thread.RunAsync(() =>
        {
            IAsyncEnumerator<WatchEvent> watch = client.KeyValues.WatchAsync("a", s_told).GetAsyncEnumerator();
            return watch.MoveNextAsync().AsTask().Wait(Wait.Longest)
                && watch.DisposeAsync().AsTask().Wait(Wait.Longest);
        }));
    }

    /// <summary>Returns to its caller as soon as it waits, and goes on in the caller's context.</summary>
    private static bool FollowAsync(KahunaClient client, TaskCompletionSource begun)
    {
        _ = RunAsync();
        return true;

        async Task RunAsync()
        {
            await foreach (WatchEvent _ in client.KeyValues.WatchAsync("a", s_told))
            {
                begun.TrySetResult();
            }
        }
    }
}
