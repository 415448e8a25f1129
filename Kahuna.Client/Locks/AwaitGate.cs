namespace Kahuna.Client.Locks;

/// <summary>
/// Lets so many questions about locks wait at the leaders at a time, first come first served. Where there are more, each waits there for a shorter while, so that all are asked often enough to be known
/// there as waiting. Part of a <see cref="KahunaClient"/>; any thread.
/// </summary>
/// <param name="places">How many.</param>
/// <param name="takesAll">One that waits keeps everything else of the client waiting: each waits for as short a while as possible.</param>
/// <param name="time">Where patience is counted.</param>
/// <param name="capturesContext">Code after an await goes on where it was.</param>
internal sealed class AwaitGate(int places, bool takesAll, TimeProvider time, bool capturesContext)
{
    /// <summary>For so long an answer may be held back while there are places for all: half of what a leader waits for a question before it gives a claim up.</summary>
    private const int HoldMs = 10_000;

    /// <summary>Shorter ones would be polling.</summary>
    private const int HoldMsMin = 200;

    private readonly Lock _lock = new();
    private readonly Queue<TaskCompletionSource> _queue = new();
    private int _inside;

    /// <summary>For how long the next answer may be held back.</summary>
    public int NextHoldMs
    {
        get
        {
            lock (_lock)
            {
                return takesAll ? HoldMsMin : _queue.Count == 0 ? HoldMs : (int)Math.Max(HoldMsMin, (long)HoldMs * places / (places + _queue.Count));
            }
        }
    }

    /// <summary>Waits for a place, which <see cref="Leave"/> gives back.</summary>
    /// <param name="patience">For how long at most.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <exception cref="TimeoutException">There was none in time.</exception>
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

    public void Leave()
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
                // The turn had come at that moment.
                Leave();
            }

            throw;
        }
    }
}
