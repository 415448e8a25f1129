using System.Buffers.Binary;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// Replaced revisions of all keys of a partition, bounded per key, by age and by bytes; the oldest go first. Each
/// record is in its key's ring and in one line through all keys in the order of replacement. What is kept depends only
/// on the applied commands, so it is the same on every node. Row 0 is not used. Owned by one <see cref="KeyStore"/>;
/// not thread-safe.
/// </summary>
/// <param name="limits">What is kept.</param>
/// <param name="keys">The rows that have a history.</param>
/// <param name="slabs">Where values lie.</param>
/// <param name="changes">Whether anybody hears of every replaced revision that goes.</param>
/// <param name="beforeChange">Hears of a row before what is kept of it changes.</param>
/// <param name="onEvicted">
/// Hears of a row whose oldest replaced revision is gone, and which one that was: of a deleted key whose history is
/// empty then, and of every key while somebody listens to changes.
/// </param>
internal sealed class HistoryTable(
    StateLimits limits,
    KeyTable keys,
    SlabAllocator slabs,
    ChangeFeed changes,
    Action<Row> beforeChange,
    Action<Row, Revision> onEvicted)
{
    /// <summary>
    /// What a record counts against the byte limit besides its key and value: its row and the rounding of its block.
    /// </summary>
    public const int RecordOverheadBytes = 64;

    /// <summary>
    /// Records that one command drops because the bytes have run out: bounded work. A large value may need the room of
    /// many small ones, whose rest goes with the next commands.
    /// </summary>
    public const int DroppedPerCommand = 64;

    private readonly ChunkedTable<HistoryRecord> _records = new();
    private int _free;
    private int _earliest;
    private int _latest;
    private int _mayDrop;

    /// <summary>The number that the next record gets.</summary>
    public long NextNumber { get; private set; } = 1;

    /// <summary>Number of the earliest record that is kept; the next number when there is none.</summary>
    public long FirstNumber => _earliest == 0 ? NextNumber : _records[_earliest].Number;

    /// <summary>Sum of the digests of all records.</summary>
    public ulong Digest { get; private set; }

    /// <summary>Records kept.</summary>
    public long Count { get; private set; }

    /// <summary>What the records count against the limit.</summary>
    public long CountedBytes { get; private set; }

    /// <summary>Replaced revisions that a key's row can count, one that is about to go among them.</summary>
    public const int PerKeyMax = ushort.MaxValue;

    /// <summary>Bytes of the table; the blocks are counted by the slabs.</summary>
    public long Bytes => _records.Bytes;

    public ref readonly HistoryRecord this[int index] => ref _records[index];

    /// <summary>The value of a record, valid until the next change.</summary>
    public ReadOnlySpan<byte> Value(in HistoryRecord record) =>
        record.Block == SlabAllocator.None
            ? default
            : slabs.Span(record.Block, keys[record.Key].KeyLength, record.ValueLength);

    /// <summary>
    /// True when the present revision of a key would be kept if it were replaced now. Not while the bytes are more than
    /// a quarter over the limit: large values may come faster than small ones make room.
    /// </summary>
    public bool Keeps(in KeyEntry entry) =>
        limits.HistoryPerKey > 0
            && !entry.Revision.IsNone
            && Cost(entry.KeyLength, entry.ValueLength) <= limits.HistoryBytes
            && CountedBytes <= limits.HistoryBytes + (limits.HistoryBytes / 4);

    /// <summary>
    /// Keeps the present revision of a key, which is about to be replaced, and drops what is then beyond the limits, in
    /// slices. The record takes over the key's block unless the revision is a deletion. Only for a revision that
    /// <see cref="Keeps"/>.
    /// </summary>
    public void Push(Row key, ClusterTime time)
    {
        ref KeyEntry entry = ref keys[key];
        int index = TakeRow();
        ref HistoryRecord record = ref _records[index];
        record = new HistoryRecord
        {
            Revision = entry.Revision,
            ReplacedAt = time,
            Number = NextNumber++,
            Digest = entry.Digest,
            Key = key,
            Block = entry.IsDeleted ? SlabAllocator.None : entry.Block,
            ValueLength = entry.ValueLength,
            Flags = entry.Flags,
            Earlier = _latest,
        };
        if (_latest != 0)
        {
            InvariantException.Require(
                _records[_latest].Number < record.Number, "revisions are replaced in the order of their numbers");
            _records[_latest].Later = index;
        }
        else
        {
            _earliest = index;
        }

        _latest = index;
        Digest = unchecked(Digest + StateDigest.OfRecord(in record));
        LinkToKey(ref entry, index);
        Count++;
        CountedBytes += Cost(entry.KeyLength, entry.ValueLength);
        if (entry.HistoryCount > Math.Min(limits.HistoryPerKey, PerKeyMax - 1))
        {
            Evict(_records[entry.NewestHistory].Newer);
        }

        DropBeyondLimit();
    }

    /// <summary>
    /// Before each command: drops what earlier ones have left beyond the limit of bytes. A command drops
    /// <see cref="DroppedPerCommand"/> records for want of room in all.
    /// </summary>
    public void BeginCommand()
    {
        _mayDrop = DroppedPerCommand;
        DropBeyondLimit();
    }

    /// <summary>
    /// Adds a record to its key's ring, as the newest. For a state that is being loaded, whose order over all keys
    /// <see cref="FinishLoading"/> makes.
    /// </summary>
    public void Load(Row key, in HistoryRecord loaded)
    {
        int index = TakeRow();
        _records[index] = loaded;
        ref KeyEntry entry = ref keys[key];
        LinkToKey(ref entry, index);
        Digest = unchecked(Digest + StateDigest.OfRecord(in _records[index]));
        Count++;
        CountedBytes += Cost(entry.KeyLength, loaded.ValueLength);
    }

    /// <summary>Puts what was loaded in the order of replacement.</summary>
    public void FinishLoading(long nextNumber)
    {
        NextNumber = nextNumber;
        int[] order = new int[Count];
        for (int i = 0; i < order.Length; i++)
        {
            order[i] = i + 1;
        }

        Array.Sort(order, (a, b) => _records[a].Number.CompareTo(_records[b].Number));
        foreach (int index in order)
        {
            ref HistoryRecord record = ref _records[index];
            record.Earlier = _latest;
            if (_latest != 0)
            {
                _records[_latest].Later = index;
            }
            else
            {
                _earliest = index;
            }

            _latest = index;
        }
    }

    /// <summary>True when the earliest record is older than the limit.</summary>
    public bool HasAged(ClusterTime time) =>
        _earliest != 0 && time - _records[_earliest].ReplacedAt > limits.HistoryAgeMs;

    /// <summary>
    /// Drops at most <paramref name="countMax"/> records that are older than the limit; called with every command, so
    /// that no call has much to do.
    /// </summary>
    public void EvictAged(ClusterTime time, int countMax)
    {
        while (countMax-- > 0 && HasAged(time))
        {
            Evict(_earliest);
        }
    }

    /// <summary>Drops everything that is kept of a key.</summary>
    public void Forget(Row key)
    {
        while (keys[key].HistoryCount > 0)
        {
            Evict(keys[key].NewestHistory);
        }
    }

    /// <summary>The record of one revision of a key; 0 when it is not kept.</summary>
    public int Find(in KeyEntry entry, Revision revision)
    {
        int index = entry.NewestHistory;
        for (int left = entry.HistoryCount; left > 0; left--)
        {
            ref HistoryRecord record = ref _records[index];
            if (record.Revision <= revision)
            {
                return record.Revision == revision ? index : 0;
            }

            index = record.Older;
        }

        return 0;
    }

    /// <summary>Asks for the newest replaced revision of a key.</summary>
    public void PrefetchNewest(Row key)
    {
        if (!key.IsNone && keys[key].NewestHistory != 0)
        {
            CacheLines.Prefetch(in _records[keys[key].NewestHistory]);
        }
    }

    /// <summary>
    /// Asks for the earliest records, which the next ones push out: their keys' rows, their neighbours and their
    /// blocks, which are freed and used again.
    /// </summary>
    public void PrefetchEarliest(int count, int linesMax)
    {
        int index = _earliest;
        for (int left = count; left > 0 && index != 0; left--)
        {
            ref readonly HistoryRecord record = ref _records[index];
            CacheLines.Prefetch(in keys[record.Key]);
            CacheLines.Prefetch(in _records[record.Newer]);
            if (record.Block != SlabAllocator.None)
            {
                CacheLines.Prefetch(slabs.Span(record.Block, 0, record.ValueLength), linesMax);
            }

            index = record.Later;
        }
    }

    private void DropBeyondLimit()
    {
        while (CountedBytes > limits.HistoryBytes && _mayDrop > 0)
        {
            InvariantException.Require(_earliest != 0, "bytes that count are those of a record");
            _mayDrop--;
            Evict(_earliest);
        }
    }

    private static long Cost(int keyLength, int valueLength) => RecordOverheadBytes + (long)keyLength + valueLength;

    private int TakeRow()
    {
        int index = _free;
        if (index != 0)
        {
            _free = _records[index].Older;
            return index;
        }

        if (_records.Count == 0)
        {
            _records.Add();
        }

        return _records.Add();
    }

    private void LinkToKey(ref KeyEntry entry, int index)
    {
        ref HistoryRecord record = ref _records[index];
        if (entry.NewestHistory == 0)
        {
            record.Newer = index;
            record.Older = index;
        }
        else
        {
            ref HistoryRecord newest = ref _records[entry.NewestHistory];
            record.Older = entry.NewestHistory;
            record.Newer = newest.Newer;
            _records[newest.Newer].Older = index;
            newest.Newer = index;
        }

        entry.NewestHistory = index;
        entry.HistoryCount = checked((ushort)(entry.HistoryCount + 1));
    }

    private void Evict(int index)
    {
        ref HistoryRecord record = ref _records[index];
        beforeChange(record.Key);
        ref KeyEntry entry = ref keys[record.Key];
        InvariantException.Require(entry.HistoryCount > 0 && Count > 0, "a record that is dropped is its key's");
        if (--entry.HistoryCount == 0)
        {
            entry.NewestHistory = 0;
        }
        else
        {
            InvariantException.Require(
                _records[record.Newer].Older == index && _records[record.Older].Newer == index,
                "a record's neighbours in its key's ring name it");
            _records[record.Newer].Older = record.Older;
            _records[record.Older].Newer = record.Newer;
            if (entry.NewestHistory == index)
            {
                entry.NewestHistory = record.Older;
            }
        }

        Unline(index, in record);
        Digest = unchecked(Digest - StateDigest.OfRecord(in record));
        Count--;
        CountedBytes -= Cost(entry.KeyLength, record.ValueLength);
        InvariantException.Require(CountedBytes >= 0 && (Count > 0 || Digest == 0), "an empty history counts nothing");
        if (record.Block != SlabAllocator.None)
        {
            slabs.Free(record.Block, entry.KeyLength + record.ValueLength);
        }

        record.Older = _free;
        _free = index;
        if (changes.IsOn || entry is { HistoryCount: 0, IsDeleted: true })
        {
            onEvicted(record.Key, record.Revision);
        }
    }

    private void Unline(int index, in HistoryRecord record)
    {
        if (record.Earlier != 0)
        {
            InvariantException.Require(_records[record.Earlier].Later == index, "the record before names this one");
            _records[record.Earlier].Later = record.Later;
        }
        else
        {
            _earliest = record.Later;
        }

        if (record.Later != 0)
        {
            InvariantException.Require(_records[record.Later].Earlier == index, "the record after names this one");
            _records[record.Later].Earlier = record.Earlier;
        }
        else
        {
            _latest = record.Earlier;
        }
    }
}

