using System.Numerics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// All keys of a partition by name: rows of structs, found by linear hashing (Litwin 1980), which splits one bucket per
/// inserted key and so never rehashes everything at once. The hash has a secret key, so that chains stay short whatever
/// names clients choose. Row 0 is not used; 0 means none. Owned by one <see cref="KeyStore"/>; not thread-safe.
/// </summary>
internal sealed class KeyTable
{
    /// <summary>Bytes of a row.</summary>
    public const int RowBytes = 48;

    private const int InitialBucketsLog2 = 8;

    private readonly SlabAllocator _slabs;
    private readonly ChunkedTable<KeyEntry> _entries = new();
    private readonly ChunkedTable<Row> _buckets = new();
    private readonly FreeRows _free = new();
    private readonly HashSecret _secret;

    /// <summary>
    /// Buckets below 2^level have been split in this round; hashes are masked with one bit more where that hits an
    /// existing bucket.
    /// </summary>
    private uint _mask = (1u << InitialBucketsLog2) - 1;

    public KeyTable(SlabAllocator slabs, HashSecret secret)
    {
        _slabs = slabs;
        _secret = secret;
        _entries.Add();
        for (int i = 0; i < 1 << InitialBucketsLog2; i++)
        {
            _buckets.Add();
        }
    }

    /// <summary>Rows, free ones included; the last one's index is this number.</summary>
    public int Count => _entries.Count - 1;

    /// <summary>Rows that stand for nothing.</summary>
    public int FreeCount => _free.Count;

    /// <summary>The row that the next key gets, where one is free; 0 when a new row is added.</summary>
    public Row FirstFree => _free.First;

    /// <summary>Bytes of rows and buckets.</summary>
    public long Bytes => _entries.Bytes + _buckets.Bytes;

    /// <summary>The row of a key. The reference stays good for the table's life.</summary>
    public ref KeyEntry this[Row row]
    {
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        get => ref _entries[row.Value];
    }

    /// <summary>
    /// The part of the key's hash that rows keep. It depends on the process's secret, so nothing that is replicated or
    /// stored may depend on it.
    /// </summary>
    public uint HashOf(ReadOnlySpan<byte> key) => (uint)SipHash13.Hash(key, in _secret);

    /// <summary>The same for a key whose hash may be known already.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    public uint HashOf(ReadOnlySpan<byte> key, KnownHash known) => known.IsKnown ? known.Value : HashOf(key);

    /// <summary>The key's bytes, valid until its block changes.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    public ReadOnlySpan<byte> Key(in KeyEntry entry) => _slabs.Span(entry.Block, 0, entry.KeyLength);

    /// <summary>The value's bytes, to be written by the owner.</summary>
    public Span<byte> Writable(in KeyEntry entry) => _slabs.Span(entry.Block, entry.KeyLength, entry.ValueLength);

    /// <summary>The value's bytes, valid until its block changes.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    public ReadOnlySpan<byte> Value(in KeyEntry entry) => _slabs.Span(entry.Block, entry.KeyLength, entry.ValueLength);

    /// <summary>Index of the row of <paramref name="key"/>, 0 when it was never written.</summary>
    public Row Find(ReadOnlySpan<byte> key, uint hash)
    {
        Row index = _buckets[BucketOf(hash)];
        while (!index.IsNone)
        {
            ref KeyEntry entry = ref _entries[index.Value];
            if (entry.Hash == hash && entry.KeyLength == key.Length && Key(in entry).SequenceEqual(key))
            {
                return index;
            }

            index = entry.Next;
        }

        return Row.None;
    }

    /// <summary>Asks for the bucket of a hash.</summary>
    public void PrefetchBucket(uint hash) => CacheLines.Prefetch(in _buckets[BucketOf(hash)]);

    /// <summary>Asks for the first row of a hash's bucket and returns its index, 0 when there is none.</summary>
    public Row PrefetchRow(uint hash)
    {
        Row index = _buckets[BucketOf(hash)];
        CacheLines.Prefetch(in _entries[index.Value]);
        return index;
    }

    /// <summary>Asks for the first lines of a row's key and value, and for the next row of its bucket.</summary>
    public void PrefetchBlock(Row index, int linesMax)
    {
        if (!index.IsNone && !_entries[index.Value].IsFree)
        {
            ref readonly KeyEntry entry = ref _entries[index.Value];
            CacheLines.Prefetch(_slabs.Span(entry.Block, 0, entry.BlockLength), linesMax);
            CacheLines.Prefetch(in _entries[entry.Next.Value]);
        }
    }

