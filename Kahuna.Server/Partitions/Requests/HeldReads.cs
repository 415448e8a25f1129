using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// Confirmed reads of keys that a prepared transaction is about to write. They are looked at again when keys are let
/// go, and with each tick, because their callers may have gone. They lie in batches that count against the node's
/// budget of requests. Owned by a partition's <see cref="PendingReads"/>; not thread-safe.
/// </summary>
internal sealed class HeldReads(AppliedState applied)
{
    private readonly Queue<(ReplySink Sink, ParkedRead Read)> _reads = new();
    private long _released;
    private int _due;

    /// <summary>Reads that wait.</summary>
    public int Count => _reads.Count;

    /// <summary>Some may be answered now.</summary>
    public bool IsDue => _due > 0;

    /// <summary>A read has to wait.</summary>
    public void Add(ReplySink sink, in ParkedRead read) => _reads.Enqueue((sink, read));

    /// <summary>Looks at all that wait once more.</summary>
    public void WakeAll() => _due = _reads.Count;

    /// <summary>Takes the next one that is to be looked at again.</summary>
    public bool TryTakeDue(out ReplySink sink, out ParkedRead read)
    {
        if (_reads.Count > 0 && applied.State.KeyValues.Prepared.Released is var released && released != _released)
        {
            _released = released;
            WakeAll();
        }

        (sink, read) = _due > 0 ? _reads.Dequeue() : default;
        _due -= _due > 0 ? 1 : 0;
        return sink is not null;
    }

    /// <summary>Takes any; false when none is left.</summary>
    public bool TryDrop(out ReplySink sink, out ParkedRead read)
    {
        _due = 0;
        bool isAny = _reads.TryDequeue(out (ReplySink Sink, ParkedRead Read) held);
        (sink, read) = held;
        return isAny;
    }
}
