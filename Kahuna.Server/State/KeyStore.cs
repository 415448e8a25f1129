using System.Buffers.Binary;

namespace Kahuna.Server.State;

/// <summary>
/// The tables of one partition and the four things that happen to a key: it is written, deleted, given a deadline, or
/// lost to time. Keeps tables, history and deadlines in step. Owned by one <see cref="StateMachine"/>; not thread-safe.
/// </summary>
internal sealed class KeyStore
{
    /// <summary>Aged records dropped with one command: more than one command can add, so that the history of a busy partition shrinks to its limit.</summary>
    private const int AgedPerCommand = 4;

    private static readonly byte[] s_firstRevisionName = [0xFF, (byte)'F'];

    private readonly SlabAllocator _slabs = new();
    private readonly List<StateView> _views = [];
    private readonly RowSet _changed = new();
    private long _firstRevision;
    private long _deleted;
    private ulong _digest;

    public KeyStore(StateLimits limits)
    {
        _firstRevision = limits.FirstRevision;
        Keys = new KeyTable(_slabs);
        History = new HistoryTable(limits, Keys, _slabs, BeforeChange);
        Expiry = new ExpiryHeap(Keys);
        System = new SystemRows(this);
        LiveSessions = new ExpiryHeap(Keys);
        IdleSessions = new ExpiryHeap(Keys);
        Leases = new ExpiryHeap(Keys);
        Waiters = new ExpiryHeap(Keys);
    }

    public KeyTable Keys { get; }

    public HistoryTable History { get; }

    public ExpiryHeap Expiry { get; }

    /// <summary>Rows that are no keys.</summary>
    public SystemRows System { get; }

    /// <summary>Sessions that remember outcomes, by the time of their last command.</summary>
    public ExpiryHeap LiveSessions { get; }

    /// <summary>Sessions that have no more than their number left, by the time of their last command.</summary>
    public ExpiryHeap IdleSessions { get; }

    /// <summary>Claims that hold a lock, by the end of their lease.</summary>
    public ExpiryHeap Leases { get; }

    /// <summary>Claims that wait for a lock, by the time at which somebody has to look whether they still do.</summary>
    public ExpiryHeap Waiters { get; }

    /// <summary>Digest of everything that is stored, kept up with each change.</summary>
    public ulong Digest => unchecked(_digest + History.Digest);

    public StateCounts Counts =>
        new(Keys.Count - Keys.FreeCount - System.Count - _deleted, _deleted, History.Count, _slabs.Bytes + TableBytes, Evicted);

    /// <summary>Keys that went for want of room, since this state began on this node.</summary>
    public long Evicted { get; set; }

    /// <summary>Bytes of all tables, and of the slabs that something lies in.</summary>
    public long BytesInUse => _slabs.BytesInUse + TableBytes;

    private long TableBytes => Keys.Bytes + History.Bytes + Expiry.Bytes + LiveSessions.Bytes + IdleSessions.Bytes + Leases.Bytes + Waiters.Bytes;

    /// <summary>Bytes in use that nothing lies in, and free rows: what comes next may take their place.</summary>
    public long FreeBytes => _slabs.FreeBytes + ((long)Keys.FreeCount * KeyTable.RowBytes);

    /// <summary>Which keys go when there is no room; null on nodes that refuse instead.</summary>
    public EvictionQueue? Uses { get; private set; }

    /// <summary>The revision that a key without a row gets when it is written: 1 but in later epochs of ephemeral groups, and above that of every key that had to go.</summary>
    public long FirstRevision => _firstRevision;

    /// <summary>Keys that were there from the start, because they were loaded.</summary>
    public int Loaded { get; private set; }

    /// <summary>Keys that changed since the last view.</summary>
    public int Changed => _changed.Count;

    /// <summary>A view of everything, or of the keys that changed since the last view.</summary>
    public StateView BeginView(bool changesOnly, long timeMs)
    {
        RowSet rows = new();
        if (changesOnly)
        {
            rows.TakeFrom(_changed);
        }
        else
        {
            rows.AddAll(Keys.Count);
            _changed.Clear();
        }

        StateView view = new(this, rows, timeMs);
        _views.Add(view);
        return view;
    }

    /// <summary>True when the view had not ended before.</summary>
    public bool End(StateView view) => _views.Remove(view);

    /// <summary>True when a row stands for a key that exists.</summary>
    public bool Exists(int key) => key != 0 && !Keys[key].IsDeleted;

    /// <summary>Drops a bounded number of replaced revisions that are too old.</summary>
    public void EvictAged(long timeMs) => History.EvictAged(timeMs, AgedPerCommand);

    /// <summary>Adds a key that has no row, at the first revision.</summary>
    public int Create(ReadOnlySpan<byte> name, uint hash, ReadOnlySpan<byte> value, bool isNull) =>
        Create(name, hash, value, isNull ? KeyEntryFlags.Null : KeyEntryFlags.None);