/// <summary>One replaced revision of a key: 64 bytes. A row of <see cref="HistoryTable"/>, owned by it.</summary>
internal struct HistoryRecord
{
    public Revision Revision;

    /// <summary>Cluster time at which it was replaced.</summary>
    public ClusterTime ReplacedAt;

    /// <summary>
    /// Place in the order of replacement over all keys of the partition, from 1 on; the same on every node.
    /// </summary>
    public long Number;

    /// <summary>Digest of the revision, taken over from the key's row.</summary>
    public ulong Digest;

    /// <summary>Row of the key.</summary>
    public Row Key;

    /// <summary>The block that holds the key's bytes and then this revision's value; none for a deletion.</summary>
    public uint Block;

    public int ValueLength;

    /// <summary>The key's next newer record; the newest one names the oldest here, which closes the ring.</summary>
    public int Newer;

    /// <summary>
    /// The key's next older record; the oldest one names the newest. In an unused row: the next unused row.
    /// </summary>
    public int Older;

    /// <summary>The record of any key that was replaced next; 0 at the end.</summary>
    public int Later;

    /// <summary>The record of any key that was replaced before; 0 at the start.</summary>
    public int Earlier;

    public KeyEntryFlags Flags;
}

/// <summary>Whether the revision that a write replaces is kept, and the cluster time that is noted with it.</summary>
internal readonly record struct HistoryChoice(bool IsKept, ClusterTime Time)
{
    /// <summary>What is replaced is forgotten.</summary>
    public static HistoryChoice NotKept => default;

    public static HistoryChoice KeptAt(ClusterTime time) => new(true, time);
}

