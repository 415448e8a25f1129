namespace Kahuna.Client.Sequences;

/// <summary>Values that the fast mode has taken and not handed out yet; the next block is fetched when this one is half used. Owned by <see cref="Sequences"/>; any thread.</summary>
internal sealed class SequenceBlock(Sequences sequences, string name, int size, TimeProvider time)
{
    // A sequence that is deleted and created anew hands the same values out again; so a block is not kept for long.
    private static readonly TimeSpan s_kept = TimeSpan.FromMinutes(1);

    private readonly Lock _lock = new();
    private Part _part;
    private Part _spare;
    private Task<Part>? _fetching;

    /// <summary>The next value.</summary>
    public async ValueTask<long> NextAsync(CancellationToken ct)
    {
        while (true)
        {
            Task<Part>? fetching;
            lock (_lock)
            {
                if (TryTake(out long value))
                {
                    return value;
                }

                fetching = _fetching ??= FetchAsync();
            }

            try
            {
                await fetching.WaitAsync(ct).ConfigureAwait(sequences.CapturesContext);
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
        if (_part.Left <= size / 2 && _spare.Left == 0)
        {
            _fetching ??= FetchAsync();
        }

        return true;
    }

    private async Task<Part> FetchAsync()
    {
        // The caller holds the lock: what follows runs after it is released.
        await Task.Yield();
        try
        {
            // Counted from before the call: what is old is rather dropped too early.
            long begun = time.GetTimestamp();
            SequenceRange range = await sequences.ReserveAsync(name, size).ConfigureAwait(sequences.CapturesContext);
            Part fetched = new(range.First, (long)(((Int128)range.Last - range.First) / (range.Count - 1)), range.Count, begun);
            lock (_lock)
            {
                if (_part.IsUsable(time))
                {
                    _spare = fetched;
                }
                else
                {
                    _part = fetched;
                }
            }

            return fetched;
        }
        finally
        {
            lock (_lock)
            {
                _fetching = null;
            }
        }
    }

    private readonly record struct Part(long Next, long Increment, long Left, long Fetched)
    {
        public bool IsUsable(TimeProvider time) => Left > 0 && time.GetElapsedTime(Fetched) < s_kept;

        public Part After() => this with { Next = unchecked(Next + Increment), Left = Left - 1 };
    }
}
