using System.Runtime.CompilerServices;
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
    private readonly ChunkedTable<int> _buckets = new();
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
    public int FirstFree => _free.First;

    /// <summary>Bytes of rows and buckets.</summary>
    public long Bytes => _entries.Bytes + _buckets.Bytes;

    /// <summary>The row of a key. The reference stays good for the table's life.</summary>
    public ref KeyEntry this[int index]
    {
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        get => ref _entries[index];
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
    public int Find(ReadOnlySpan<byte> key, uint hash)
    {
        int index = _buckets[BucketOf(hash)];
        while (index != 0)
        {
            ref KeyEntry entry = ref _entries[index];
            if (entry.Hash == hash && entry.KeyLength == key.Length && Key(in entry).SequenceEqual(key))
            {
                return index;
            }

            index = entry.Next;
        }

        return 0;
    }

    /// <summary>Asks for the bucket of a hash.</summary>
    public void PrefetchBucket(uint hash) => CacheLines.Prefetch(in _buckets[BucketOf(hash)]);

    /// <summary>Asks for the first row of a hash's bucket and returns its index, 0 when there is none.</summary>
    public int PrefetchRow(uint hash)
    {
        int index = _buckets[BucketOf(hash)];
        CacheLines.Prefetch(in _entries[index]);
        return index;
    }

    /// <summary>Asks for the first lines of a row's key and value, and for the next row of its bucket.</summary>
    public void PrefetchBlock(int index, int linesMax)
    {
        if (index != 0 && !_entries[index].IsFree)
        {
            ref readonly KeyEntry entry = ref _entries[index];
            CacheLines.Prefetch(_slabs.Span(entry.Block, 0, entry.BlockLength), linesMax);
            CacheLines.Prefetch(in _entries[entry.Next]);
        }
    }

    /// <summary>
    /// Adds a row for a key that has none, at revision 0, with a block for the key and <paramref name="valueLength"/>
    /// bytes of value, which the caller writes.
    /// </summary>
    public int Insert(ReadOnlySpan<byte> key, uint hash, int valueLength)
    {
        int index = FirstFree;
        if (index != 0)
        {
            _free.Remove(index);
            InvariantException.Require(_entries[index].IsFree, "a row that is used again stands for nothing");
        }
        else
        {
            index = _entries.Add();
        }

        Fill(index, key, hash, valueLength);
        return index;
    }

    /// <summary>Takes a key's row and block away; the row is used again for a key to come.</summary>
    public void Free(int index)
    {
        ref KeyEntry entry = ref _entries[index];
        InvariantException.Require(
            entry is { IsFree: false, ExpirySlot: 0, HistoryCount: 0 }, "a row goes after its time and history");
        ref int link = ref _buckets[BucketOf(entry.Hash)];
        while (link != index)
        {
            InvariantException.Require(link != 0, "a row is in the bucket of its hash");
            link = ref _entries[link].Next;
        }

        link = entry.Next;
        _slabs.Free(entry.Block, entry.BlockLength);
        AddFree(index);
    }

    /// <summary>
    /// Gives a row's block another length for the value; the key's bytes and as many of the value's as fit are kept,
    /// the rest is undefined.
    /// </summary>
    public void Resize(int index, int valueLength)
    {
        ref KeyEntry entry = ref _entries[index];
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
    public bool TryInsertAt(int index, ReadOnlySpan<byte> key, uint hash, int valueLength)
    {
        if (!TryReach(index))
        {
            return false;
        }

        Fill(index, key, hash, valueLength);
        return true;
    }

    /// <summary>The same for a row that stands for nothing.</summary>
    public bool TryFreeAt(int index)
    {
        if (!TryReach(index))
        {
            return false;
        }

        AddFree(index);
        return true;
    }

    private bool TryReach(int index)
    {
        while (_entries.Count <= index)
        {
            _entries.Add();
        }

        return _entries[index].KeyLength == 0 && !_entries[index].IsFree;
    }

    private void AddFree(int index)
    {
        _entries[index] = new KeyEntry { Flags = KeyEntryFlags.Free, Block = SlabAllocator.None };
        _free.Add(index);
    }

    private void Fill(int index, ReadOnlySpan<byte> key, uint hash, int valueLength)
    {
        ref int bucket = ref _buckets[BucketOf(hash)];
        ref KeyEntry entry = ref _entries[index];
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
        int stay = 0;
        int move = 0;
        int index = _buckets[split];
        while (index != 0)
        {
            ref KeyEntry entry = ref _entries[index];
            int next = entry.Next;
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
