using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// A leader's part in pessimistic transactions: keys that they hold, requests that wait for keys, and writes that have
/// to keep away (docs/adr/0042-pessimistic-transactions.md). Nothing of it is replicated: it ends with the leadership.
/// Owned by a partition's <see cref="PendingRequests"/>; not thread-safe.
/// </summary>
internal sealed class TransactionHolds(TurnClock clock, ReplyFrames replies, ProposalQueue proposals)
{
    /// <summary>A request keeps its place in the queue for this long while its client does not ask again.</summary>
    public const int AbsentMsMax = 5_000;

    /// <summary>
    /// Answers of one stream that are held back at a time; less than it may have in flight, so that what ends the wait
    /// still gets through.
    /// </summary>
    private const int HeldPerSinkMax = Wire.Limits.InFlightPerStreamMax / 2;

    private readonly List<HoldWaiter> _absent = [];
    private readonly KeyHolds _holds = new(() => proposals.Accepted);

    /// <summary>Keys that are held, each as often as it is; 0: nothing has to keep away.</summary>
    public int Count => _holds.Count;

    /// <summary>What is held, and what waits.</summary>
    public HoldCounts Counts => new(_holds.Transactions, _holds.Count, _holds.Waiters.Count);

    /// <summary>No transaction holds or waits.</summary>
    public bool IsIdle => _holds.Transactions == 0;

    /// <summary>Requests that waited are to be answered.</summary>
    public bool HasGranted => _holds.HasGranted;

    /// <summary>
    /// Looks at a request to hold a key or to let go. False: it is answered, or its answer is held back.
    /// </summary>
    /// <param name="sink">Who asks.</param>
    /// <param name="read">The request.</param>
    /// <param name="command">The request, decoded; then a read of the key, which is held.</param>
    /// <param name="isEarly">The key is held, and may be read once what was taken before is applied.</param>
    public bool TryHold(ReplySink sink, in ParkedRead read, scoped ref Command command, out bool isEarly)
    {
        isEarly = false;
        if (command.Kind == CommandKind.TransactionRelease)
        {
            int keys = _holds.Release(TransactionId.Read(command.Value), isApplied: false);
            replies.Reply(sink, read.Number, new Outcome(keys > 0 ? OutcomeStatus.Found : OutcomeStatus.NotFound));
            AnswerEnded();
            return false;
        }

        bool decodes = HoldBody.TryRead(command.Value, out HoldBody asked);
        InvariantException.Require(decodes, "a hold that passed the door decodes");
        HoldVerdict verdict = _holds.Ask(in asked, command.Key, clock.Now, out HoldWaiter? waiter, out long since);
        AnswerEnded();
        switch (verdict)
        {
            case HoldVerdict.Granted:
                isEarly = since > proposals.Answered;
                command.Kind = asked.Has(HoldFlags.WithoutValue) ? CommandKind.Exists : CommandKind.Get;
                command.Flags = CommandFlags.None;
                command.Value = default;
                return true;
            case HoldVerdict.Waits:
                Wait(sink, in read, command.HoldMs, waiter!);
                break;
            case HoldVerdict.Dies:
                replies.ReplyError(sink, read.Number, OutcomeStatus.TransactionConflict,
                    "An older transaction holds the key, or waits for it; nothing was changed. Run the transaction "
                        + "again.");
                break;
            case HoldVerdict.Over:
                replies.ReplyError(sink, read.Number, OutcomeStatus.TransactionConflict,
                    "The transaction was released before, or its time is over; nothing was changed.");
                break;
            default:
                replies.ReplyError(sink, read.Number, OutcomeStatus.Busy,
                    "Transactions hold as many keys as they may, or too many wait for this one; try again later.");
                break;
        }

        return false;
    }

    /// <summary>Takes the next request that waited and was granted.</summary>
    public bool TryTakeGranted(out ReplySink sink, out ParkedRead read)
    {
        while (_holds.TryTakeGranted(out HoldWaiter waiter))
        {
            if (TakeAnswer(waiter) is { } answer)
            {
                (sink, read) = (answer.Sink, new ParkedRead(answer.Number, null, 0, answer.Command));
                return true;
            }
        }

        AnswerEnded();
        (sink, read) = (null!, default);
        return false;
    }