    /// <summary>Begins to note which keys are used.</summary>
    public void TrackUses()
    {
        Uses = new EvictionQueue();
        for (int row = 1; row <= Keys.Count; row++)
        {
            if ((Keys[row].Flags & (KeyEntryFlags.Free | KeyEntryFlags.System)) == 0)
            {
                Uses.Add(row);
            }
        }
    }

    /// <summary>Forgets a key with its history and its deadline, as if it had never been, but for this: revisions of keys without a row begin above its own from now on.</summary>
    public void Forget(int key)
    {
        ClearDeadline(key);
        History.Forget(key);
        BeginChange(key);
        ref KeyEntry entry = ref Keys[key];
        long revision = entry.Revision;
        _deleted -= entry.IsDeleted ? 1 : 0;
        _digest = unchecked(_digest - entry.Digest);
        Uses?.Remove(key);
        Keys.Free(key);
        if (revision >= _firstRevision)
        {
            _firstRevision = revision + 1;
            SaveFirstRevision();
        }
    }

    /// <summary>The time that goes with a row that has one: a key's deadline, a session's last command, the end of a lease.</summary>
    public long DeadlineOf(in KeyEntry entry) => HeapOf(in entry).DeadlineOf(in entry);

    /// <summary>Where the row's time stands, or would.</summary>
    public ExpiryHeap HeapOf(in KeyEntry entry) =>
        entry.IsClaim ? entry.IsHeld ? Leases : Waiters
        : !entry.IsSession ? Expiry
        : entry.ValueLength > Sessions.SessionWindow.HeaderBytes && !Sessions.SessionTable.IsKey(Keys.Key(in entry)) ? LiveSessions : IdleSessions;

    /// <summary>
    /// Writes the next revision of a key that has a row. What it replaces goes to history with <paramref name="keep"/>, and
    /// is overwritten in its place without. The deadline stays as it is.
    /// </summary>
    public void Write(int key, ReadOnlySpan<byte> value, bool isNull, HistoryChoice keep)
    {
        ref KeyEntry entry = ref Keys[key];
        Uses?.Touch(key);
        if (entry.IsDeleted)
        {
            _deleted--;
        }

        Replace(key, ref entry, value.Length, keep);
        value.CopyTo(_slabs.Span(entry.Block, entry.KeyLength, value.Length));
        entry.Flags = isNull ? KeyEntryFlags.Null : KeyEntryFlags.None;
        AddDigest(ref entry);
    }

    /// <summary>Deletes a key that exists: its name and revision stay, its value goes to history or is freed.</summary>
    public void Delete(int key, HistoryChoice keep)
    {
        ref KeyEntry entry = ref Keys[key];
        ClearDeadline(key);
        Replace(key, ref entry, 0, keep);
        entry.Flags = KeyEntryFlags.Deleted;
        AddDigest(ref entry);
        _deleted++;
    }

    /// <summary>
    /// Turns the key into a deleted one if its time to live has passed. Every command does this first to its key, so that
    /// it finds the same whether or not a sweep came before it. True when the key was removed.
    /// </summary>
    public bool Expire(int key, long timeMs)
    {
        if (!Expiry.HasPassed(in Keys[key], timeMs))
        {
            return false;
        }

        Delete(key, HistoryChoice.KeptAt(timeMs));
        return true;
    }

    public void SetDeadline(int key, long deadlineMs)
    {
        ClearDeadline(key);
        BeginChange(key);
        Expiry.Set(key, deadlineMs);
        _digest = unchecked(_digest + StateDigest.OfDeadline(Keys[key].Hash, deadlineMs));
    }

    public void ClearDeadline(int key)
    {
        ref KeyEntry entry = ref Keys[key];
        if (entry.ExpirySlot != 0)
        {
            BeginChange(key);
            _digest = unchecked(_digest - StateDigest.OfDeadline(entry.Hash, Expiry.DeadlineOf(in entry)));
            Expiry.Remove(key);
        }
    }

    /// <summary>
    /// Adds a key as it was stored, in the row it had: what is stored is found by row, so the rows of a state are the same for ever. False when the key or the row is there
    /// already. For a state that is being loaded, in any order; at the end no row may be missing.
    /// </summary>
    public bool TryLoad(int key, ReadOnlySpan<byte> name, ReadOnlySpan<byte> value, long revision, KeyEntryFlags flags, long? deadlineMs)
    {
        if ((flags & KeyEntryFlags.Free) != 0)
        {
            Loaded++;
            return Keys.TryFreeAt(key);
        }

        uint hash = KeyTable.HashOf(name);
        if (Keys.Find(name, hash) != 0 || !Keys.TryInsertAt(key, name, hash, value.Length))
        {
            return false;
        }

        Loaded++;
        System.Count += (flags & KeyEntryFlags.System) != 0 ? 1 : 0;
        ref KeyEntry entry = ref Keys[key];
        value.CopyTo(_slabs.Span(entry.Block, entry.KeyLength, value.Length));
        entry.Revision = revision;
        entry.Flags = flags;
        _deleted += entry.IsDeleted ? 1 : 0;
        AddDigest(ref entry);
        if (deadlineMs is { } deadline)
        {
            HeapOf(in entry).Set(key, deadline);
            _digest = unchecked(_digest + StateDigest.OfDeadline(hash, deadline));
        }

        return true;
    }

