namespace Kahuna.Server.Storage;

/// <summary>
/// Batches on their way from the writers to the log thread, and their buffers on the way back. Any thread; one short lock.
/// </summary>
internal sealed class BatchQueue
{
    /// <summary>Idle buffers kept: a few writers with a few batches in flight each.</summary>
    private const int IdleMax = 32;

    /// <summary>A buffer that grew past this is not kept: one huge value must not hold its memory for ever.</summary>
    private const int IdleBytesMax = 4 << 20;

    private readonly Lock _lock = new();

    // The one that was returned last is taken first.
    private readonly List<LogBuffer> _idle = new(IdleMax);
    private SubmittedBatch[] _waiting = new SubmittedBatch[64];
    private int _count;
    private bool _closed;

    // The fewest idle buffers, and the largest batch, since what was not needed was let go.
    private int _idleFewest;
    private int _largest;

    /// <summary>Takes over a writer's batch and gives it an empty buffer for the next one.</summary>
    public LogBuffer Put(in SubmittedBatch batch)
    {
        lock (_lock)
        {
            if (_closed)
            {
                // The log is dead or shut: the batch is never persisted and never reported.
                batch.Buffer.Clear();
                return batch.Buffer;
            }

            if (_count == _waiting.Length)
            {
                Array.Resize(ref _waiting, _count * 2);
            }

            _waiting[_count++] = batch;
            _largest = Math.Max(_largest, batch.Buffer.Length);
            if (_idle.Count == 0)
            {
                return new LogBuffer();
            }

            LogBuffer buffer = _idle[^1];
            _idle.RemoveAt(_idle.Count - 1);
            _idleFewest = Math.Min(_idleFewest, _idle.Count);
            return buffer;
        }
    }

    /// <summary>Moves waiting batches to <paramref name="target"/>, in order, up to a size, but at least one if there is any.</summary>
    public void Take(List<SubmittedBatch> target, int bytesMax)
    {
        lock (_lock)
        {
            long bytes = 0;
            int taken = 0;
            while (taken < _count && (taken == 0 || bytes + _waiting[taken].Buffer.Length <= bytesMax))
            {
                bytes += _waiting[taken].Buffer.Length;
                target.Add(_waiting[taken++]);
            }

            _count -= taken;
            Array.Copy(_waiting, taken, _waiting, 0, _count);
            Array.Clear(_waiting, _count, taken);
        }
    }

    /// <summary>Gives the buffers of batches back that are done with.</summary>
    public void Return(List<SubmittedBatch> batches)
    {
        lock (_lock)
        {
            foreach (SubmittedBatch batch in batches)
            {
                if (_idle.Count < IdleMax && batch.Buffer.Capacity <= IdleBytesMax)
                {
                    batch.Buffer.Clear();
                    _idle.Add(batch.Buffer);
                }
            }
        }
    }

    /// <summary>Drops idle buffers that were not used since the last call, and those more than four times as large as the largest batch since then.</summary>
    public void LetGo()
    {
        lock (_lock)
        {
            _idle.RemoveRange(0, _idleFewest);
            int useful = Math.Max(_largest, LogBuffer.CapacityFirst);
            _idle.RemoveAll(buffer => buffer.Capacity / 4 > useful);
            _idleFewest = _idle.Count;
            _largest = 0;
        }
    }

    /// <summary>From now on batches are dropped.</summary>
    public void Close()
    {
        lock (_lock)
        {
            _closed = true;
            Array.Clear(_waiting, 0, _count);
            _count = 0;
        }
    }
}