    /// <summary>Why a write must keep away from keys that others hold; null when it need not.</summary>
    public string? Refuse(ReadOnlySpan<byte> bytes, out OutcomeStatus status)
    {
        status = OutcomeStatus.KeyInTransaction;
        if (!Command.TryRead(bytes, out Command command) || !HoldGate.Refuses(_holds, in command))
        {
            return null;
        }

        if (command.Holder.IsEmpty)
        {
            return "A transaction holds the key; try again.";
        }

        // It holds other keys, for which this one's holder may wait.
        status = OutcomeStatus.TransactionConflict;
        return "Another transaction holds a key that this one has held before; nothing was changed. Run the "
            + "transaction again.";
    }

    /// <summary>A command was applied: a commit of a transaction, or its part, takes the holds along.</summary>
    /// <param name="command">The command.</param>
    /// <param name="status">How it ended; Unset: nobody waits for it here.</param>
    public void Applied(scoped in Command command, OutcomeStatus status)
    {
        if (!command.Holder.IsEmpty && status is OutcomeStatus.Applied or OutcomeStatus.Unset)
        {
            _holds.Release(TransactionId.Read(command.Holder), isApplied: true);
        }
    }

    /// <summary>A tick: ends what has lasted long enough.</summary>
    public void Tick()
    {
        if (IsIdle)
        {
            return;
        }

        _holds.Expire(clock.Now);
        foreach (HoldWaiter waiter in _holds.Waiters)
        {
            if (waiter.Answer is { } answer)
            {
                if (answer.Sink.IsClosed || answer.End <= clock.Now)
                {
                    Postpone(waiter);
                }
            }
            else if (clock.Now - waiter.Left >= AbsentMsMax)
            {
                _absent.Add(waiter);
            }
        }

        foreach (HoldWaiter waiter in _absent)
        {
            // One that was granted when another one left holds the key now.
            if (waiter.Owner.Waiting == waiter)
            {
                _holds.Drop(waiter);
            }
        }

        _absent.Clear();

        AnswerEnded();
    }

    /// <summary>This node leads no more, or stops: nothing is held, and what waits is answered.</summary>
    public void Drop(OutcomeStatus status, long number)
    {
        _holds.Clear();
        while (_holds.TryTakeEnded(out HoldWaiter waiter))
        {
            if (TakeAnswer(waiter) is { } answer)
            {
                replies.Reply(answer.Sink, answer.Number, new Outcome(status, number: number));
            }
        }
    }

    private void Wait(ReplySink sink, in ParkedRead read, long holdMs, HoldWaiter waiter)
    {
        if (waiter.Answer is not null)
        {
            // The same client asks again over another connection.
            Postpone(waiter);
        }

        HeldAnswer answer = new(sink, read.Number, read.Bytes.ToArray(), clock.Now + holdMs);
        if (holdMs == 0 || sink.HeldBack >= HeldPerSinkMax || !sink.HasRoomToHold(answer.Bytes))
        {
            waiter.Left = clock.Now;
            replies.Reply(sink, read.Number, new Outcome(OutcomeStatus.Queued));
            return;
        }

        sink.HoldBack(1, answer.Bytes);
        waiter.Answer = answer;
    }

    /// <summary>Answers that the request still waits. It keeps its place.</summary>
    private void Postpone(HoldWaiter waiter)
    {
        waiter.Left = clock.Now;
        if (TakeAnswer(waiter) is { Sink.IsClosed: false } answer)
        {
            replies.Reply(answer.Sink, answer.Number, new Outcome(OutcomeStatus.Queued));
        }
    }

    private void AnswerEnded()
    {
        while (_holds.TryTakeEnded(out HoldWaiter waiter))
        {
            if (TakeAnswer(waiter) is { Sink.IsClosed: false } answer)
            {
                replies.ReplyError(answer.Sink, answer.Number, OutcomeStatus.TransactionConflict,
                    "The transaction no longer waits for the key: its time is over, or it was released; nothing was "
                        + "changed.");
            }
        }
    }

    private static HeldAnswer? TakeAnswer(HoldWaiter waiter)
    {
        HeldAnswer? answer = waiter.Answer;
        waiter.Answer = null;
        answer?.Sink.HoldBack(-1, -answer.Bytes);
        return answer;
    }
}

/// <summary>An answer that is held back while a transaction waits for a key. Immutable.</summary>
/// <param name="Sink">Who gets it.</param>
/// <param name="Number">The request's number there.</param>
/// <param name="Command">The request.</param>
/// <param name="End">When it is answered in any case.</param>
internal sealed record HeldAnswer(ReplySink Sink, RequestTag Number, byte[] Command, NodeTime End)
{
    /// <summary>Bytes that it takes up.</summary>
    public long Bytes => LongPoll.BytesOf(Command.Length);
}