    /// <summary>Adds a replaced revision, newer than those that the key has. For a state that is being loaded.</summary>
    public void LoadReplaced(int key, ReadOnlySpan<byte> value, long revision, long replacedAtMs, long number, KeyEntryFlags flags)
    {
        ref KeyEntry entry = ref Keys[key];
        uint block = SlabAllocator.None;
        if ((flags & KeyEntryFlags.Deleted) == 0)
        {
            block = _slabs.Allocate(entry.KeyLength + value.Length);
            Keys.Key(in entry).CopyTo(_slabs.Span(block, 0, entry.KeyLength));
            value.CopyTo(_slabs.Span(block, entry.KeyLength, value.Length));
        }

        History.Load(key, new HistoryRecord
        {
            Revision = revision,
            ReplacedAtMs = replacedAtMs,
            Number = number,
            Digest = StateDigest.OfRevision(Keys.Key(in entry), value, revision, flags),
            Key = key,
            Block = block,
            ValueLength = value.Length,
            Flags = flags,
        });
    }

    /// <summary>Everything was loaded: history is put in its order.</summary>
    public void FinishLoading(long nextHistoryNumber)
    {
        History.FinishLoading(nextHistoryNumber);
        int row = Keys.Find(s_firstRevisionName, KeyTable.HashOf(s_firstRevisionName));
        _firstRevision = row == 0 ? _firstRevision : BinaryPrimitives.ReadInt64LittleEndian(Keys.Value(in Keys[row]));
    }

    private void SaveFirstRevision()
    {
        Span<byte> value = stackalloc byte[sizeof(long)];
        BinaryPrimitives.WriteInt64LittleEndian(value, _firstRevision);
        int row = Keys.Find(s_firstRevisionName, KeyTable.HashOf(s_firstRevisionName));
        if (row == 0)
        {
            System.Create(s_firstRevisionName, value, KeyEntryFlags.None);
        }
        else
        {
            System.Rewrite(row, value);
        }
    }

    /// <summary>Adds a row of any kind.</summary>
    public int Create(ReadOnlySpan<byte> name, uint hash, ReadOnlySpan<byte> value, KeyEntryFlags flags)
    {
        if (Keys.FirstFree is var reused and not 0)
        {
            BeforeChange(reused);
        }

        int key = Keys.Insert(name, hash, value.Length);
        ref KeyEntry entry = ref Keys[key];
        value.CopyTo(_slabs.Span(entry.Block, entry.KeyLength, value.Length));
        entry.Revision = _firstRevision;
        entry.Flags = flags;
        AddDigest(ref entry);
        _changed.Add(key);
        if ((flags & KeyEntryFlags.System) == 0)
        {
            Uses?.Add(key);
        }

        return key;
    }

    /// <summary>A row is about to change: who has to know is told.</summary>
    public void BeginChange(int key)
    {
        BeforeChange(key);
        _changed.Add(key);
    }

    private void BeforeChange(int key)
    {
        foreach (StateView view in _views)
        {
            view.BeforeChange(key);
        }
    }

    /// <summary>Makes the block fit a new value and counts the revision. The key's bytes are in the block afterwards; the value's are the caller's to write.</summary>
    private void Replace(int key, ref KeyEntry entry, int valueLength, HistoryChoice keep)
    {
        BeginChange(key);
        uint old = entry.Block;
        bool handedOver = false;
        _digest = unchecked(_digest - entry.Digest);
        if (keep.IsKept && History.Keeps(in entry))
        {
            handedOver = !entry.IsDeleted;
            History.Push(key, keep.TimeMs);
        }

        int length = entry.KeyLength + valueLength;
        if (handedOver || SizeClasses.Of(length) != SizeClasses.Of(entry.BlockLength))
        {
            entry.Block = _slabs.Allocate(length);
            _slabs.Span(old, 0, entry.KeyLength).CopyTo(_slabs.Span(entry.Block, 0, entry.KeyLength));
            if (!handedOver)
            {
                _slabs.Free(old, entry.BlockLength);
            }
        }

        entry.ValueLength = valueLength;
        entry.Revision++;
    }

    /// <summary>The digest of everything grows by so much.</summary>
    public void AddToDigest(ulong difference) => _digest = unchecked(_digest + difference);

    /// <summary>After the row and its bytes are as they are to be.</summary>
    public void AddDigest(ref KeyEntry entry)
    {
        entry.Digest = StateDigest.OfRow(Keys.Key(in entry), Keys.Value(in entry), entry.Revision, entry.Flags);
        _digest = unchecked(_digest + entry.Digest);
    }
}
