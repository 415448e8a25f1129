using System.Numerics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// Blocks of bytes cut from slabs of 1 MiB, so that no managed object exists per key or value. A small block comes from
/// a 64 KiB page of its size class, a medium one from a slab of its class, a large one is an array of its own; freed
/// blocks, pages, slabs and arrays are used again. Owned by the state of one partition; not thread-safe.
/// </summary>
/// <remarks>
/// A block's number is its place in units of 16 bytes: the upper 16 bits name the slot (a slab or a large array), the
/// lower 16 the unit in it. Pages are numbered through all slots; a slab that serves a medium class uses the record of
/// its first page. The link of a free list lies in the free block itself.
/// </remarks>
/// <param name="slotsMax">Slabs and large arrays that there may be at a time; at most <see cref="SlotsMax"/>.</param>
internal sealed class SlabAllocator(int slotsMax = SlabAllocator.SlotsMax)
{
    /// <summary>The number that stands for no block.</summary>
    public const uint None = uint.MaxValue;

    public const int SlabBytes = 1 << 20;

    private const int UnitShift = 4;
    private const int SlotUnitsLog2 = 16;
    private const int PageUnitsLog2 = 12;
    private const int PageUnits = 1 << PageUnitsLog2;
    private const int SlabUnits = 1 << SlotUnitsLog2;
    private const int PageBytes = PageUnits << UnitShift;
    private const int PagesPerSlab = SlabUnits / PageUnits;
    private const int PagesPerSlabLog2 = SlotUnitsLog2 - PageUnitsLog2;

    /// <summary>
    /// Slots that a block's number can name. The last slot is not used, so that no block has the number None.
    /// </summary>
    public const int SlotsMax = (1 << 16) - 1;

    /// <summary>
    /// Empty slabs that are kept in any case, above it a quarter of those in use; more go back to the runtime. A node
    /// has many groups, and each of them keeps its own.
    /// </summary>
    private const int IdleSlabsMin = 1;

    /// <summary>
    /// Idle large arrays: as many bytes as are in use, between these two, so that the largest value can be replaced
    /// again and again; half of what is in use if that is more.
    /// </summary>
    private const long IdleLargeBytesMin = 4L << 20;
    private const long IdleLargeBytesUsual = 16L << 20;

    private readonly ChunkedTable<Page> _pages = new();
    private readonly int[] _partial = new int[SizeClasses.FirstLarge];
    private readonly int[] _idleLarge = new int[SizeClasses.Count - SizeClasses.FirstLarge];

    private byte[]?[] _slots = new byte[]?[16];
    private readonly int _slotsMax = Math.Min(slotsMax, SlotsMax);
    private int _slotCount;
    private int _slotsTaken;
    private int _largeIdle;
    private int _freeSlot;
    private int _freePage;
    private int _idleSlab;
    private int _idleSlabs;
    private int _slabsInUse;
    private long _slotBytes;
    private long _largeBytesInUse;
    private long _largeBytesIdle;

    /// <summary>Slabs and large arrays that something lies in.</summary>
    public int SlotsInUse => _slotsTaken - _idleSlabs - _largeIdle;

    /// <summary>Bytes of all slabs, large arrays and the page table.</summary>
    public long Bytes => _slotBytes + _pages.Bytes;

    /// <summary>The same without slabs and arrays that nothing lies in: the next blocks use them again.</summary>
    public long BytesInUse => Bytes - _largeBytesIdle - ((long)_idleSlabs * SlabBytes);

    /// <summary>Blocks handed out and not freed.</summary>
    public long Blocks { get; private set; }

    /// <summary>Bytes of slabs in use that lie free for blocks to come.</summary>
    public long FreeBytes { get; private set; }

