using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// The reads of a partition: those that wait for their round, and those that wait because their client does not take
/// the answers it has. A turn serves a slice of them, so that many large answers do not keep others waiting. Owned by a
/// partition's <see cref="PendingRequests"/>; not thread-safe.
/// </summary>
internal sealed class PendingReads(ReplyFrames replies, AppliedState applied, LockWaiters locks, ParkedReads parked)
{
    /// <summary>Answer bytes that a partition makes in one turn: about a millisecond of copying.</summary>
    private const int SliceBytes = 4 << 20;

    /// <summary>
    /// Counted for each read besides its answer: the work of finding a key, so that a slice is at most 65,536 reads.
    /// </summary>
    private const int ReadBytes = 64;

    private readonly ReadQueue _reads = new();

    /// <summary>
    /// Reads that wait for their round or their turn; those of clients that do not read are not counted.
    /// </summary>
    public int Count => _reads.Count;

    /// <summary>Queues a read under a ticket; the batch must be held for it.</summary>
    public void Add(ClientBatch batch, int operation, ulong ticket) => _reads.Add(batch, operation, ticket);

    /// <summary>A round has confirmed reads.</summary>
    public void Confirm(in ReadState state) => _reads.Confirm(state);

    /// <summary>
    /// Answers the reads whose round is confirmed and applied, as far as a turn's slice and the clients' room reach.
    /// True: more can be answered in the next turn.
    /// </summary>
    public bool Serve(long nowMs)
    {
        int left = SliceBytes;
        if (!ServeParked(nowMs, ref left))
        {
            return true;
        }

        for (int i = 0; _reads.TryTake(applied.Index, out ReadQueue.PendingRead read); i++)
        {
            if (i % Prefetcher.CommandsMax == 0)
            {
                CommandsAhead.OfReads(applied.State.Ahead, _reads);
            }

            // The group begins with the read behind the one that was taken before it was looked at.
            KnownHash known = applied.State.Ahead.HashOf((i % Prefetcher.CommandsMax) - 1);
            uint number = read.Batch.Operations[read.Operation].Number;
            ReplySink sink = read.Batch.Sink;
            ParkedRead asked = new(number, read.Batch, read.Operation, null);
            if (sink.IsClosed)
            {
                read.Batch.Release();
            }
            else if (parked.Holds(sink) || !TryAnswer(sink, asked, known, nowMs, ref left, out _))
            {
                parked.Add(sink, asked);
            }

            if (left <= 0)
            {
                return true;
            }
        }

        // A line that has just begun is looked at once more, after its sink was asked to tell.
        return parked.DueCount > 0;
    }

    /// <summary>Answers every read with the same: this node leads no more, or stops.</summary>
    public void Drop(OutcomeStatus status, long number)
    {
        while (_reads.TryDrop(out ReadQueue.PendingRead read))
        {
            replies.Reply(read.Batch.Sink, read.Batch.Operations[read.Operation].Number,
                new Outcome(status, number: number));
            read.Batch.Release();
        }

        while (parked.TryDrop(out ReplySink? sink, out ParkedRead read))
        {
            replies.Reply(sink!, read.Number, new Outcome(status, number: number));
            read.Batch?.Release();
        }
    }

    /// <summary>Looks at the lines that are due. False: the slice is used up.</summary>
    private bool ServeParked(long nowMs, ref int left)
    {
        int looked = 0;
        while (looked < parked.DueCount && left > 0)
        {
            ReplySink sink = parked.Due(looked);
            ServeLine(sink, nowMs, ref left);
            if (left > 0)
            {
                looked++;
            }
        }

        parked.Looked(looked);
        return left > 0;
    }

    private void ServeLine(ReplySink sink, long nowMs, ref int left)
    {
        while (left > 0 && parked.TryPeek(sink, out ParkedRead read))
        {
            if (sink.IsClosed)
            {
                parked.Take(sink).Batch?.Release();
                left -= ReadBytes;
            }
            else if (CommandKinds.IsLock((CommandKind)read.Bytes[0]))
            {
                // It is answered, holds it back, or puts it at the end of the line again.
                parked.Take(sink);
                int others = parked.Count;
                locks.Serve(sink, read.Number, read.Bytes, nowMs);
                read.Batch?.Release();
                left -= ReadBytes;
                if (parked.Count > others)
                {
                    replies.TellWhenLeft(sink);
                    return;
                }
            }
            else if (TryAnswer(sink, read, default, nowMs, ref left, out int answerBytes))
            {
                parked.Take(sink);
            }
            else
            {
                parked.Need(sink, answerBytes);
            }
        }
    }

    /// <summary>
    /// Answers a read and lets its batch go. False: there is no room for its answer, of which the size is told.
    /// </summary>
    private bool TryAnswer(ReplySink sink, in ParkedRead read, KnownHash known, long nowMs, ref int left,
        out int answerBytes)
    {
        bool decodes = Command.TryRead(read.Bytes, out Command command);
        InvariantException.Require(decodes, "a read that passed the door decodes");
        left -= ReadBytes;
        answerBytes = 1;
        if (CommandKinds.IsLock(command.Kind))
        {
            locks.Serve(sink, read.Number, read.Bytes, nowMs);
            read.Batch!.Release();
            return true;
        }

        if (!replies.HasRoom(sink, answerBytes))
        {
            return false;
        }

        ByteBuffer frame = replies.BeginReply(sink, read.Number, out int at);
        try
        {
            applied.State.Read(command, nowMs, frame, known);
        }
        catch (InvariantException)
        {
            replies.GiveUpReply(sink, read.Number, frame, at);
            throw;
        }

        answerBytes = frame.Length - at;
        if (!replies.TryEndRead(sink, frame, at))
        {
            return false;
        }

        left -= answerBytes;
        read.Batch!.Release();
        return true;
    }
}
