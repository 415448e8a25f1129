using System.Buffers.Binary;
using Kahuna.Client.Connection.Sessions;
using Kahuna.Client.Outcomes;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;

namespace Kahuna.Client.Connection;

/// <summary>
/// The operations of one stream in order: queued for room, encoded in the open frame, or sent and waiting for a reply.
/// Owned by a <see cref="NodeStream"/> and guarded by its lock. A cancellation takes the lock before it releases an
/// operation, so a pending operation stays the same call under the lock.
/// </summary>
internal sealed class RequestQueue(ConnectionClock clock, int maxInFlight, SessionPool sessions)
{
    private readonly RequestSlots _slots = new(maxInFlight);
    private readonly RequestFrame _open = new();
    private readonly Queue<OperationRef> _waiting = new();
    private ClientSession? _session;
    private long _framesTaken;
    private long _earliestDeadline = long.MaxValue;
    private long _latestHold;

    /// <summary>The traces of requests of the open frame; null: the node takes none.</summary>
    public RequestTraces? Traces { get; set; }

    /// <summary>Requests in the open frame.</summary>
    public int OpenCount => _open.Count;

    /// <summary>The open frame has reached its target size.</summary>
    public bool IsOpenFull => _open.IsFull;

    /// <summary>Requests without a reply, written or in the open frame.</summary>
    public int InFlight => _slots.Count;

    /// <summary>Requests in flight that are not long polls, so that a prompt answer is due.</summary>
    public int Awaiting => _slots.Awaiting;

    /// <summary>Operations in the queue.</summary>
    public int Waiting => _waiting.Count;

    /// <summary>Since when a prompt answer is due.</summary>
    public long BusySince { get; private set; }

    /// <summary>True when an answer is overdue: a prompt one, or one of a long poll whose hold has ended.</summary>
    /// <param name="now">The current timestamp.</param>
    /// <param name="lastHeard">When the node was last heard.</param>
    /// <param name="patience">How long an answer may take.</param>
    public bool IsOverdue(long now, long lastHeard, long patience) =>
        (_slots.Awaiting > 0 && now - Math.Max(BusySince, lastHeard) > patience)
        || (_slots.Count > _slots.Awaiting && now - Math.Max(_latestHold, lastHeard) > patience);

    /// <summary>Encodes an operation into the open frame; false when it is queued instead.</summary>
    public bool Add(OperationRef reference, long now)
    {
        _earliestDeadline = Math.Min(_earliestDeadline, reference.Operation.Attempt.Deadline);
        if (_waiting.Count > 0 || !_slots.HasRoom || _open.IsFull)
        {
            _waiting.Enqueue(reference);
            return false;
        }

        Encode(reference, now);
        return true;
    }

    /// <summary>
    /// Hands the open frame to the writer; its requests count as sent from here on. The frame must not be empty.
    /// </summary>
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

    /// <summary>Frees the slots of answered requests, finds their operations and admits queued ones.</summary>
    public void Resolve(Span<ReceivedReply> replies, long now)
    {
        foreach (ref ReceivedReply reply in replies)
        {
            if (_slots.TryRelease(reply.Number, out reply.Reference)
                && reply.IsRefusal
                && reply.Reference.Operation is not null
                && reply.Reference.IsPending)
            {
                // From here on it counts as unsent, also for a cancellation that comes before it is sent again.
                reply.Reference.Operation.Attempt.RequestNumber = 0;
                reply.Reference.Operation.MayHaveHappened |= reply.IsUnknown;
            }
        }

        LetIn(now);
    }

    /// <summary>
    /// Withdraws the request of an operation that its caller has ended; returns whether it may have happened.
    /// </summary>
    public OperationOutcome Withdraw(Operation operation)
    {
        // Without a number it is queued or was refused; its holder sees that it has ended.
        if (operation.Attempt.RequestNumber == 0 || operation.IsRead)
        {
            return OperationOutcome.DidNotHappen;
        }

        if (!_slots.TryFind(operation.Attempt.RequestNumber, out OperationRef found, out long frame)
            || found.Operation != operation
            || WasSent(frame))
        {
            return OperationOutcome.Unknown;
        }

        _open.RemoveEnded(_slots);
        return OperationOutcome.DidNotHappen;
    }

    /// <summary>
    /// Ends operations past their deadline and adds them to <paramref name="expired"/>, for the caller to fail. True
    /// while operations are left.
    /// </summary>
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