    /// <summary>A block of at least <paramref name="bytes"/>; its content is whatever was there before.</summary>
    public uint Allocate(int bytes)
    {
        int sizeClass = SizeClasses.Of(bytes);
        Blocks++;
        if (sizeClass >= SizeClasses.FirstLarge)
        {
            return AllocateLarge(sizeClass);
        }

        int number = _partial[sizeClass];
        if (number == 0)
        {
            number = sizeClass < SizeClasses.FirstMedium ? TakePage() : TakeSlab();
            LinkFirst(ref _partial[sizeClass], number);
            FreeBytes += RoomOf(sizeClass);
        }

        FreeBytes -= SizeClasses.BytesOf(sizeClass);
        ref Page page = ref _pages[number - 1];
        uint first = (uint)(number - 1) << PageUnitsLog2;
        uint block;
        if (page.Free != 0)
        {
            block = first + (uint)(page.Free - 1);
            page.Free = Link(block);
        }
        else
        {
            block = first + (uint)page.Untouched;
            page.Untouched += UnitsOf(sizeClass);
        }

        page.Live++;
        if (IsFull(in page, sizeClass))
        {
            Unlink(ref _partial[sizeClass], number);
        }

        return block;
    }

    /// <summary>
    /// Takes a block back. <paramref name="bytes"/> is what it was allocated for, or another length of the same size
    /// class.
    /// </summary>
    public void Free(uint block, int bytes)
    {
        int sizeClass = SizeClasses.Of(bytes);
        Blocks--;
        if (sizeClass >= SizeClasses.FirstLarge)
        {
            FreeLarge(block, sizeClass);
            return;
        }

        FreeBytes += SizeClasses.BytesOf(sizeClass);
        bool small = sizeClass < SizeClasses.FirstMedium;
        int number = 1 + (small ? (int)(block >> PageUnitsLog2) : (int)(block >> SlotUnitsLog2) << PagesPerSlabLog2);
        ref Page page = ref _pages[number - 1];
        bool wasFull = IsFull(in page, sizeClass);
        Link(block) = page.Free;
        page.Free = 1 + (int)(block - ((uint)(number - 1) << PageUnitsLog2));
        page.Live--;
        InvariantException.Require(page.Live >= 0, "a block is freed once");
        if (wasFull)
        {
            LinkFirst(ref _partial[sizeClass], number);
        }

        if (page.Live == 0)
        {
            InvariantException.Require(FreeBytes >= RoomOf(sizeClass), "an empty page is free as a whole");

            // It goes back at once, so that what nothing lies in serves any size: a slab for each size, kept empty,
            // would be most of a small limit.
            page.Free = 0;
            page.Untouched = 0;
            Unlink(ref _partial[sizeClass], number);
            FreeBytes -= RoomOf(sizeClass);
            if (small)
            {
                GivePage(number);
            }
            else
            {
                GiveSlab(number);
            }
        }
    }

    /// <summary>
    /// Bytes of a block, from its start or from <paramref name="offset"/> on. Valid until the block is freed.
    /// </summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    public Span<byte> Span(uint block, int offset, int length) =>
        _slots[block >> SlotUnitsLog2].AsSpan((int)((block & (SlabUnits - 1)) << UnitShift) + offset, length);

    private static int UnitsOf(int sizeClass) => SizeClasses.BytesOf(sizeClass) >> UnitShift;

    /// <summary>Bytes of all blocks of a class that fit a page, or a slab.</summary>
    private static int RoomOf(int sizeClass) =>
        (sizeClass < SizeClasses.FirstMedium ? PageUnits : SlabUnits) / UnitsOf(sizeClass) * SizeClasses.BytesOf(
            sizeClass);

    private static bool IsFull(in Page page, int sizeClass) =>
        page.Free == 0
            && page.Untouched + UnitsOf(sizeClass) > (sizeClass < SizeClasses.FirstMedium ? PageUnits : SlabUnits);

    private static int FirstPageOf(int slot) => 1 + (slot << PagesPerSlabLog2);

    private static int SlotOf(int pageNumber) => (pageNumber - 1) >> PagesPerSlabLog2;

    private ref int Link(uint block) => ref MemoryMarshal.AsRef<int>(Span(block, 0, sizeof(int)));

    private int TakePage()
    {
        if (_freePage == 0)
        {
            int first = TakeSlab();
            for (int i = PagesPerSlab - 1; i >= 0; i--)
            {
                _pages[first - 1 + i] = default;
                LinkFirst(ref _freePage, first + i);
            }

            _pages[first - 1].FreePagesOfSlab = PagesPerSlab;
            FreeBytes += SlabBytes;
        }

        int number = _freePage;
        FreeBytes -= PageBytes;
        Unlink(ref _freePage, number);
        ref int freePages = ref _pages[FirstPageOf(SlotOf(number)) - 1].FreePagesOfSlab;
        InvariantException.Require(freePages is > 0 and <= PagesPerSlab, "a slab with a free page counts it");
        freePages--;
        return number;
    }