/// <summary>
/// Deleted keys without a value or history, and what is left of those that were forgotten: one revision for all
/// of them. A key without a row begins above it, so that no revision of a name ever comes again. Which keys wait
/// follows from the rows, so it is not stored. Owned by one <see cref="KeyStore"/>; not thread-safe.
/// </summary>
internal sealed class ForgottenKeys(KeyStore store, StateLimits limits)
{
    private static readonly byte[] s_firstRevisionName = SystemRowKind.FirstRevision.ToName();

    /// <summary>The lowest row goes first, so that nodes which were loaded and nodes which were not agree.</summary>
    private readonly FreeRows _waiting = new();

    /// <summary>
    /// The revision that a key without a row gets when it is written: 1 but in later epochs of ephemeral groups, and
    /// above that of every key that was forgotten or had to go.
    /// </summary>
    public Revision FirstRevision { get; private set; } = limits.FirstRevision;

    /// <summary>Keys that wait to be forgotten.</summary>
    public int Waiting => _waiting.Count;

    /// <summary>A deleted key has no value and no history left.</summary>
    public void Add(Row key) => _waiting.Add(key);

    /// <summary>A deleted key of which nothing is kept is written again, or gone.</summary>
    public void Remove(Row key) => _waiting.Remove(key);

    /// <summary>Forgets at most this many of the waiting keys.</summary>
    public void Forget(int countMax)
    {
        while (countMax-- > 0 && _waiting.First is { IsNone: false } key)
        {
            InvariantException.Require(
                store.Keys[key] is { IsDeleted: true, HistoryCount: 0 }, "only deleted keys without history wait");
            store.Forget(key);
        }
    }

    /// <summary>A key is gone that had this revision.</summary>
    public void Raise(Revision revision)
    {
        if (revision < FirstRevision)
        {
            return;
        }

        FirstRevision = revision.Next();
        Span<byte> value = stackalloc byte[sizeof(long)];
        BinaryPrimitives.WriteInt64LittleEndian(value, FirstRevision.Value);
        Row row = store.System.Find(s_firstRevisionName);
        if (row.IsNone)
        {
            store.System.Create(SystemRowKind.FirstRevision, s_firstRevisionName, value);
        }
        else
        {
            store.System.Rewrite(row, value);
        }
    }

    /// <summary>Everything was loaded.</summary>
    public void FinishLoading()
    {
        Row row = store.System.Find(s_firstRevisionName);
        FirstRevision = row.IsNone
            ? FirstRevision
            : new Revision(BinaryPrimitives.ReadInt64LittleEndian(store.Keys.Value(in store.Keys[row])));
        for (Row key = Row.First; key.Value <= store.Keys.Count; key = key.Next)
        {
            if (store.Keys[key] is { IsDeleted: true, HistoryCount: 0 })
            {
                _waiting.Add(key);
            }
        }
    }
}
