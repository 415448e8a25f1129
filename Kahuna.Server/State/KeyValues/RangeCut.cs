using System.Runtime.InteropServices;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.State.KeyValues;

/// <summary>
/// A range of keys as it was at one moment, while commands go on being applied: before a key of the range changes for
/// the first time, the cut keeps its pre-image. It ends by itself when the pre-images pass their bound. A row outside
/// of the range costs a comparison. Made by <see cref="StateMachine"/> and used by its owner; not thread-safe.
/// </summary>
internal sealed class RangeCut : IRowObserver, IDisposable
{
    /// <summary>Counted for each row that has changed, besides its value: its place in the table.</summary>
    private const int RowBytes = 96;

    /// <summary>Counted for each key that was forgotten, besides its name: its place in the order.</summary>
    private const int ForgottenBytes = 128;

    /// <summary>Values of pre-images share arrays of this size; larger ones have their own.</summary>
    private const int ChunkBytes = 32 << 10;

    private readonly KeyStore _store;
    private readonly CutBudget _budget;
    private readonly byte[] _start;
    private readonly byte[]? _end;
    private readonly bool _hasValues;

    /// <summary>Rows that have changed, or were added, since the cut was opened.</summary>
    private readonly Dictionary<int, PreImage> _changed = [];
    private readonly SortedSet<ForgottenKey> _forgotten = new(ForgottenKey.ByName);
    private readonly List<byte[]> _chunks = [];
    private int _chunkUsed;
    private long _bytes;
    private bool _hasChanged;

    public RangeCut(KeyStore store, scoped in RangeRequest asked, ClusterTime time, CutBudget budget)
    {
        _store = store;
        _budget = budget;
        _start = asked.Start.ToArray();
        _end = asked.HasEnd ? asked.End.ToArray() : null;
        _hasValues = !asked.Has(RangeFlags.KeysOnly) && !asked.Has(RangeFlags.CountOnly);
        Time = time;
        store.Observe(this);
    }

    /// <summary>The cluster time of the moment: what had expired by then is not in the cut.</summary>
    public ClusterTime Time { get; }

    /// <summary>True once the pre-images have passed their bound, or the cut was ended. It shows nothing.</summary>
    public bool IsOver { get; private set; }

    /// <summary>Keys of the cut that were forgotten since it was opened.</summary>
    public int Forgotten => _forgotten.Count;

    /// <summary>The page lies within the cut, and asks for nothing that the cut does not keep.</summary>
    public bool Covers(scoped in RangeRequest page)
    {
        bool endsWithin = _end is null || (page.HasEnd && page.End.SequenceCompareTo(_end) <= 0);
        bool needsValues = !page.Has(RangeFlags.KeysOnly) && !page.Has(RangeFlags.CountOnly);
        return endsWithin && page.Start.SequenceCompareTo(_start) >= 0 && (_hasValues || !needsValues);
    }

    /// <summary>
    /// True when nobody can have seen the range differ from the cut up to now: no row of it has changed, and no key has
    /// expired since.
    /// </summary>
    /// <param name="time">Cluster time of the last applied entry.</param>
    public bool IsCurrent(ClusterTime time) =>
        !_hasChanged && (time == Time || !_store.Expiry.AnyPassed(time));

    /// <summary>What the cut has in the place of a row; false: the row as it is.</summary>
    public bool TryFind(Row row, out PreImage image) => _changed.TryGetValue(row.Value, out image);

    /// <summary>
    /// The forgotten keys of the cut from a name on, in order; an empty name stands for the first or the last of all.
    /// Null: there are none. Valid until the next change.
    /// </summary>
    public IEnumerator<ForgottenKey>? ForgottenFrom(ReadOnlySpan<byte> name, bool descends)
    {
        if (name.IsEmpty)
        {
            return (descends ? _forgotten.Reverse() : _forgotten).GetEnumerator();
        }

        ForgottenKey from = new(name.ToArray(), default);
        ForgottenKey? last = descends ? _forgotten.Min : _forgotten.Max;
        if (last is null || Math.Sign(ForgottenKey.ByName.Compare(from, last)) == (descends ? -1 : 1))
        {
            return null;
        }

        return descends
            ? _forgotten.GetViewBetween(last, from).Reverse().GetEnumerator()
            : _forgotten.GetViewBetween(from, last).GetEnumerator();
    }

    /// <summary>By the store: keeps the pre-image of a row of the range before its first change.</summary>
    public void BeforeChange(Row row)
    {
        ref readonly KeyEntry entry = ref _store.Keys[row];
        if (IsOver
            || (entry.Flags & (KeyEntryFlags.Free | KeyEntryFlags.System)) != 0
            || !Contains(_store.Keys.Key(in entry)))
        {
            return;
        }

        _hasChanged = true;
        ref PreImage image = ref CollectionsMarshal.GetValueRefOrAddDefault(_changed, row.Value, out bool isKept);
        if (isKept)
        {
            return;
        }

        if (!entry.IsDeleted && !_store.Expiry.HasPassed(in entry, Time))
        {
            image = new PreImage(
                _hasValues ? Keep(_store.Keys.Value(in entry)) : default, entry.IsNull, entry.Revision);
        }

        Count(RowBytes);
    }