    /// <summary>
    /// Adds a row for a key that has none, at revision 0, with a block for the key and <paramref name="valueLength"/>
    /// bytes of value, which the caller writes.
    /// </summary>
    public Row Insert(ReadOnlySpan<byte> key, uint hash, int valueLength)
    {
        Row index = FirstFree;
        if (!index.IsNone)
        {
            _free.Remove(index);
            InvariantException.Require(_entries[index.Value].IsFree, "a row that is used again stands for nothing");
        }
        else
        {
            index = new Row(_entries.Add());
        }

        Fill(index, key, hash, valueLength);
        return index;
    }

    /// <summary>Takes a key's row and block away; the row is used again for a key to come.</summary>
    public void Free(Row index)
    {
        ref KeyEntry entry = ref _entries[index.Value];
        InvariantException.Require(
            entry is { IsFree: false, ExpirySlot: 0, HistoryCount: 0 }, "a row goes after its time and history");
        ref Row link = ref _buckets[BucketOf(entry.Hash)];
        while (link != index)
        {
            InvariantException.Require(!link.IsNone, "a row is in the bucket of its hash");
            link = ref _entries[link.Value].Next;
        }

        link = entry.Next;
        _slabs.Free(entry.Block, entry.BlockLength);
        AddFree(index);
    }

    /// <summary>
    /// Gives a row's block another length for the value; the key's bytes and as many of the value's as fit are kept,
    /// the rest is undefined.
    /// </summary>
    public void Resize(Row index, int valueLength)
    {
        ref KeyEntry entry = ref _entries[index.Value];
        if (SizeClasses.Of(entry.KeyLength + valueLength) != SizeClasses.Of(entry.BlockLength))
        {
            uint old = entry.Block;
            int kept = entry.KeyLength + Math.Min(entry.ValueLength, valueLength);
            entry.Block = _slabs.Allocate(entry.KeyLength + valueLength);
            _slabs.Span(old, 0, kept).CopyTo(_slabs.Span(entry.Block, 0, kept));
            _slabs.Free(old, entry.BlockLength);
        }

        entry.ValueLength = valueLength;
    }

    /// <summary>
    /// The same as <see cref="Insert"/> in a given row; rows up to it that nobody filled are not to be used until
    /// somebody does. False when the row is taken.
    /// </summary>
    public bool TryInsertAt(Row index, ReadOnlySpan<byte> key, uint hash, int valueLength)
    {
        if (!TryReach(index))
        {
            return false;
        }

        Fill(index, key, hash, valueLength);
        return true;
    }

    /// <summary>The same for a row that stands for nothing.</summary>
    public bool TryFreeAt(Row index)
    {
        if (!TryReach(index))
        {
            return false;
        }

        AddFree(index);
        return true;
    }

    private bool TryReach(Row index)
    {
        while (_entries.Count <= index.Value)
        {
            _entries.Add();
        }

        return _entries[index.Value].KeyLength == 0 && !_entries[index.Value].IsFree;
    }

    private void AddFree(Row index)
    {
        _entries[index.Value] = new KeyEntry { Flags = KeyEntryFlags.Free, Block = SlabAllocator.None };
        _free.Add(index);
    }

    private void Fill(Row index, ReadOnlySpan<byte> key, uint hash, int valueLength)
    {
        ref Row bucket = ref _buckets[BucketOf(hash)];
        ref KeyEntry entry = ref _entries[index.Value];
        entry = new KeyEntry
        {
            Hash = hash,
            Next = bucket,
            Block = _slabs.Allocate(key.Length + valueLength),
            KeyLength = checked((ushort)key.Length),
            ValueLength = valueLength,
        };
        key.CopyTo(_slabs.Span(entry.Block, 0, key.Length));
        bucket = index;

        // At most three keys per four buckets on average: a chain is short and most lookups touch one row.
        while ((long)Count * 4 > (long)_buckets.Count * 3)
        {
            Split();
        }
    }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private int BucketOf(uint hash)
    {
        uint bucket = hash & ((_mask << 1) | 1);
        return (int)(bucket < (uint)_buckets.Count ? bucket : hash & _mask);
    }

    /// <summary>
    /// Adds one bucket and moves those keys to it that the next bit of the hash tells apart from their neighbours.
    /// </summary>
    private void Split()
    {
        int added = _buckets.Add();
        uint bit = _mask + 1;
        int split = added - (int)bit;
        Row stay = Row.None;
        Row move = Row.None;
        Row index = _buckets[split];
        while (!index.IsNone)
        {
            ref KeyEntry entry = ref _entries[index.Value];
            Row next = entry.Next;
            if ((entry.Hash & bit) == 0)
            {
                entry.Next = stay;
                stay = index;
            }
            else
            {
                entry.Next = move;
                move = index;
            }

            index = next;
        }

        _buckets[split] = stay;
        _buckets[added] = move;
        if ((uint)_buckets.Count == bit << 1)
        {
            _mask = (_mask << 1) | 1;
        }
    }
}

