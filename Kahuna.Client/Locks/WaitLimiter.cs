namespace Kahuna.Client.Locks;

/// <summary>
/// Limits the long polls that wait at the leaders, in order of arrival. When more wait for a place, holds get shorter,
/// so that the leaders hear of every claim often enough to keep it. Part of a <see cref="KahunaClient"/>; any thread.
/// </summary>
/// <param name="places">The number of places.</param>
/// <param name="takesAll">
/// A long poll would block all other operations of the client, so polls use the shortest hold.
/// </param>
/// <param name="time">The clock for timeouts.</param>
/// <param name="capturesContext">Continuations run in the caller's context.</param>
internal sealed class WaitLimiter(int places, bool takesAll, TimeProvider time, bool capturesContext)
{
    /// <summary>
    /// The hold while there are places for all: half the time after which a leader drops a claim that is not polled.
    /// </summary>
    private const int HoldMs = 10_000;

    /// <summary>The shortest hold: a shorter one would be polling.</summary>
    private const int HoldMsMin = 200;

    private readonly Lock _lock = new();
    private readonly Queue<TaskCompletionSource> _queue = new();
    private int _inside;

    /// <summary>The hold for the next long poll, in ms.</summary>
    public int NextHoldMs
    {
        get
        {
            lock (_lock)
            {
                return takesAll ? HoldMsMin
                    : _queue.Count == 0 ? HoldMs
                    : (int)Math.Max(HoldMsMin, (long)HoldMs * places / (places + _queue.Count));
            }
        }
    }

    /// <summary>Waits for a place, which <see cref="Exit"/> returns.</summary>
    /// <param name="patience">The longest wait.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <exception cref="TimeoutException">No place was free in time.</exception>
    public ValueTask EnterAsync(TimeSpan patience, CancellationToken ct)
    {
        TaskCompletionSource turn;
        lock (_lock)
        {
            if (_inside < places)
            {
                _inside++;
                return ValueTask.CompletedTask;
            }

            turn = new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously);
            _queue.Enqueue(turn);
        }

        return new ValueTask(QueueAsync(turn, patience, ct));
    }

    public void Exit()
    {
        lock (_lock)
        {
            while (_queue.TryDequeue(out TaskCompletionSource? next))
            {
                if (next.TrySetResult())
                {
                    return;
                }
            }

            _inside--;
        }
    }

    private async Task QueueAsync(TaskCompletionSource turn, TimeSpan patience, CancellationToken ct)
    {
        try
        {
            await turn.Task.WaitAsync(patience, time, ct).ConfigureAwait(capturesContext);
        }
        catch (Exception error) when (error is TimeoutException or OperationCanceledException)
        {
            if (!turn.TrySetCanceled(CancellationToken.None))
            {
                // The place was granted at that moment.
                Exit();
            }

            throw;
        }
    }
}