    private void GivePage(int number)
    {
        LinkFirst(ref _freePage, number);
        FreeBytes += PageBytes;
        int first = FirstPageOf(SlotOf(number));
        if (++_pages[first - 1].FreePagesOfSlab == PagesPerSlab)
        {
            for (int i = 0; i < PagesPerSlab; i++)
            {
                Unlink(ref _freePage, first + i);
            }

            FreeBytes -= SlabBytes;
            GiveSlab(first);
        }
    }

    /// <summary>A slab that nothing uses; returns the number of its first page, whose record is empty.</summary>
    private int TakeSlab()
    {
        _slabsInUse++;
        int number = _idleSlab;
        if (number != 0)
        {
            _idleSlab = _pages[number - 1].Next;
            _idleSlabs--;
        }
        else
        {
            number = FirstPageOf(TakeSlot(SlabBytes));
        }

        _pages[number - 1] = default;
        return number;
    }

    private void GiveSlab(int number)
    {
        _slabsInUse--;
        _pages[number - 1].Next = _idleSlab;
        _idleSlab = number;
        _idleSlabs++;
        KeepIdleSlabs(Math.Max(IdleSlabsMin, _slabsInUse / 4));
    }

    private void KeepIdleSlabs(int max)
    {
        while (_idleSlabs > max)
        {
            int surplus = _idleSlab;
            _idleSlab = _pages[surplus - 1].Next;
            _idleSlabs--;
            GiveSlot(SlotOf(surplus));
        }
    }

    private uint AllocateLarge(int sizeClass)
    {
        int bytes = SizeClasses.BytesOf(sizeClass);
        ref int idle = ref _idleLarge[sizeClass - SizeClasses.FirstLarge];
        int number = idle;
        if (number != 0)
        {
            idle = _pages[number - 1].Next;
            _largeBytesIdle -= bytes;
            _largeIdle--;
        }
        else
        {
            number = FirstPageOf(TakeSlot(bytes));
        }

        _largeBytesInUse += bytes;
        return (uint)SlotOf(number) << SlotUnitsLog2;
    }

    private void FreeLarge(uint block, int sizeClass)
    {
        int bytes = SizeClasses.BytesOf(sizeClass);
        int number = FirstPageOf((int)(block >> SlotUnitsLog2));
        InvariantException.Require(
            _slots[SlotOf(number)]?.Length == bytes, "a large block has an array of its own size");
        ref int idle = ref _idleLarge[sizeClass - SizeClasses.FirstLarge];
        _pages[number - 1].Next = idle;
        idle = number;
        _largeBytesInUse -= bytes;
        _largeBytesIdle += bytes;
        _largeIdle++;
        KeepIdleLarge(
            Math.Max(Math.Clamp(_largeBytesInUse, IdleLargeBytesMin, IdleLargeBytesUsual), _largeBytesInUse / 2));
    }

    private void KeepIdleLarge(long idleMax)
    {
        // The largest go first: few of them make the room, and they are the least likely to fit the next value.
        for (int i = _idleLarge.Length - 1; _largeBytesIdle > idleMax; i--)
        {
            while (_idleLarge[i] != 0 && _largeBytesIdle > idleMax)
            {
                int surplus = _idleLarge[i];
                _idleLarge[i] = _pages[surplus - 1].Next;
                _largeBytesIdle -= SizeClasses.BytesOf(i + SizeClasses.FirstLarge);
                _largeIdle--;
                GiveSlot(SlotOf(surplus));
            }
        }
    }

    private int TakeSlot(int bytes)
    {
        if (_freeSlot == 0 && _slotCount == _slotsMax)
        {
            // What is kept for later stands in the way of what comes now.
            KeepIdleSlabs(0);
            KeepIdleLarge(0);
        }

        _slotsTaken++;
        int slot;
        if (_freeSlot != 0)
        {
            slot = SlotOf(_freeSlot);
            _freeSlot = _pages[_freeSlot - 1].Next;
        }
        else
        {
            InvariantException.Require(_slotCount < _slotsMax, "the data of one partition fits its slabs");
            if (_slotCount == _slots.Length)
            {
                Array.Resize(ref _slots, _slots.Length * 2);
            }

            slot = _slotCount++;
            for (int i = 0; i < PagesPerSlab; i++)
            {
                _pages[_pages.Add()] = default;
            }
        }

        _slots[slot] = PinnedMemory.Allocate<byte>(bytes);
        _slotBytes += bytes;
        return slot;
    }

