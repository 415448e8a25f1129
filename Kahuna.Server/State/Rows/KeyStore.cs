using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Scripts;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// The tables of one partition and the four things that happen to a key: it is written, deleted, given a deadline, or
/// lost to time. Keeps tables, history and deadlines in step. Owned by one <see cref="StateMachine"/>; not thread-safe.
/// </summary>
internal sealed class KeyStore
{
    /// <summary>
    /// Aged records dropped with one command: more than one command can add, so that the history of a busy partition
    /// shrinks to its limit.
    /// </summary>
    private const int AgedPerCommand = 4;

    /// <summary>
    /// Deleted keys forgotten with one command: more than one command can add but for large values, which push many
    /// small records out of the history at once.
    /// </summary>
    private const int ForgottenPerCommand = 8;

    private readonly StateLimits _limits;
    private readonly SlabAllocator _slabs;
    private readonly List<IRowObserver> _observers = [];
    private readonly RowSet _changed = new();
    private long _deleted;

    /// <summary>The key of which everything is going: its history goes with it.</summary>
    private Row _forgetting;
    private ulong _digest;

    public KeyStore(StateLimits limits)
    {
        _limits = limits;
        _slabs = new SlabAllocator(limits.SlabsMax);
        Forgotten = new ForgottenKeys(this, limits);
        Keys = new KeyTable(_slabs, limits.HashSecret);
        Ordered = new OrderedIndex(Keys);
        Prepared = new PreparedKeys(Keys);
        History = new HistoryTable(limits, Keys, _slabs, Changes, BeforeHistoryChange, AfterEviction);
        Heaps = new RowHeaps(Keys);
        Expiry = Heaps.Deadlines;
        System = new SystemRows(this);
    }

    public KeyTable Keys { get; }

    /// <summary>The keys in the order of their bytes: all that have a row, deleted ones too.</summary>
    public OrderedIndex Ordered { get; }

    public HistoryTable History { get; }

    /// <summary>The times of rows: keys' deadlines, and those of the system's rows.</summary>
    public RowHeaps Heaps { get; }

    /// <summary>Keys that expire.</summary>
    public ExpiryHeap Expiry { get; }

    /// <summary>Rows that are no keys.</summary>
    public SystemRows System { get; }

    /// <summary>The feature level of the entry that is being applied, or was applied last.</summary>
    public FeatureLevel Level { get; set; }

    /// <summary>Whose quota the command that is being applied is charged to; 0 for nobody's.</summary>
    public ushort Account { get; set; }

    /// <summary>What each account uses here.</summary>
    public AccountUsage Accounts { get; } = new();

    /// <inheritdoc cref="AccountUsage.Matches"/>
    public bool AccountsMatch => Accounts.Matches(this);

    /// <summary>The words of scripts that this build knows, each with the level that it needs.</summary>
    public ScriptWords ScriptWords => _limits.ScriptWords;

    /// <summary>The keys that prepared transactions hold.</summary>
    public PreparedKeys Prepared { get; }

    /// <summary>Digest of everything that is stored, kept up with each change.</summary>
    public ulong Digest => unchecked(_digest + History.Digest);

    /// <inheritdoc cref="StateDigest.Recompute"/>
    public ulong RecomputeDigest() => StateDigest.Recompute(this);

    public StateCounts Counts =>
        new(
            Keys.Count - Keys.FreeCount - System.Rows - _deleted,
            _deleted,
            History.Count,
            _slabs.Bytes + TableBytes,
            Evicted);

    /// <summary>Keys that went for want of room, since this state began on this node.</summary>
    public long Evicted { get; set; }

    /// <summary>Bytes of all tables, and of the slabs that something lies in.</summary>
    public long BytesInUse => _slabs.BytesInUse + TableBytes;

    private long TableBytes =>
        Keys.Bytes + Ordered.Bytes + History.Bytes + Heaps.Bytes + Prepared.Bytes + (Uses?.Bytes ?? 0);

