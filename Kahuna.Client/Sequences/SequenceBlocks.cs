using System.Collections.Concurrent;
using System.Runtime.ExceptionServices;
using Kahuna.Client.Outcomes;

namespace Kahuna.Client.Sequences;

/// <summary>
/// The blocks of the fast mode, one for each name and size in use, at most <see cref="CountMax"/>. Owned by
/// <see cref="SequenceClient"/>; any thread.
/// </summary>
internal sealed class SequenceBlocks(SequenceClient sequences, TimeProvider time)
{
    /// <summary>About 1 MB: a program that uses ever new names must not fill its memory with blocks.</summary>
    public const int CountMax = 4096;

    private readonly ConcurrentDictionary<(string Name, int Size), SequenceBlock> _blocks = new();

    public int Count => _blocks.Count;

    /// <summary>
    /// The block of a name and size. False when there is none and no room for one; values are then taken one by one.
    /// </summary>
    public bool TryGet(
        string name, int size, [System.Diagnostics.CodeAnalysis.NotNullWhen(true)] out SequenceBlock? block)
    {
        if (_blocks.TryGetValue((name, size), out block))
        {
            return true;
        }

        if (_blocks.Count >= CountMax)
        {
            DropIdle();
        }

        if (_blocks.Count >= CountMax)
        {
            return false;
        }

        block = _blocks.GetOrAdd((name, size), static (key, self) => self.Make(key.Name, key.Size), this);
        return true;
    }

    /// <summary>A sequence was deleted: its remaining values are not handed out.</summary>
    public void Drop(string name)
    {
        foreach ((string Name, int Size) key in _blocks.Keys)
        {
            if (key.Name == name)
            {
                _blocks.TryRemove(key, out _);
            }
        }
    }

    private SequenceBlock Make(string name, int size) => new(sequences, name, size, time);

    /// <summary>
    /// Drops blocks without values. A caller that just got one keeps using it; it serves that call only.
    /// </summary>
    private void DropIdle()
    {
        foreach (KeyValuePair<(string Name, int Size), SequenceBlock> pair in _blocks)
        {
            if (pair.Value.IsIdle)
            {
                _blocks.TryRemove(pair);
            }
        }
    }
}

/// <summary>
/// Values that the fast mode has taken and not handed out yet. The next block is fetched when this one is half used.
/// Owned by <see cref="SequenceBlocks"/>; any thread.
/// </summary>
internal sealed class SequenceBlock(SequenceClient sequences, string name, int size, TimeProvider time)
{
    // A sequence that is deleted and created again hands out the same values, so a block is kept only briefly.
    private static readonly TimeSpan s_kept = TimeSpan.FromMinutes(1);

    private readonly Lock _lock = new();
    private Part _part;
    private Part _spare;
    private Task<Exception?>? _fetching;

    /// <summary>True when it has no usable value and fetches none.</summary>
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

    /// <summary>The next value. Ends at the request timeout, even if others take every value that is fetched.</summary>
    public async ValueTask<long> NextAsync(CancellationToken ct)
    {
        long end = sequences.EndOfCall();
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

            // The task never throws. What ends the wait is the time or the caller, and the block may come just then.
            Exception? failure;
            try
            {
                failure = await fetching.WaitAsync(sequences.LeftUntil(end), time, ct)
                    .ConfigureAwait(sequences.CapturesContext);
            }
            catch (TimeoutException)
            {
                throw OperationErrors.NoBlock(name);
            }
            catch (OperationCanceledException)
            {
                throw new KahunaCanceledException(OperationOutcome.DidNotHappen, ct);
            }

            if (failure is not null)
            {
                ExceptionDispatchInfo.Throw(failure);
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

    /// <summary>
    /// Fetches the next block, detached from the caller, who holds the lock. The task returns the failure instead of
    /// throwing it, because nobody may await it.
    /// </summary>
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
                // The remaining values are handed out; a later caller fetches again.
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

    /// <summary>
    /// Takes a block, or what is left near the end of the sequence. The count shrinks with each answer, so that
    /// concurrent callers cannot delay this forever.
    /// </summary>
    private async Task<Part> TakeAsync()
    {
        long count = size;
        long end = sequences.EndOfCall();
        while (true)
        {
            // The age counts from before the call, so that a block is dropped too early rather than too late.
            long begun = time.GetTimestamp();
            SequenceTake take = await sequences.TryReserveAsync(name, count, sequences.LeftUntil(end))
                .ConfigureAwait(sequences.CapturesContext);
            if (take.Range is { } range)
            {
                return new Part(range.First, range.Step, range.Count, begun, IsLast: count < size);
            }

            count = Math.Min(take.Left, count - 1);
        }
    }

    /// <param name="Next">The next value.</param>
    /// <param name="Increment">The step to the value after it.</param>
    /// <param name="Left">Values that are left.</param>
    /// <param name="Fetched">When they were taken, on the time provider's timestamp scale.</param>
    /// <param name="IsLast">The sequence had no further values, so the next block is fetched only on demand.</param>
    private readonly record struct Part(long Next, long Increment, long Left, long Fetched, bool IsLast)
    {
        public bool IsUsable(TimeProvider time) => Left > 0 && time.GetElapsedTime(Fetched) < s_kept;

        public Part After() => this with { Next = unchecked(Next + Increment), Left = Left - 1 };
    }
}