    private void GiveSlot(int slot)
    {
        InvariantException.Require(_slots[slot] is not null, "a slot is given back once");
        _slotsTaken--;
        _slotBytes -= _slots[slot]!.Length;
        _slots[slot] = null;
        int number = FirstPageOf(slot);
        _pages[number - 1].Next = _freeSlot;
        _freeSlot = number;
    }

    private void LinkFirst(ref int head, int number)
    {
        ref Page page = ref _pages[number - 1];
        page.Previous = 0;
        page.Next = head;
        if (head != 0)
        {
            _pages[head - 1].Previous = number;
        }

        head = number;
    }

    private void Unlink(ref int head, int number)
    {
        ref Page page = ref _pages[number - 1];
        InvariantException.Require((page.Previous == 0) == (head == number), "the first page of a list is its head");
        if (page.Previous != 0)
        {
            _pages[page.Previous - 1].Next = page.Next;
        }
        else
        {
            head = page.Next;
        }

        if (page.Next != 0)
        {
            _pages[page.Next - 1].Previous = page.Previous;
        }

        page.Next = 0;
        page.Previous = 0;
    }

    /// <summary>
    /// State of one page (or of a medium slab, in the record of its first page). Numbers of pages and units are stored
    /// plus one, so that 0 means none.
    /// </summary>
    private struct Page
    {
        public int Free;
        public int Untouched;
        public int Live;
        public int Next;
        public int Previous;

        /// <summary>
        /// In the record of a slab's first page, while the slab serves small pages: how many of them nothing uses.
        /// </summary>
        public int FreePagesOfSlab;
    }
}

/// <summary>
/// The sizes in which blocks are handed out: steps of 16 bytes up to 128, then eight steps per doubling, so that a
/// block above 128 bytes wastes less than an eighth of itself. Stateless, any thread.
/// </summary>
internal static class SizeClasses
{
    /// <summary>Largest block that is cut from a 64 KiB page: at least eight fit.</summary>
    public const int SmallBytesMax = 8 << 10;

    /// <summary>
    /// Largest block that is cut from a slab of 1 MiB: at least eight fit. Larger ones have an array of their own.
    /// </summary>
    public const int MediumBytesMax = 128 << 10;

    /// <summary>Largest block: a key and a value at the ceiling of the configurable limit fit well.</summary>
    public const int BytesMax = 32 << 20;

    private const int LinearClasses = 8;
    private const int LinearShift = 4;
    private const int LinearBytesLog2 = 7;
    private const int StepsLog2 = 3;

    /// <summary>Number of classes.</summary>
    public static int Count { get; } = Of(BytesMax) + 1;

    /// <summary>First class of medium blocks.</summary>
    public static int FirstMedium { get; } = Of(SmallBytesMax) + 1;

    /// <summary>First class of large blocks.</summary>
    public static int FirstLarge { get; } = Of(MediumBytesMax) + 1;

    /// <summary>The smallest class whose blocks hold <paramref name="bytes"/>.</summary>
    public static int Of(int bytes)
    {
        if (bytes <= LinearClasses << LinearShift)
        {
            return bytes <= 1 << LinearShift ? 0 : (bytes - 1) >> LinearShift;
        }

        int last = bytes - 1;
        int log2 = BitOperations.Log2((uint)last);
        return LinearClasses
            + ((log2 - LinearBytesLog2) << StepsLog2)
            + ((last >> (log2 - StepsLog2)) & ((1 << StepsLog2) - 1));
    }

    /// <summary>Bytes of the blocks of a class; always a multiple of 16.</summary>
    public static int BytesOf(int sizeClass)
    {
        if (sizeClass < LinearClasses)
        {
            return (sizeClass + 1) << LinearShift;
        }

        int above = sizeClass - LinearClasses;
        int log2 = LinearBytesLog2 + (above >> StepsLog2);
        return (1 << log2) + (((above & ((1 << StepsLog2) - 1)) + 1) << (log2 - StepsLog2));
    }
}