    /// <summary>Removes the operations in the queue and in the open frame.</summary>
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
                    reference.Operation.Attempt.RequestNumber = 0;
                    unsent.Add(reference);
                }
            }
        }

        unsent.AddRange(_waiting);
        _waiting.Clear();
        _open.Clear();
    }

    /// <summary>Removes the sent operations, to be sent again; a mutation may have happened.</summary>
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

                reference.Operation.Attempt.RequestNumber = 0;
                sent.Add(reference);
            }
        }
    }

    /// <summary>
    /// Removes operations for another route and adds them to <paramref name="moved"/>; the caller sends them again
    /// under their session number. A sent one may have happened, and its late reply is ignored. A sent one with an
    /// idempotency key stays: a second attempt could fail and report that before the first is applied.
    /// </summary>
    /// <param name="leaves">Selects the operations.</param>
    /// <param name="takenBefore">Of the sent operations, only those sent before this time are moved.</param>
    /// <param name="moved">Receives the operations.</param>
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

            reference.Operation.Attempt.RequestNumber = 0;
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

    /// <summary>Returns the session to the pool after the last operation, so that another stream can use it.</summary>
    public void End()
    {
        Traces?.Clear();
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

        if (reference.Operation.Attempt.Deadline > now)
        {
            _earliestDeadline = Math.Min(_earliestDeadline, reference.Operation.Attempt.Deadline);
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
        bool isHeld = operation.Request.HoldMs > 0;
        if (isHeld)
        {
            _latestHold = Math.Max(_latestHold, operation.Attempt.HoldUntil);
        }
        else if (_slots.Awaiting == 0)
        {
            BusySince = now;
        }

        if (operation.SessionNumber.IsNone && !operation.IsRead && !operation.Request.IsIdempotent)
        {
            Number(operation);
        }

        operation.Attempt.RequestNumber = _slots.Take(reference, _framesTaken, isHeld, now);
        uint waitMs = clock.WaitMs(operation.Attempt.Deadline - now)
            | (operation.Attempt.IsForwarded ? Frame.ForwardFlag : 0);
        _open.Append(
            operation.Attempt.RequestNumber, waitMs, operation.ToCommand(clock.Ms(operation.Attempt.HoldUntil - now)));
        if (Traces is { } traces && operation.Traced is { } activity)
        {
            traces.Add(operation.Attempt.RequestNumber, activity);
        }
    }

    /// <summary>
    /// Gives a mutation the session number that all its attempts carry. The caller may write to the operation.
    /// </summary>
    private void Number(Operation operation)
    {
        if (_session is null || !_session.TryTake(out ulong number))
        {
            _session = sessions.Exchange(_session, out number);
        }

        operation.SessionNumber.Take(_session, number);
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

/// <summary>
/// The open frame: callers append requests to it until the writer takes it. Owned by a <see cref="RequestQueue"/> and
/// guarded by its stream's lock.
/// </summary>
internal sealed class RequestFrame
{
    private const int FirstRequest = Frame.PrefixBytes + Frame.HeaderBytes;

    private ByteBuffer? _bytes;

    /// <summary>Requests in the frame.</summary>
    public int Count { get; private set; }

    /// <summary>The frame has reached its target size; further requests wait for the next one.</summary>
    public bool IsFull => _bytes is not null && _bytes.Length >= Limits.FrameBytesTarget;

    /// <summary>Appends a request.</summary>
    public void Append(uint number, uint waitMs, scoped in Command command)
    {
        if (_bytes is null)
        {
            _bytes = ByteBuffer.Rent();
            Frame.Begin(_bytes, FrameKind.Requests);
        }

        Frame.AppendRequest(_bytes, number, waitMs, in command);
        Count++;
    }

    /// <summary>Hands over the finished frame and starts the next one. The frame must not be empty.</summary>
    public ByteBuffer Take()
    {
        ByteBuffer taken = _bytes!;
        Frame.End(taken, Count);
        _bytes = null;
        Count = 0;
        return taken;
    }

    /// <summary>Removes the requests of ended operations and frees their slots; none of their bytes are sent.</summary>
    public void RemoveEnded(RequestSlots slots)
    {
        if (_bytes is null)
        {
            return;
        }

        Span<byte> all = _bytes.Array.AsSpan(0, _bytes.Length);
        int to = FirstRequest;
        int kept = 0;
        for (int at = FirstRequest; at < all.Length;)
        {
            uint number = BinaryPrimitives.ReadUInt32LittleEndian(all[at..]);
            int length = Frame.RequestHeaderBytes + (int)BinaryPrimitives.ReadUInt32LittleEndian(all[(at + 8)..]);
            if (slots.TryFind(number, out OperationRef reference, out _) && reference.IsPending)
            {
                all.Slice(at, length).CopyTo(all[to..]);
                to += length;
                kept++;
            }
            else
            {
                slots.TryRelease(number, out _);
            }

            at += length;
        }

        _bytes.Length = to;
        Count = kept;
    }

    /// <summary>Drops the frame.</summary>
    public void Clear()
    {
        _bytes?.Return();
        _bytes = null;
        Count = 0;
    }
}

/// <summary>An operation past its deadline, which the caller fails outside of the lock. A value.</summary>
/// <param name="Operation">The operation.</param>
/// <param name="WasSent">The writer had taken its request.</param>
internal readonly record struct ExpiredOperation(Operation Operation, bool WasSent)
{
    public void Fail() =>
        Operation.Fail(
            WasSent || Operation.MayHaveHappened ? OperationErrors.NoReply(Operation) : OperationErrors.NotSent());
}

/// <summary>
/// The operations in flight on one stream, by request number. A number is a slot's index and its use count, so a late
/// reply to a reused slot finds nothing. Only replies release slots, never callers that give up, so the number of
/// requests that the server holds stays bounded. Owned by a <see cref="RequestQueue"/> and guarded by its stream's
/// lock.
/// </summary>
internal sealed class RequestSlots(int capacity)
{
    // 14 bits for the slot (Limits.InFlightPerStreamMax) and 18 bits for its use count: a number repeats after 262,143
    // uses of one slot.
    private const int PlaceBits = 14;
    private const uint PlaceMask = (1u << PlaceBits) - 1;
    private const uint UseStep = 1u << PlaceBits;

    private readonly int _capacity = Math.Min(capacity, Limits.InFlightPerStreamMax);
    private Slot[] _slots = new Slot[Math.Min(capacity, 64)];
    private int _made;
    private int _free = -1;

    /// <summary>Operations in flight.</summary>
    public int Count { get; private set; }

    /// <summary>Operations in flight that are not long polls, so that a prompt answer is due.</summary>
    public int Awaiting { get; private set; }

    public bool HasRoom => Count < _capacity;

    /// <summary>Takes a slot for an operation and returns its number, which is never 0. There must be room.</summary>
    /// <param name="reference">The operation.</param>
    /// <param name="frame">The frame that carries the request.</param>
    /// <param name="isHeld">The node may delay its answer (long poll).</param>
    /// <param name="now">The current timestamp.</param>
    public uint Take(OperationRef reference, long frame, bool isHeld = false, long now = 0)
    {
        int place = _free;
        if (place >= 0)
        {
            _free = _slots[place].NextFree;
        }
        else
        {
            place = _made++;
            if (place == _slots.Length)
            {
                Array.Resize(ref _slots, Math.Min(_capacity, _slots.Length * 2));
            }

            _slots[place].Number = (uint)place;
        }

        ref Slot slot = ref _slots[place];
        slot.IsHeld = isHeld;
        slot.TakenAt = now;
        slot.Reference = reference;
        slot.Frame = frame;
        slot.IsUsed = true;
        slot.Number += UseStep;
        if (slot.Number < UseStep)
        {
            slot.Number += UseStep;
        }

        Count++;
        Awaiting += isHeld ? 0 : 1;
        return slot.Number;
    }

    /// <summary>
    /// Removes the operation of a number from its slot because it takes another route. The slot stays taken until the
    /// node replies, because the node still holds the request.
    /// </summary>
    public void Disown(uint number)
    {
        if (TryFind(number, out _, out _))
        {
            _slots[(int)(number & PlaceMask)].Reference = default;
        }
    }

    /// <summary>When the slot of a number in use was taken.</summary>
    public long TakenAt(uint number) => _slots[(int)(number & PlaceMask)].TakenAt;

    /// <summary>
    /// Finds the operation of a number and the frame that carried it. False when the number is not in use.
    /// </summary>
    public bool TryFind(uint number, out OperationRef reference, out long frame)
    {
        uint place = number & PlaceMask;
        if (place < _made && _slots[place].IsUsed && _slots[place].Number == number)
        {
            reference = _slots[place].Reference;
            frame = _slots[place].Frame;
            return true;
        }

        reference = default;
        frame = 0;
        return false;
    }

    /// <summary>Frees the slot of a number and returns its operation. False when the number is not in use.</summary>
    public bool TryRelease(uint number, out OperationRef reference)
    {
        if (!TryFind(number, out reference, out _))
        {
            return false;
        }

        int place = (int)(number & PlaceMask);
        ref Slot slot = ref _slots[place];
        slot.Reference = default;
        slot.IsUsed = false;
        slot.NextFree = _free;
        _free = place;
        Count--;
        Awaiting -= slot.IsHeld ? 0 : 1;
        return true;
    }

    /// <summary>
    /// Steps through the slots that hold an operation: start with -1; false after the last one. The current slot may be
    /// released in between.
    /// </summary>
    public bool Next(ref int place, out uint number, out OperationRef reference, out long frame)
    {
        while (++place < _made)
        {
            if (_slots[place] is { IsUsed: true, Reference.Operation: not null })
            {
                number = _slots[place].Number;
                reference = _slots[place].Reference;
                frame = _slots[place].Frame;
                return true;
            }
        }

        number = 0;
        reference = default;
        frame = 0;
        return false;
    }

    private struct Slot
    {
        public OperationRef Reference;
        public long Frame;
        public long TakenAt;
        public uint Number;
        public int NextFree;
        public bool IsUsed;
        public bool IsHeld;
    }
}
