using System.Collections.Concurrent;

namespace Kahuna.Tests.Client;

/// <summary>
/// A thread with a queue, as a window or a game loop has one: its synchronization context runs what is posted there,
/// one after the other. It can be held up, and it can end, after which posts throw. Owned by one test.
/// </summary>
internal sealed class LoneThread : SynchronizationContext, IDisposable
{
    private static readonly TimeSpan s_longest = Kahuna.Tests.Client.Wait.Longest;

    private readonly BlockingCollection<Action> _queue = [];
    private readonly Thread _thread;
    private volatile bool _isGone;

    public LoneThread()
    {
        _thread = new Thread(Run) { IsBackground = true, Name = "lone thread" };
        _thread.Start();
    }

    /// <summary>
    /// Set: who posts waits in its own thread until the event is set, as for code of an application that runs inside of
    /// a hand-over.
    /// </summary>
    public ManualResetEventSlim? HoldsPosters { get; set; }

    /// <inheritdoc/>
    public override void Post(SendOrPostCallback d, object? state)
    {
        HoldsPosters?.Wait(s_longest);
        if (_isGone)
        {
            throw new InvalidOperationException("The thread is gone.");
        }

        _queue.Add(() => d(state));
    }

    /// <summary>Runs something there, from its start to its end.</summary>
    public Task<T> RunAsync<T>(Func<T> work)
    {
        TaskCompletionSource<T> done = new(TaskCreationOptions.RunContinuationsAsynchronously);
        _queue.Add(() =>
        {
            try
            {
                done.SetResult(work());
            }
            catch (Exception error)
            {
                done.SetException(error);
            }
        });
        return done.Task.WaitAsync(s_longest);
    }

    /// <summary>The thread takes nothing until the returned event is set.</summary>
    public async Task<ManualResetEventSlim> HoldUpAsync()
    {
        ManualResetEventSlim end = new();
        TaskCompletionSource begun = new(TaskCreationOptions.RunContinuationsAsynchronously);
        _queue.Add(() =>
        {
            begun.SetResult();
            end.Wait(s_longest * 4);
        });
        await begun.Task.WaitAsync(s_longest);
        return end;
    }

    /// <summary>The thread ends; what is posted afterwards is refused.</summary>
    public void Dispose()
    {
        _isGone = true;
        _queue.CompleteAdding();
        _thread.Join(s_longest);
    }

    private void Run()
    {
        SetSynchronizationContext(this);
        foreach (Action action in _queue.GetConsumingEnumerable())
        {
            action();
        }
    }
}