    /// <summary>
    /// Bytes in use that nothing lies in: what comes next may take their place. Free rows count as far as there is room
    /// for what they would stand for.
    /// </summary>
    public long FreeBytes => _slabs.FreeBytes + Math.Min((long)Keys.FreeCount * KeyTable.RowBytes, _slabs.FreeBytes);

    /// <summary>There are keys that may go when there is no room.</summary>
    public bool HasEvictable => Uses is { Count: > 0 };

    /// <summary>No more than what is accepted already may be added: slabs or rows are nearly used up.</summary>
    public bool IsFull => LacksRoom(besides: 0);

    /// <summary>Nearly so: where keys may go, some go now, so that writes are not refused.</summary>
    public bool IsCrowded => LacksRoom(besides: _limits.SlabsReserved / 8);

    /// <summary>Which keys go when there is no room; null on nodes that refuse instead.</summary>
    public EvictionQueue? Uses { get; private set; }

    /// <summary>Deleted keys that wait to be forgotten, and the first revision of keys without a row.</summary>
    public ForgottenKeys Forgotten { get; }

    /// <summary>Where changes of keys are told.</summary>
    public ChangeFeed Changes { get; } = new();

    /// <summary>Keys that were there from the start, because they were loaded.</summary>
    public int Loaded { get; private set; }

    /// <summary>Keys that changed since the last view.</summary>
    public int Changed => _changed.Count;

    /// <summary>The rows that changed since this was asked last, or all rows.</summary>
    public RowSet TakeChanged(bool andOthers)
    {
        RowSet rows = new();
        if (andOthers)
        {
            rows.AddAll(new Row(Keys.Count));
            _changed.Clear();
        }
        else
        {
            rows.TakeFrom(_changed);
        }

        return rows;
    }

    /// <summary>From now on the observer hears of every row before it changes.</summary>
    public void Observe(IRowObserver observer) => _observers.Add(observer);

    /// <summary>The observer hears of no further row. False when it was not attached.</summary>
    public bool EndObserving(IRowObserver observer) => _observers.Remove(observer);

    /// <summary>True when a row stands for a key that exists.</summary>
    public bool Exists(Row key) => !key.IsNone && !Keys[key].IsDeleted;

    /// <summary>
    /// Before each command: drops a bounded number of replaced revisions that are too many or too old, and forgets a
    /// bounded number of deleted keys of which nothing is kept.
    /// </summary>
    public void DropOld(ClusterTime time)
    {
        History.BeginCommand();
        History.EvictAged(time, AgedPerCommand);
        Forgotten.Forget(ForgottenPerCommand);
    }

    /// <summary>Adds a key that has no row, at the first revision.</summary>
    public Row Create(ReadOnlySpan<byte> name, uint hash, ReadOnlySpan<byte> value, bool isNull)
    {
        Row key = Create(name, hash, value, isNull ? KeyEntryFlags.Null : KeyEntryFlags.None);
        Charge(key, Account);
        Tell(ChangeKind.Written, key);
        return key;
    }

    /// <summary>Begins to note which keys are used.</summary>
    public void TrackUses()
    {
        Uses = new EvictionQueue();
        for (Row row = Row.First; row.Value <= Keys.Count; row = row.Next)
        {
            if ((Keys[row].Flags & (KeyEntryFlags.Free | KeyEntryFlags.System)) == 0)
            {
                Uses.Add(row);
            }
        }
    }

