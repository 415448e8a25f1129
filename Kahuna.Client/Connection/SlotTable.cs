using Kahuna.Wire;

namespace Kahuna.Client.Connection;

/// <summary>
/// The operations in flight on one stream, by request number. A number is a slot's index and its use count, so a late
/// reply to a reused slot finds nothing. Only replies release slots, never callers that give up, so the number of
/// requests that the server holds stays bounded. Owned by a <see cref="RequestQueue"/> and guarded by its stream's
/// lock.
/// </summary>
internal sealed class SlotTable(int capacity)
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
