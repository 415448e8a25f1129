using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// A leader's linearizable reads: waiting for their round, then for the round's index to be applied. Owned by a
/// partition.
/// </summary>
internal sealed class ReadQueue
{
    private readonly Ring<PendingRead> _reads = new(1024);
    private readonly Ring<ReadState> _confirmed = new(8);

    public int Count => _reads.Count;

    /// <summary>A read that waits, by its place in the line.</summary>
    public ref readonly PendingRead this[int place] => ref _reads[place];

    /// <summary>Queues a read under a ticket; the batch must be held for it.</summary>
    public void Add(ClientBatch batch, int operation, ulong ticket)
    {
        InvariantException.Require(_reads.Count == 0 || ticket >= _reads[_reads.Count - 1].Ticket,
            "tickets are given out in order");
        _reads.Add(new PendingRead(batch, operation, ticket));
    }

    /// <summary>A round has confirmed all tickets up to this one.</summary>
    public void Confirm(in ReadState state)
    {
        bool isLater = _confirmed.Count == 0
            || (_confirmed[_confirmed.Count - 1] is var last && state.Ticket > last.Ticket
            && state.Index >= last.Index);
        InvariantException.Require(isLater, "rounds are confirmed in order");
        _confirmed.Add(state);
    }

    /// <summary>The next read that may be served with the state at <paramref name="applied"/>.</summary>
    public bool TryTake(LogIndex applied, out PendingRead read)
    {
        while (_confirmed.Count > 0 && _confirmed[0].Index <= applied)
        {
            if (_reads.Count > 0 && _reads[0].Ticket <= _confirmed[0].Ticket)
            {
                read = _reads.Take();
                return true;
            }

            _confirmed.Take();
        }

        read = default;
        return false;
    }

    /// <summary>Takes any read, served or not: leadership is lost.</summary>
    public bool TryDrop(out PendingRead read)
    {
        while (_confirmed.Count > 0)
        {
            _confirmed.Take();
        }

        read = default;
        if (_reads.Count == 0)
        {
            return false;
        }

        read = _reads.Take();
        return true;
    }

    /// <summary>One read that waits.</summary>
    internal readonly record struct PendingRead(ClientBatch Batch, int Operation, ulong Ticket);
}