    /// <summary>
    /// Forgets a key with its history and its deadline, as if it had never been, but for this: revisions of keys
    /// without a row begin above its own from now on.
    /// </summary>
    public void Forget(Row key)
    {
        ClearDeadline(key);
        _forgetting = key;
        History.Forget(key);
        _forgetting = Row.None;
        BeginChange(key);
        foreach (IRowObserver observer in _observers)
        {
            observer.BeforeForgetting(key);
        }

        ref KeyEntry entry = ref Keys[key];
        GiveBack(key, ref entry);
        if (entry.IsDeleted)
        {
            Forgotten.Remove(key);
        }

        Tell(entry.IsDeleted ? ChangeKind.Forgotten : ChangeKind.Evicted, key);
        Revision revision = entry.Revision;
        _deleted -= entry.IsDeleted ? 1 : 0;
        InvariantException.Require(
            _deleted >= 0 && (entry.Flags & KeyEntryFlags.System) == 0, "only keys are forgotten");
        _digest = unchecked(_digest - entry.Digest);
        Uses?.Remove(key);
        Ordered.Remove(key);
        Keys.Free(key);
        Forgotten.Raise(revision);
    }

    /// <summary>
    /// The time that goes with a row that has one: a key's deadline, a session's last command, the end of a lease.
    /// </summary>
    public ClusterTime DeadlineOf(in KeyEntry entry) => HeapOf(in entry).DeadlineOf(in entry);

    /// <summary>Where the row's time stands, or would.</summary>
    public ExpiryHeap HeapOf(in KeyEntry entry) =>
        (entry.Flags & KeyEntryFlags.System) == 0 ? Heaps.Deadlines : Heaps[SystemHeapOf(in entry)];

    private RowHeap SystemHeapOf(in KeyEntry entry)
    {
        ReadOnlySpan<byte> name = Keys.Key(in entry);
        if (entry.IsSession)
        {
            return SystemRowKind.IsIdempotencyKey(name) ? RowHeap.IdempotencyKeys
                : entry.ValueLength > SystemRowKind.SessionHeaderBytes ? RowHeap.LiveSessions
                : RowHeap.IdleSessions;
        }

        if (entry.IsClaim)
        {
            return entry.IsHeld ? RowHeap.Leases : RowHeap.Waiters;
        }

        SystemRowKind? kind = SystemRowKind.Of(name);
        InvariantException.Require(kind is { Heaps.Length: 1 }, "only rows of kinds with a heap have a time");
        return kind.Heaps[0];
    }

    /// <summary>
    /// Writes the next revision of a key that has a row. What it replaces goes to history with <paramref name="keep"/>,
    /// and is overwritten in its place without. The deadline stays as it is.
    /// </summary>
    public void Write(Row key, ReadOnlySpan<byte> value, bool isNull, HistoryChoice keep)
    {
        ref KeyEntry entry = ref Keys[key];
        Uses?.Touch(key);
        if (entry.IsDeleted)
        {
            _deleted--;
            if (entry.HistoryCount == 0)
            {
                Forgotten.Remove(key);
            }
        }

        InvariantException.Require(
            (entry.Flags & (KeyEntryFlags.Free | KeyEntryFlags.System)) == 0, "only keys have revisions");
        Replace(key, ref entry, value.Length, keep);
        value.CopyTo(_slabs.Span(entry.Block, entry.KeyLength, value.Length));
        entry.Flags = isNull ? KeyEntryFlags.Null : KeyEntryFlags.None;
        AddDigest(ref entry);
        Charge(key, Account);
        Tell(ChangeKind.Written, key);
    }

    /// <summary>
    /// Deletes a key that exists: its value goes to history or is freed. Its name and revision stay for as long as its
    /// history has something.
    /// </summary>
    public void Delete(Row key, HistoryChoice keep) => Delete(key, keep, ChangeKind.Deleted);

    private void Delete(Row key, HistoryChoice keep, ChangeKind change)
    {
        ref KeyEntry entry = ref Keys[key];
        InvariantException.Require(
            (entry.Flags & (KeyEntryFlags.Deleted | KeyEntryFlags.System)) == 0, "only a key that exists is deleted");
        ClearDeadline(key);
        Replace(key, ref entry, 0, keep);
        entry.Flags = KeyEntryFlags.Deleted;
        AddDigest(ref entry);
        _deleted++;
        if (entry.HistoryCount == 0)
        {
            Forgotten.Add(key);
        }

        Tell(change, key);
    }

