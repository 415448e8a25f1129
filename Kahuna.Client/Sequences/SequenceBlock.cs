using System.Runtime.ExceptionServices;

namespace Kahuna.Client.Sequences;

/// <summary>Values that the fast mode has taken and not handed out yet; the next block is fetched when this one is half used. Owned by <see cref="SequenceBlocks"/>; any thread.</summary>
internal sealed class SequenceBlock(Sequences sequences, string name, int size, TimeProvider time)
{
    // A sequence that is deleted and created anew hands the same values out again; so a block is not kept for long.
    private static readonly TimeSpan s_kept = TimeSpan.FromMinutes(1);

    private readonly Lock _lock = new();
    private Part _part;
    private Part _spare;
    private Task<Exception?>? _fetching;

    /// <summary>It has no value that may still be handed out, and none is on its way.</summary>
    public bool IsIdle
    {
        get
        {
            lock (_lock)
            {
                return _fetching is null && !_part.IsUsable(time) && !_spare.IsUsable(time);
            }
        }
    }

    /// <summary>The next value.</summary>
    public async ValueTask<long> NextAsync(CancellationToken ct)
    {
        while (true)
        {
            Task<Exception?> fetching;
            lock (_lock)
            {
                if (TryTake(out long value))
                {
                    return value;
                }

                fetching = _fetching ??= sequences.Start(FetchAsync);
            }

            try
            {
                if (await fetching.WaitAsync(ct).ConfigureAwait(sequences.CapturesContext) is { } failure)
                {
                    ExceptionDispatchInfo.Throw(failure);
                }
            }
            catch (OperationCanceledException) when (ct.IsCancellationRequested && !fetching.IsCompleted)
            {
                throw new KahunaCanceledException(OperationOutcome.DidNotHappen, ct);
            }
        }
    }

    private bool TryTake(out long value)
    {
        if (!_part.IsUsable(time))
        {
            (_part, _spare) = (_spare, default);
        }

        value = 0;
        if (!_part.IsUsable(time))
        {
            return false;
        }

        value = _part.Next;
        _part = _part.After();
        if (_part.Left <= size / 2 && _spare.Left == 0 && !_part.IsLast)
        {
            _fetching ??= sequences.Start(FetchAsync);
        }

        return true;
    }

    /// <summary>Fetches the next block, away from the caller, who holds the lock. The task gives why there is none, and does not fail: nobody may be waiting for it.</summary>
    private async Task<Exception?> FetchAsync()
    {
        Part fetched = default;
        Exception? failure = null;
        try
        {
            fetched = await TakeAsync().ConfigureAwait(sequences.CapturesContext);
        }
        catch (Exception error)
        {
            failure = error;
        }

        lock (_lock)
        {
            _fetching = null;
            if (failure is not null)
            {
                // What is left here is handed out; whoever needs more afterwards asks again.
                _part = _part with { IsLast = true };
            }
            else if (_part.IsUsable(time))
            {
                _spare = fetched;
            }
            else
            {
                _part = fetched;
            }
        }

        return failure;
    }

    /// <summary>Takes a block, or near the end of the sequence what is left; that gets less with each answer, so that somebody who takes values at the same time cannot hold this up for ever.</summary>
    private async Task<Part> TakeAsync()
    {
        long count = size;
        while (true)
        {
            // Counted from before the call: what is old is rather dropped too early.
            long begun = time.GetTimestamp();
            SequenceTake take = await sequences.TryReserveAsync(name, count).ConfigureAwait(sequences.CapturesContext);
            if (take.Range is { } range)
            {
                return new Part(range.First, range.Step, range.Count, begun, IsLast: count < size);
            }

            count = Math.Min(take.Left, count - 1);
        }
    }

    /// <param name="Next">The next value.</param>
    /// <param name="Increment">From it to the one after.</param>
    /// <param name="Left">Values that are left.</param>
    /// <param name="Fetched">When they were taken, on the time provider's timestamp scale.</param>
    /// <param name="IsLast">There was nothing behind them: more is asked for only when it is needed.</param>
    private readonly record struct Part(long Next, long Increment, long Left, long Fetched, bool IsLast)
    {
        public bool IsUsable(TimeProvider time) => Left > 0 && time.GetElapsedTime(Fetched) < s_kept;

        public Part After() => this with { Next = unchecked(Next + Increment), Left = Left - 1 };
    }
}