/// <summary>
/// The hash of a command's key, where it is known from looking ahead; the default: it is not. A value.
/// </summary>
/// <param name="Value">What <see cref="KeyTable.HashOf(ReadOnlySpan{byte})"/> gives for the key.</param>
/// <param name="IsKnown">False: <paramref name="Value"/> means nothing.</param>
internal readonly record struct KnownHash(uint Value, bool IsKnown = true);

/// <summary>
/// One key that was ever written: 48 bytes. A deleted key keeps its row, because its revisions go on where they
/// stopped. A row of <see cref="KeyTable"/>, owned by it.
/// </summary>
internal struct KeyEntry
{
    /// <summary>Revision of the last write, deletions included.</summary>
    public Revision Revision;

    /// <summary>Digest of the last write (<see cref="StateDigest.OfRevision"/>).</summary>
    public ulong Digest;

    /// <summary>Lower half of the key's hash; saves most comparisons of bytes.</summary>
    public uint Hash;

    /// <summary>Next row of the same hash bucket; 0 ends the chain.</summary>
    public Row Next;

    /// <summary>The block that holds the key's bytes and then the value's.</summary>
    public uint Block;

    public int ValueLength;

    /// <summary>Place in the expiry heap; 0 when the key does not expire.</summary>
    public int ExpirySlot;

    /// <summary>Newest replaced revision in the history table; 0 when none is kept.</summary>
    public int NewestHistory;

    /// <summary>Replaced revisions that are kept, <see cref="HistoryTable.PerKeyMax"/> at most.</summary>
    public ushort HistoryCount;

    public ushort KeyLength;

    /// <summary>Who wrote a key that exists last, as far as quotas go; 0 for nobody, and for other rows.</summary>
    public ushort Account;

    public KeyEntryFlags Flags;

    /// <summary>The key is deleted; only its name and revision are kept.</summary>
    public readonly bool IsDeleted => (Flags & KeyEntryFlags.Deleted) != 0;

    /// <summary>The value is null, not empty.</summary>
    public readonly bool IsNull => (Flags & KeyEntryFlags.Null) != 0;

    /// <summary>The row stands for nothing.</summary>
    public readonly bool IsFree => (Flags & KeyEntryFlags.Free) != 0;

    /// <summary>The row is a client session.</summary>
    public readonly bool IsSession => (Flags & KeyEntryFlags.Session) != 0;

    /// <summary>The row is a claim for a lock.</summary>
    public readonly bool IsClaim => (Flags & KeyEntryFlags.Claim) != 0;

    /// <summary>The row is a claim that holds its lock.</summary>
    public readonly bool IsHeld => (Flags & KeyEntryFlags.Held) != 0;

    /// <summary>Length for which <see cref="Block"/> was allocated.</summary>
    public readonly int BlockLength => KeyLength + ValueLength;
}

/// <summary>What a revision of a key is besides its bytes.</summary>
[Flags]
internal enum KeyEntryFlags : byte
{
    None = 0,

    /// <summary>The revision is a deletion; it has no value.</summary>
    Deleted = 1,

    /// <summary>The value is null, not empty.</summary>
    Null = 2,

    /// <summary>The row stands for nothing and is used again; it has neither name nor value.</summary>
    Free = 4,

    /// <summary>The row is the system's own and no key: its name begins with a byte that no key does.</summary>
    System = 8,

    /// <summary>
    /// With <see cref="System"/>: the value is a client session (<see cref="Sessions.SessionWindow"/>), which is
    /// changed in place.
    /// </summary>
    Session = 16,

    /// <summary>With <see cref="System"/>: a claim for a lock (<see cref="Locks.ClaimRow"/>).</summary>
    Claim = 32,

    /// <summary>With <see cref="Claim"/>: it holds the lock; others wait for it.</summary>
    Held = 64,
}

/// <summary>
/// A set of row numbers, one bit each. It grows to what is added and keeps its room when it is cleared. Owned by one
/// store or view; not thread-safe.
/// </summary>
internal sealed class RowSet
{
    private const int WordShift = 6;

    private ulong[] _words = [];

    /// <summary>Rows in the set.</summary>
    public int Count { get; private set; }

