using Kahuna.Client.Connection.Sessions;
using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Frames;

namespace Kahuna.Client.Connection;

/// <summary>
/// The operations of one stream in their order: those in queue for room, those in the frame that is being filled, and those
/// that were handed to the writer and wait for their reply. Owned by a <see cref="NodeStream"/> and guarded by its lock,
/// which a cancellation takes before it lets an operation go: what is pending under the lock therefore stays the same call.
/// </summary>
internal sealed class RequestQueue(ConnectionClock clock, int maxInFlight, SessionPool sessions)
{
    private readonly SlotTable _slots = new(maxInFlight);
    private readonly RequestFrame _open = new();
    private readonly Queue<OperationRef> _waiting = new();
    private ClientSession? _session;
    private long _framesTaken;
    private long _earliestDeadline = long.MaxValue;
    private long _latestHold;

    /// <summary>Requests in the frame that is being filled.</summary>
    public int OpenCount => _open.Count;

    /// <summary>That frame is as large as frames get.</summary>
    public bool IsOpenFull => _open.IsFull;

    /// <summary>Requests without a reply, written or about to be.</summary>
    public int InFlight => _slots.Count;

    /// <summary>Those of them whose answers the node does not hold back.</summary>
    public int Owed => _slots.Owed;

    /// <summary>Operations that wait for a place.</summary>
    public int Waiting => _waiting.Count;

    /// <summary>Since when there is something in flight whose answer is not held back.</summary>
    public long BusySince { get; private set; }

    /// <summary>An answer is overdue: one that is not held back, or one that was held back for as long as it may be.</summary>
    /// <param name="now">This moment.</param>
    /// <param name="lastHeard">When the node was heard last.</param>
    /// <param name="patience">A healthy node needs less.</param>
    public bool IsOverdue(long now, long lastHeard, long patience) =>
        (_slots.Owed > 0 && now - Math.Max(BusySince, lastHeard) > patience)
        || (_slots.Count > _slots.Owed && now - Math.Max(_latestHold, lastHeard) > patience);

    /// <summary>Puts an operation into the open frame; false when it has to queue.</summary>
    public bool Add(OperationRef reference, long now)
    {
        _earliestDeadline = Math.Min(_earliestDeadline, reference.Operation.Deadline);
        if (_waiting.Count > 0 || !_slots.HasRoom || _open.IsFull)
        {
            _waiting.Enqueue(reference);
            return false;
        }

        Encode(reference, now);
        return true;
    }

    /// <summary>Hands the open frame to the writer; from here on its requests count as sent. There must be one in it.</summary>
    public ByteBuffer Take()
    {
        ByteBuffer frame = _open.Take();
        _framesTaken++;
        if (_waiting.Count > 0)
        {
            LetIn(clock.Now);
        }

        return frame;
    }

    /// <summary>Frees the places of answered requests, finds their operations, and lets queued ones in.</summary>
    public void Resolve(Span<ReceivedReply> replies, long now)
    {
        foreach (ref ReceivedReply reply in replies)
        {
            if (_slots.TryRelease(reply.Number, out reply.Reference) && reply.IsRefusal && reply.Reference.Operation is not null && reply.Reference.IsPending)
            {
                // From here on it counts as not sent, also for a cancellation that comes while it is passed on.
                reply.Reference.Operation.RequestNumber = 0;
                reply.Reference.Operation.MayHaveHappened |= reply.IsUnknown;
            }
        }

        LetIn(now);
    }

    /// <summary>Takes back the request of an operation that its caller has ended; says what it may have done.</summary>
    public OperationOutcome Withdraw(Operation operation)
    {
        // Without a number it is in queue, or was refused: whoever meets it there sees that it has ended.
        if (operation.RequestNumber == 0 || operation.IsRead)
        {
            return OperationOutcome.DidNotHappen;
        }

        if (!_slots.TryFind(operation.RequestNumber, out OperationRef found, out long frame) || found.Operation != operation || WasSent(frame))
        {
            return OperationOutcome.Unknown;
        }

        _open.RemoveEnded(_slots);
        return OperationOutcome.DidNotHappen;
    }

    /// <summary>Ends what has passed its deadline and adds it to <paramref name="expired"/>, whose owner fails it. True while anything is left.</summary>
    public bool Expire(long now, List<ExpiredOperation> expired)
    {
        if (now >= _earliestDeadline)
        {
            _earliestDeadline = long.MaxValue;
            bool isOpenTouched = false;
            int place = -1;
            while (_slots.Next(ref place, out _, out OperationRef reference, out long frame))
            {
                isOpenTouched |= TryExpire(reference, WasSent(frame), now, expired) && !WasSent(frame);
            }

            for (int i = _waiting.Count; i > 0; i--)
            {
                OperationRef reference = _waiting.Dequeue();
                if (!TryExpire(reference, wasSent: false, now, expired) && reference.IsPending)
                {
                    _waiting.Enqueue(reference);
                }
            }

            if (isOpenTouched)
            {
                _open.RemoveEnded(_slots);
            }
        }

        return _slots.Count + _waiting.Count > 0;
    }