    /// <summary>A cut shows no history.</summary>
    public void BeforeHistoryChange(Row row)
    {
    }

    /// <summary>By the store: a key that was added is not in the cut.</summary>
    public void Created(Row row)
    {
        if (!IsOver && Contains(_store.Keys.Key(in _store.Keys[row])))
        {
            _hasChanged = true;
            _changed[row.Value] = default;
            Count(RowBytes);
        }
    }

    /// <summary>By the store: the row may stand for another key soon, so the pre-image is kept by name.</summary>
    public void BeforeForgetting(Row row)
    {
        if (IsOver || !_changed.Remove(row.Value, out PreImage image))
        {
            return;
        }

        Count(-RowBytes);
        if (!image.IsHidden)
        {
            byte[] name = _store.Keys.Key(in _store.Keys[row]).ToArray();
            _forgotten.Add(new ForgottenKey(name, image));
            Count(ForgottenBytes + name.Length);
        }
    }

    /// <summary>Ends the cut: changes have no further cost.</summary>
    public void Dispose()
    {
        _store.EndObserving(this);
        End();
    }

    private bool Contains(ReadOnlySpan<byte> key) =>
        key.SequenceCompareTo(_start) >= 0 && (_end is null || key.SequenceCompareTo(_end) < 0);

    private ReadOnlyMemory<byte> Keep(ReadOnlySpan<byte> value)
    {
        if (value.IsEmpty)
        {
            return default;
        }

        if (_chunks.Count == 0 || _chunks[^1].Length - _chunkUsed < value.Length)
        {
            byte[] chunk = BufferArrays.Rent(Math.Max(ChunkBytes, value.Length));
            _chunks.Add(chunk);
            _chunkUsed = 0;
            _bytes += chunk.Length;
            _budget.Used += chunk.Length;
        }

        Memory<byte> kept = _chunks[^1].AsMemory(_chunkUsed, value.Length);
        value.CopyTo(kept.Span);
        _chunkUsed += value.Length;
        return kept;
    }

    /// <summary>Counts bytes, and ends the cut when they are too many. The owner detaches it later.</summary>
    private void Count(int bytes)
    {
        _bytes += bytes;
        _budget.Used += bytes;
        if (_bytes > _budget.CutBytesMax || _budget.Used > _budget.BytesMax)
        {
            End();
        }
    }

    private void End()
    {
        if (IsOver)
        {
            return;
        }

        IsOver = true;
        _budget.Used -= _bytes;
        _changed.Clear();
        _changed.TrimExcess();
        _forgotten.Clear();
        foreach (byte[] chunk in _chunks)
        {
            BufferArrays.Return(chunk);
        }

        _chunks.Clear();
    }
}

/// <summary>
/// A row of a cut as it was. The default: there was nothing to see. A value; its bytes belong to the cut.
/// </summary>
/// <param name="Value">The value; empty in a cut without values.</param>
/// <param name="IsNull">The value was null.</param>
/// <param name="Revision">Its revision.</param>
internal readonly record struct PreImage(ReadOnlyMemory<byte> Value, bool IsNull, Revision Revision)
{
    /// <summary>The key did not exist, or had expired.</summary>
    public bool IsHidden => Revision.IsNone;
}

/// <summary>A key of a cut that has no row any longer. Immutable.</summary>
/// <param name="name">The key.</param>
/// <param name="image">The key as it was.</param>
internal sealed class ForgottenKey(byte[] name, PreImage image)
{
    /// <summary>The order of the keys' bytes.</summary>
    public static readonly IComparer<ForgottenKey> ByName = Comparer<ForgottenKey>.Create(
        static (one, other) => one.Name.AsSpan().SequenceCompareTo(other.Name));

    public byte[] Name { get; } = name;

    public PreImage Image { get; } = image;
}

/// <summary>The bytes that the cuts of a partition may keep together. Shared by them; not thread-safe.</summary>
/// <param name="cutBytesMax">Bytes of one cut.</param>
/// <param name="bytesMax">Bytes of all cuts.</param>
internal sealed class CutBudget(long cutBytesMax = 16 << 20, long bytesMax = 32 << 20)
{
    public long CutBytesMax { get; } = cutBytesMax;

    public long BytesMax { get; } = bytesMax;

    /// <summary>Bytes that cuts keep now.</summary>
    public long Used { get; set; }
}