    /// <summary>
    /// Turns the key into a deleted one if its time to live has passed. Every command does this first to its key, so
    /// that it finds the same whether or not a sweep came before it. True when the key was removed.
    /// </summary>
    public bool Expire(Row key, ClusterTime time)
    {
        if (!Expiry.HasPassed(in Keys[key], time))
        {
            return false;
        }

        Delete(key, HistoryChoice.KeptAt(time), ChangeKind.Expired);
        return true;
    }

    public void SetDeadline(Row key, ClusterTime deadline)
    {
        ClearDeadline(key);
        BeginChange(key);
        Expiry.Set(key, deadline);
        _digest = unchecked(_digest + StateDigest.OfDeadline(key, deadline));
    }

    public void ClearDeadline(Row key)
    {
        ref KeyEntry entry = ref Keys[key];
        if (entry.ExpirySlot != 0)
        {
            BeginChange(key);
            _digest = unchecked(_digest - StateDigest.OfDeadline(key, Expiry.DeadlineOf(in entry)));
            Expiry.Remove(key);
        }
    }

    /// <summary>
    /// Adds a key as it was stored, in the row it had: what is stored is found by row, so the rows of a state are the
    /// same for ever. False when the key or the row is there already. For a state that is being loaded, in any order;
    /// at the end no row may be missing.
    /// </summary>
    public bool TryLoad(
        Row key,
        ReadOnlySpan<byte> name,
        ReadOnlySpan<byte> value,
        Revision revision,
        KeyEntryFlags flags,
        ClusterTime? deadline)
    {
        if ((flags & KeyEntryFlags.Free) != 0)
        {
            Loaded++;
            return Keys.TryFreeAt(key);
        }

        uint hash = Keys.HashOf(name);
        if (!Keys.Find(name, hash).IsNone || !Keys.TryInsertAt(key, name, hash, value.Length))
        {
            return false;
        }

        Loaded++;
        if ((flags & KeyEntryFlags.System) != 0)
        {
            System.Added(key, name);
        }
        else
        {
            Ordered.Add(key);
        }

        ref KeyEntry entry = ref Keys[key];
        value.CopyTo(_slabs.Span(entry.Block, entry.KeyLength, value.Length));
        entry.Revision = revision;
        entry.Flags = flags;
        _deleted += entry.IsDeleted ? 1 : 0;
        AddDigest(ref entry);
        if (deadline is { } known)
        {
            HeapOf(in entry).Set(key, known);
            _digest = unchecked(_digest + StateDigest.OfDeadline(key, known));
        }

        return true;
    }

    /// <summary>
    /// A key that exists, and that nobody is charged for, becomes the account's; 0: it stays nobody's.
    /// </summary>
    public void Charge(Row key, ushort account)
    {
        if (account != 0)
        {
            ref KeyEntry entry = ref Keys[key];
            entry.Account = account;
            Accounts.Add(account, entry.BlockLength);
            _digest = unchecked(_digest + StateDigest.OfAccount(key, account));
        }
    }

    /// <summary>Before a key changes: nobody is charged for it any longer.</summary>
    private void GiveBack(Row key, ref KeyEntry entry)
    {
        if (entry.Account != 0)
        {
            Accounts.Remove(entry.Account, entry.BlockLength);
            _digest = unchecked(_digest - StateDigest.OfAccount(key, entry.Account));
            entry.Account = 0;
        }
    }