    /// <summary>Removes what is in queue or in the open frame.</summary>
    public void TakeUnsent(List<OperationRef> unsent)
    {
        int place = -1;
        while (_slots.Next(ref place, out uint number, out OperationRef reference, out long frame))
        {
            if (!WasSent(frame))
            {
                _slots.TryRelease(number, out _);
                if (reference.IsPending)
                {
                    reference.Operation.RequestNumber = 0;
                    unsent.Add(reference);
                }
            }
        }

        unsent.AddRange(_waiting);
        _waiting.Clear();
        _open.Clear();
    }

    /// <summary>Removes what was sent: it goes out again, and what is a mutation may have happened by then.</summary>
    public void TakeSent(List<OperationRef> sent, string lostWith)
    {
        int place = -1;
        while (_slots.Next(ref place, out uint number, out OperationRef reference, out _))
        {
            _slots.TryRelease(number, out _);
            if (reference.IsPending)
            {
                if (!reference.Operation.IsRead)
                {
                    reference.Operation.MayHaveHappened = true;
                    reference.Operation.LostWith = lostWith;
                }

                reference.Operation.RequestNumber = 0;
                sent.Add(reference);
            }
        }
    }

    /// <summary>
    /// Takes away what is to go another way: adds it to <paramref name="moved"/>, whose owner sends it again under the number that it has. What was sent may
    /// have happened by then; its reply, should it still come, finds nobody. What has an idempotency key and was sent stays, because a second attempt could get
    /// nothing and tell so before the first is carried out.
    /// </summary>
    /// <param name="leaves">Which operations.</param>
    /// <param name="takenBefore">Of those that were sent, only what the stream had taken before this moment.</param>
    /// <param name="moved">Receives them.</param>
    public void TakeAway(Func<Operation, bool> leaves, long takenBefore, List<OperationRef> moved)
    {
        int before = moved.Count;
        bool isOpenTouched = false;
        int place = -1;
        while (_slots.Next(ref place, out uint number, out OperationRef reference, out long frame))
        {
            if (!reference.IsPending || _slots.TakenAt(number) > takenBefore || !leaves(reference.Operation))
            {
                continue;
            }

            if (WasSent(frame))
            {
                if (reference.Operation.IsKeyed)
                {
                    continue;
                }

                _slots.Disown(number);
                reference.Operation.MayHaveHappened |= !reference.Operation.IsRead;
            }
            else
            {
                _slots.TryRelease(number, out _);
                isOpenTouched = true;
            }

            reference.Operation.RequestNumber = 0;
            moved.Add(reference);
        }

        for (int i = _waiting.Count; i > 0; i--)
        {
            OperationRef reference = _waiting.Dequeue();
            if (reference.IsPending && leaves(reference.Operation))
            {
                moved.Add(reference);
            }
            else
            {
                _waiting.Enqueue(reference);
            }
        }

        if (isOpenTouched)
        {
            _open.RemoveEnded(_slots);
        }

        if (moved.Count > before)
        {
            LetIn(clock.Now);
        }
    }

    /// <summary>Nothing is added any more: another stream may go on with the session.</summary>
    public void End()
    {
        if (_session is not null)
        {
            sessions.Return(_session);
            _session = null;
        }
    }

    private bool WasSent(long frame) => frame < _framesTaken;

    private bool TryExpire(OperationRef reference, bool wasSent, long now, List<ExpiredOperation> expired)
    {
        if (!reference.IsPending)
        {
            return false;
        }

        if (reference.Operation.Deadline > now)
        {
            _earliestDeadline = Math.Min(_earliestDeadline, reference.Operation.Deadline);
            return false;
        }

        if (!reference.TryEnd())
        {
            return false;
        }

        expired.Add(new ExpiredOperation(reference.Operation, wasSent));
        return true;
    }

    private void Encode(OperationRef reference, long now)
    {
        Operation operation = reference.Operation;
        bool isHeld = operation.HoldMs > 0;
        if (isHeld)
        {
            _latestHold = Math.Max(_latestHold, operation.HoldUntil);
        }
        else if (_slots.Owed == 0)
        {
            BusySince = now;
        }

        if (operation.Sequence == 0 && !operation.IsRead)
        {
            Number(operation);
        }

        operation.RequestNumber = _slots.Take(reference, _framesTaken, isHeld, now);
        uint waitMs = clock.WaitMs(operation.Deadline - now) | (operation.IsForwarded ? Frame.ForwardFlag : 0);
        _open.Append(operation.RequestNumber, waitMs, operation.ToCommand(clock.Ms(operation.HoldUntil - now)));
    }

    /// <summary>Gives a mutation the number that all its attempts carry. Its caller has the right to write to it.</summary>
    private void Number(Operation operation)
    {
        if (_session is null || !_session.TryTake(out ulong number))
        {
            _session = sessions.Exchange(_session, out number);
        }

        operation.Session = _session;
        operation.SessionId = _session.Id;
        operation.Sequence = number;
    }

    private void LetIn(long now)
    {
        while (_waiting.Count > 0 && _slots.HasRoom && !_open.IsFull)
        {
            OperationRef reference = _waiting.Dequeue();
            if (reference.IsPending)
            {
                Encode(reference, now);
            }
        }
    }
}
