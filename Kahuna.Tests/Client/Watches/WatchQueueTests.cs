using Kahuna.Client.Watches;

namespace Kahuna.Tests.Client.Watches;

/// <summary>The queue between the stream of a client and the consumer of one watch.</summary>
public sealed class WatchQueueTests
{
    [Fact]
    public async Task A_consumer_is_woken_only_for_what_waits()
    {
        const int Events = 300_000;
        Reader reader = new();
        WatchQueue queue = new(reader, new WatchOptions());
        reader.Queue = queue;
        Task producing = Task.Run(() =>
        {
            for (int i = 0; i < Events; i++)
            {
                queue.Tell(new WatchEvent(WatchEventKind.Progress, null));
                Thread.SpinWait(i % 64);
            }
        });
        for (int taken = 0; taken < Events;)
        {
            if (queue.TryTake(out _, out _))
            {
                taken++;
            }
            else if (queue.TryAwait())
            {
                Assert.True(await reader.Ready.WaitAsync(Wait.Longest));
            }
        }

        await producing;
        Assert.Equal(0, reader.InVain);
    }

    /// <summary>A consumer's side: counts how often it is woken though nothing waits.</summary>
    private sealed class Reader : IWatchReader
    {
        public WatchQueue? Queue { get; set; }

        public SemaphoreSlim Ready { get; } = new(0);

        public int InVain { get; private set; }

        public void OnReady()
        {
            // Only the consumer takes, and it waits.
            InVain += Queue!.Count == 0 ? 1 : 0;
            Ready.Release();
        }
    }
}