    public bool Contains(Row row) =>
        row.Value >> WordShift < _words.Length && (_words[row.Value >> WordShift] & Bit(row)) != 0;

    public void Add(Row row)
    {
        if (row.Value >> WordShift >= _words.Length)
        {
            Array.Resize(ref _words, Math.Max((row.Value >> WordShift) + 1, 2 * _words.Length));
        }

        ref ulong word = ref _words[row.Value >> WordShift];
        Count += (word & Bit(row)) == 0 ? 1 : 0;
        word |= Bit(row);
    }

    /// <summary>Adds all rows from 1 to <paramref name="last"/>.</summary>
    public void AddAll(Row last)
    {
        Clear();
        if (_words.Length <= last.Value >> WordShift)
        {
            _words = new ulong[(last.Value >> WordShift) + 1];
        }

        int whole = (last.Value + 1) >> WordShift;
        _words.AsSpan(0, whole).Fill(ulong.MaxValue);
        if ((last.Next.Value & 63) != 0)
        {
            _words[whole] = Bit(last.Next) - 1;
        }

        _words[0] &= ~1UL;
        Count = last.Value;
    }

    /// <summary>True when the row was in the set.</summary>
    public bool Remove(Row row)
    {
        if (!Contains(row))
        {
            return false;
        }

        _words[row.Value >> WordShift] &= ~Bit(row);
        Count--;
        return true;
    }

    /// <summary>The first row from <paramref name="from"/> on; 0 when there is none.</summary>
    public Row Next(Row from)
    {
        int index = from.Value >> WordShift;
        if (Count == 0 || index >= _words.Length)
        {
            return Row.None;
        }

        ulong word = _words[index] & (ulong.MaxValue << (from.Value & 63));
        while (word == 0)
        {
            if (++index == _words.Length)
            {
                return Row.None;
            }

            word = _words[index];
        }

        return new Row((index << WordShift) + BitOperations.TrailingZeroCount(word));
    }

    /// <summary>Takes the rows of another set over and leaves that one empty, with the room of this one.</summary>
    public void TakeFrom(RowSet other)
    {
        Clear();
        (_words, other._words) = (other._words, _words);
        (Count, other.Count) = (other.Count, 0);
    }

    public void Clear()
    {
        if (Count > 0)
        {
            Array.Clear(_words);
            Count = 0;
        }
    }

    private static ulong Bit(Row row) => 1UL << (row.Value & 63);
}

/// <summary>
/// A growing table of structs in chunks of equal size. Growing adds one chunk and never moves a row, so it costs the
/// same at a million rows as at ten, and a reference to a row stays good. The collector sees one object without
/// references per chunk. Owned by the state of one partition; not thread-safe.
/// </summary>
internal sealed class ChunkedTable<T>
    where T : unmanaged
{
    /// <summary>
    /// Rows of one chunk: small enough that a partition with few keys costs little, large enough that a million keys
    /// are a few hundred objects.
    /// </summary>
    public const int ChunkRows = 1 << ChunkShift;

    private const int ChunkShift = 12;

    private T[][] _chunks = [];
    private int _chunkCount;

    /// <summary>Rows that were ever taken: those behind hold anything.</summary>
    private int _taken;

    /// <summary>Rows in use; indexes are 0 to Count - 1.</summary>
    public int Count { get; private set; }

    /// <summary>Bytes of all chunks.</summary>
    public long Bytes => (long)_chunkCount * ChunkRows * Unsafe.SizeOf<T>();

    // The directory's bounds check stays; inside a chunk the masked index is below its length by construction.
    public ref T this[int index]
    {
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        get => ref Unsafe.Add(
            ref MemoryMarshal.GetArrayDataReference(_chunks[index >> ChunkShift]), index & (ChunkRows - 1));
    }

    /// <summary>Takes the next row and returns its index. The row holds zeros.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    public int Add()
    {
        if (Count == _chunkCount << ChunkShift)
        {
            AddChunk();
        }

        if (Count == _taken)
        {
            _taken++;
            this[Count] = default;
        }

        return Count++;
    }

    private void AddChunk()
    {
        if (_chunkCount == _chunks.Length)
        {
            Array.Resize(ref _chunks, Math.Max(4, _chunks.Length * 2));
        }

        // Rows are cleared as they are taken: a state of a few keys does not pay for the clearing of whole chunks.
        // The first chunk is ordinary memory: a small table may not live long.
        _chunks[_chunkCount] = _chunkCount == 0
            ? GC.AllocateUninitializedArray<T>(ChunkRows)
            : PinnedMemory.Allocate<T>(ChunkRows);
        _chunkCount++;
    }
}