    /// <summary>
    /// Adds a replaced revision, newer than those that the key has. For a state that is being loaded.
    /// </summary>
    public void LoadReplaced(
        Row key, ReadOnlySpan<byte> value, Revision revision, ClusterTime replacedAt, long number, KeyEntryFlags flags)
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
            ReplacedAt = replacedAt,
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
        Forgotten.FinishLoading();
        InvariantException.Require(
            Ordered.Count == Keys.Count - Keys.FreeCount - System.Rows, "every key is in the ordered index");
    }

    /// <summary>Adds a row of any kind.</summary>
    public Row Create(ReadOnlySpan<byte> name, uint hash, ReadOnlySpan<byte> value, KeyEntryFlags flags)
    {
        if (Keys.FirstFree is { IsNone: false } reused)
        {
            BeforeChange(reused);
        }

        Row key = Keys.Insert(name, hash, value.Length);
        ref KeyEntry entry = ref Keys[key];
        InvariantException.Require(
            entry is { ExpirySlot: 0, HistoryCount: 0 }, "a new row has neither time nor history");
        value.CopyTo(_slabs.Span(entry.Block, entry.KeyLength, value.Length));
        entry.Revision = Forgotten.FirstRevision;
        entry.Flags = flags;
        AddDigest(ref entry);
        _changed.Add(key);
        if ((flags & KeyEntryFlags.System) == 0)
        {
            Uses?.Add(key);
            Ordered.Add(key);
            foreach (IRowObserver observer in _observers)
            {
                observer.Created(key);
            }
        }

        return key;
    }

    /// <summary>A row is about to change: who has to know is told.</summary>
    public void BeginChange(Row key)
    {
        BeforeChange(key);
        _changed.Add(key);
    }

    /// <summary>All slabs and rows are in use, except for this many, which new data may not take.</summary>
    private bool LacksRoom(int besides) =>
        _slabs.SlotsInUse + besides >= _limits.SlabsMax - _limits.SlabsReserved
            || Keys.Count - Keys.FreeCount + (long)besides >= _limits.RowsMax;

    /// <summary>A replaced revision of a key is gone.</summary>
    private void AfterEviction(Row key, Revision revision)
    {
        ref readonly KeyEntry entry = ref Keys[key];
        if (Changes.IsOn && key != _forgetting)
        {
            Changes.Tell(new Change { Kind = ChangeKind.HistoryCut, Key = Keys.Key(in entry), Revision = revision });
        }

        if (entry is { HistoryCount: 0, IsDeleted: true })
        {
            Forgotten.Add(key);
        }
    }

    private void Tell(ChangeKind kind, Row key)
    {
        if (!Changes.IsOn)
        {
            return;
        }

        ref readonly KeyEntry entry = ref Keys[key];
        Changes.Tell(new Change
        {
            Kind = kind,
            Key = Keys.Key(in entry),
            Revision = entry.Revision,
            Value = kind == ChangeKind.Written ? Keys.Value(in entry) : default,
            IsNull = kind == ChangeKind.Written && entry.IsNull,
            IsPreviousKept = entry.HistoryCount > 0
                && History[entry.NewestHistory].Revision == entry.Revision.Previous(),
        });
    }

    private void BeforeChange(Row key)
    {
        foreach (IRowObserver observer in _observers)
        {
            observer.BeforeChange(key);
        }
    }

    private void BeforeHistoryChange(Row key)
    {
        foreach (IRowObserver observer in _observers)
        {
            observer.BeforeHistoryChange(key);
        }
    }

    /// <summary>
    /// Makes the block fit a new value and counts the revision. The key's bytes are in the block afterwards; the
    /// value's are the caller's to write.
    /// </summary>
    private void Replace(Row key, ref KeyEntry entry, int valueLength, HistoryChoice keep)
    {
        BeginChange(key);
        GiveBack(key, ref entry);
        uint old = entry.Block;
        bool handedOver = false;
        _digest = unchecked(_digest - entry.Digest);
        if (keep.IsKept && History.Keeps(in entry))
        {
            handedOver = !entry.IsDeleted;
            History.Push(key, keep.Time);
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
        entry.Revision = entry.Revision.Next();
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
